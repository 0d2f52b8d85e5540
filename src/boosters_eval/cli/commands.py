"""The commands, in the order of the help: the request behind each, below `boosters_eval.programs`, and the groups."""

from __future__ import annotations

GROUPS = {
    "": "Evaluate and compare gradient-boosting libraries, with equal capacity and sound statistics.",
    "parity": "Compare a method across bindings, languages and a reference, and time each.",
    "parity oracles": "The stored predictions of oracles.",
}
COMMANDS = {
    "compare": "benchmark.request:CompareRequest",
    "run": "benchmark.request:SuiteRequest",
    "importances": "importances.request:ImportancesRequest",
    "parity run": "parity.request:ParityRequest",
    "parity gate": "parity.request:ParityGateRequest",
    "parity render": "parity.request:ParityRenderRequest",
    "parity list": "parity.request:ParityListRequest",
    "parity oracles list": "parity.request:OraclesListRequest",
    "parity oracles verify": "parity.request:OraclesVerifyRequest",
    "parity oracles refresh": "parity.request:OraclesRefreshRequest",
}
