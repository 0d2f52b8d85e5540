"""The commands, in the order of the help: the request behind each, below `boosters_eval.programs`, and the groups."""

from __future__ import annotations

GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
    "runs": "The runs in this home: list, show, open, remove.",
    "history": "The history of this home: every run, with its verdict against the run before on the same machine.\n\n"
    "Without a command, the runs are listed, the latest first.",
    "list": "List data sets, libraries, suites and metrics.",
}
COMMANDS = {
    "compare": "benchmark.request:CompareRequest",
    "run": "benchmark.request:SuiteRequest",
    "importances": "importances.request:ImportancesRequest",
    "runs list": "runs.request:ListRunsRequest",
    "runs show": "runs.request:ShowRunRequest",
    "runs open": "runs.request:OpenRunRequest",
    "runs remove": "runs.request:RemoveRunsRequest",
    "history": "history.request:ListHistoryRequest",
    "history show": "history.request:ShowHistoryRequest",
    "history import": "history.request:ImportHistoryRequest",
    "history export": "history.request:ExportHistoryRequest",
    "history reindex": "history.request:ReindexRequest",
    "history diff": "history.request:DiffRequest",
    "history report": "history.request:ReportHistoryRequest",
    "list libraries": "listing.request:LibrariesRequest",
    "list datasets": "listing.request:DatasetsRequest",
    "list suites": "listing.request:SuitesRequest",
    "list metrics": "listing.request:MetricsRequest",
    "report": "report.request:ReportRequest",
    "track": "track.request:TrackRequest",
}
