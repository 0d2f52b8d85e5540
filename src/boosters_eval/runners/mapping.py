"""The parameter table of all libraries, by version: written down once, read by runners, `explain`, reports, docs.

Values that start with "=" are expressions over the canonical parameters (see rules.py); `c` is the factor between
a library's multiclass hessian and p(1-p). `python -m boosters_eval.runners.document` prints docs/mapping.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.runners.tables import boosters, catboost, lightgbm, sklearn, xgboost

if TYPE_CHECKING:
    from boosters_eval.runners.rules import Edition

MAPPING: dict[str, tuple[Edition, ...]] = {
    editions[0].library: editions
    for editions in (
        boosters.EDITIONS,
        xgboost.EDITIONS,
        lightgbm.EDITIONS,
        catboost.EDITIONS,
        sklearn.EDITIONS,
    )
}
