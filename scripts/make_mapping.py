"""Write docs/mapping.md: the parameter tables of all libraries, from the editions that runners declare."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from boosters_eval.runners import RUNNERS
from boosters_eval.runners.parameters import MarkKind
from boosters_eval.runners.rules import ALWAYS, CANONICAL, Edition, Native, Rule, TableRunner

PAGE = Path(__file__).parents[1] / "docs" / "mapping.md"
MAPPING: dict[str, tuple[Edition, ...]] = {
    name: runner.editions
    for name, runner in RUNNERS.items()
    if issubclass(runner, TableRunner) and runner.__module__.startswith("boosters_eval.")
}
_PREFACE = f"""\
# The parameter table

Made from the tables of the runners by `scripts/make_mapping.py`; do not edit.
`boosters-eval explain` shows the same table at given values.

A value that starts with `=` is an expression over the canonical parameters. `c` is the factor between a library's
multiclass hessian and p(1-p): a leaf is -G/(cH + l2), so the step and the penalties that meet the hessian are
multiplied by it and the minimal gain is divided by it; l1 meets the gradient alone. `growth` is the growth
strategy, `n_threads` and `seed` are those that the engine resolved.

A mark says how faithfully a library honors a canonical parameter:

- **exact**: the same meaning; trained models agree on the rows that they learnt from. (Where a threshold lies between
  two neighboring values of a node, and which of two equal gains wins, is each library's own choice.)
- **own**: it has no common meaning, so the library keeps its own treatment; the reason says what that is.
- **approximated**: the nearest equivalent that the library has; the reason says what is lost.
- **unsupported**: the library has nothing like it; the parameter has no effect.

What has no common meaning is not made equal. How a library groups, orders and smooths categories protects it from
overfitting them: taken away, one library would look worse than it is, and no two would do the same. Fair is what the
maintainers of each library would accept.

*exact if* names the values at which nothing is lost although the rule is not exact in general. A parameter without
a row for a case does not apply there (max_depth in leaf-wise growth, trees in a linear model) and is shown as
"not used". The marks that are not exact are part of every result and of every report.

Equal `max_bins` means equally many bins for values, not counting missing ones; where the borders lie in a column
with more distinct values than that is each library's own choice.

In a linear model (gblinear) `l1` and `l2` are multiplied by the sum of the weights of the rows, in boosters as in
XGBoost: the penalty applies to the mean loss, and a value that suits trees lets a linear model learn next to nothing.

`device` is what models are trained on. What is said here of CUDA devices was read in the documentation and the messages
of the libraries, not measured. Without such a device, or with a build that has no code for it, a cell is unsupported.

Of several targets (`targets`, in `explain --targets 2`), XGBoost from 3.2 on has a tree for each in every round,
exactly as a model of each would; CatBoost has one tree for all (`MultiRMSE`), which is approximated; all others, and
linear models, train one model per target, each with all parameters (own).

`--profile defaults` passes only {", ".join(f"`{name}`" for name in ALWAYS)} and what is listed as such
below: every library runs with its own defaults, its own number of rounds and its own capacity.
"""


def page() -> str:
    """The whole page."""
    parts = [_PREFACE, _overview()]
    parts += [_library(editions) for editions in MAPPING.values()]
    return "\n".join(parts)


def _overview() -> str:
    """One row per canonical parameter, one column per library: the weakest mark of its newest table."""
    rows = []
    for parameter in CANONICAL:
        cells = [
            _weakest(rule for rule in editions[-1].rules if rule.parameter == parameter)
            for editions in MAPPING.values()
        ]
        rows.append((f"`{parameter}`", *cells))
    note = "\nThe weakest mark that a parameter can get in each library's newest table; `-`: never used.\n\n"
    return "## All libraries\n" + note + _table(("canonical", *MAPPING), rows)


def _weakest(rules: Iterable[Rule]) -> str:
    return max((rule.kind for rule in rules), key=get_args(MarkKind).index, default="-")


def _library(editions: Sequence[Edition]) -> str:
    newest = editions[-1]
    parts = [
        f"## {newest.library}\n",
        _edition_title(newest),
        _table(("canonical", "where", "native", "mark", "reason", "exact if"), map(_rule_row, newest.rules)),
        f"Hessian factor: `c {newest.hessian}`.\n",
        "Pinned, so that the comparison is fair:\n",
        _table(("native", "where", "reason"), [(_native(p.native), _code(p.where), p.reason) for p in newest.pins]),
        "With its own defaults (`--profile defaults`):\n",
        _table(("native", "where", "reason"), [(_native(p.native), _code(p.where), p.reason) for p in newest.defaults]),
        "Refused, so that the cell is unsupported:\n",
        _table(("where", "reason"), [(_code(entry.where), entry.reason) for entry in newest.refusals]),
    ]
    if newest.nondeterministic:
        parts += ["The same seed may give a different model:\n"]
        parts += [_table(("where", "reason"), [(_code(e.where), e.reason) for e in newest.nondeterministic])]
    for older in reversed(editions[:-1]):
        changed = [rule for rule in older.rules if rule not in newest.rules]
        parts += [_edition_title(older), "As above, but:\n"]
        parts += [_table(("canonical", "where", "native", "mark", "reason", "exact if"), map(_rule_row, changed))]
    return "\n".join(parts)


def _edition_title(edition: Edition) -> str:
    return f"### {edition.library} from {edition.since} up to, not including, {edition.until}\n"


def _rule_row(rule: Rule) -> tuple[str, ...]:
    return (
        f"`{rule.parameter}`",
        _code(rule.where),
        _native(rule.native),
        rule.kind,
        rule.reason,
        _code(rule.exact_if),
    )


def _native(native: Native) -> str:
    return "<br>".join(f"`{name}: {value}`" for name, value in native.items())


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
