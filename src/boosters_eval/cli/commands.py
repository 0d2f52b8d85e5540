"""The commands, in the order of the help: the request behind each, below `boosters_eval.programs`, and the groups."""

from __future__ import annotations

GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
    "builds": "Versions and builds of libraries in this home: add, list, show, remove, prune.",
    "datasets": "Show data sets, and download those that are not bundled.",
    "parity": "Compare a method across bindings, languages and a reference, and time each.",
    "parity oracles": "The stored predictions of oracles.",
}
COMMANDS = {
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
    "bisect": "bisect.request:BisectRequest",
    "importances": "importances.request:ImportancesRequest",
    "parity run": "parity.request:ParityRequest",
    "parity gate": "parity.request:ParityGateRequest",
    "parity render": "parity.request:ParityRenderRequest",
    "parity list": "parity.request:ParityListRequest",
    "parity oracles list": "parity.request:OraclesListRequest",
    "parity oracles verify": "parity.request:OraclesVerifyRequest",
    "parity oracles refresh": "parity.request:OraclesRefreshRequest",
}
