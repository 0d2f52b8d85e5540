"""The commands, in the order of the help: the request behind each, below `boosters_eval.programs`, and the groups."""

from __future__ import annotations

GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
}
COMMANDS = {
    "compare": "benchmark.request:CompareRequest",
    "run": "benchmark.request:SuiteRequest",
    "importances": "importances.request:ImportancesRequest",
}
