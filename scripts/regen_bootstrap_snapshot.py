"""Recompute the pinned lower bounds after an intended change of the bootstrap (ADR-0002 must be amended first).

Without --write it only shows what would change, and exits with 1 if anything would.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from boosters_eval.stats.bootstrap import compute_lower_bound_95

SNAPSHOT = Path(__file__).parents[1] / "tests" / "stats" / "bootstrap_snapshot.json"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the snapshot instead of only showing it")
    parser.add_argument("--snapshot", type=Path, default=SNAPSHOT, help="the file that holds the pinned bounds")
    options = parser.parse_args(arguments)
    cases = json.loads(options.snapshot.read_text(encoding="utf-8"))
    changed = 0
    for case in cases:
        bound = compute_lower_bound_95(case["scores"], run_id=case["run_id"]).hex()
        if bound != case["bound"]:
            changed += 1
            print(f"{case['name']}: {case['bound']} -> {bound}")
            case["bound"] = bound
    print(f"{changed} of {len(cases)} bounds differ.")
    if options.write:
        lines = ",\n".join(json.dumps(case) for case in cases)
        options.snapshot.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        return 0
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
