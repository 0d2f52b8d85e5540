"""The commands, in the order of the help: the request behind each, below `boosters_eval.programs`, and the groups."""

from __future__ import annotations

GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
    "builds": "Versions and builds of libraries in this home: add, list, show, remove, prune.",
    "datasets": "Show data sets, and download those that are not bundled.",
    "baseline": "Record results, and check later results against them.",
    "paper": "Extract the tables of a paper, reproduce their rows, and compare.",
}
COMMANDS = {
    "quick": "baseline.request:QuickRequest",
    "full": "baseline.request:FullRequest",
    "baseline record": "baseline.request:RecordRequest",
    "baseline check": "baseline.request:CheckRequest",
    "baseline diff": "baseline.request:DiffRequest",
    "compare": "benchmark.request:CompareRequest",
    "run": "benchmark.request:SuiteRequest",
    "builds add": "builds.request:AddBuildsRequest",
    "builds list": "builds.request:ListBuildsRequest",
    "builds show": "builds.request:ShowBuildRequest",
    "builds remove": "builds.request:RemoveBuildsRequest",
    "builds prune": "builds.request:PruneBuildsRequest",
    "datasets fetch": "datasets.request:FetchRequest",
    "datasets show": "datasets.request:ShowDatasetRequest",
    "datasets init": "datasets.request:InitDatasetRequest",
    "explain": "explain.request:ExplainRequest",
    "gate": "gate.request:GateRequest",
    "importances": "importances.request:ImportancesRequest",
    "verify": "runs.request:VerifyRequest",
    "paper extract": "paper.request:ExtractPaperRequest",
    "paper run": "paper.request:RunPaperRequest",
    "paper list": "paper.request:ListPaperRequest",
    "paper compare": "paper.request:ComparePaperRequest",
    "paper report": "paper.request:ReportPaperRequest",
    "paper validate": "paper.request:ValidatePaperRequest",
}
