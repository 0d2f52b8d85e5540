"""What must be said beside the numbers, in whole sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from boosters_eval.reports.numbers import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boosters_eval.reports.contenders import Contender
    from boosters_eval.reports.model import Column, Comparison
    from boosters_eval.results import ResultCollection

_LEAVES_APART = 0.10  # how far the built leaves may lie apart before it is said
_SHOWN = 12  # different findings before the rest is only counted


def of_table(
    contenders: Sequence[Contender], columns: Sequence[Column], comparisons: Sequence[Comparison]
) -> tuple[str, ...]:
    """Failures, unequal capacity, and pairs without a verdict."""
    primary = [column.name for column in columns if column.primary]
    undecided = [c.text for c in comparisons if c.metric in primary and c.verdict == "inconclusive"]
    return (*_failures(contenders), *_capacity(contenders), *undecided)


def of_report(collection: ResultCollection, *, times: bool) -> tuple[str, ...]:
    """What holds for more than one table."""
    out = [f"{item.config_name}: {item.library} is not supported ({item.reason})." for item in collection.unsupported]
    out += _marks(collection)
    out += _tally(
        ((r.library, r.nondeterministic) for r in collection.results if r.nondeterministic),
        "{library} is not deterministic: {text}",
    )
    out += _tally(((r.library, w) for r in collection.results for w in r.warnings), "{library}: {text}")
    if missing := collection.metadata.get("n_missing"):
        out.append(f"The run is incomplete: {missing} of {collection.metadata.get('n_cells')} cells have no outcome.")
    if any(result.profile == "defaults" for result in collection.results):
        out.append("Profile 'defaults': each library as it comes, so models of unlike size and step are compared.")
    if times and any(r.train_time_s is not None and not r.timing_mode for r in collection.results):
        out.append("Times are indicative only: they were not taken with --timing-mode.")
    return tuple(out)


def _failures(contenders: Iterable[Contender]) -> list[str]:
    out = []
    for contender in contenders:
        if contender.errors:
            total = len(contender.errors) + len(contender.results)
            kinds = ", ".join(sorted({error.error_type for error in contender.errors}))
            out.append(f"{contender.name}: {len(contender.errors)} of {total} cells failed ({kinds}).")
    return out


def _capacity(contenders: Sequence[Contender]) -> list[str]:
    """Trees and leaves actually built, where they differ enough to decide a comparison."""
    trees = _means(contenders, "n_trees_trained")
    leaves = _means(contenders, "n_leaves_total")
    unequal_trees = len(set(trees.values())) > 1
    unequal_leaves = len(leaves) > 1 and max(leaves.values()) > (1 + _LEAVES_APART) * min(leaves.values())
    if not unequal_trees and not unequal_leaves:
        return []
    parts = []
    for contender in contenders:
        sizes = [
            f"{count(means[contender.name])} {unit}"
            for means, unit in ((trees, "trees"), (leaves, "leaves"))
            if contender.name in means
        ]
        if sizes:
            parts.append(f"{contender.name} {', '.join(sizes)}")
    return [f"Capacity differs (mean a model): {'; '.join(parts)}."]


def _means(contenders: Iterable[Contender], name: str) -> dict[str, float]:
    out = {}
    for contender in contenders:
        values = [v for result in contender.results if (v := getattr(result, name)) is not None]
        if values:
            out[contender.name] = sum(values) / len(values)
    return out


def _marks(collection: ResultCollection) -> list[str]:
    """Every canonical parameter that a library does not take exactly, once."""
    seen: dict[tuple[str, str, str, str], set[str]] = {}
    for result in collection.results:
        for mark in result.marks:
            if mark.kind != "exact":
                key = (result.library, mark.parameter, mark.kind, mark.reason)
                seen.setdefault(key, set()).add(result.config_name)
    out = []
    for (library, parameter, kind, reason), configs in seen.items():
        where = "" if len(configs) == len({r.config_name for r in collection.results}) else _configs(configs)
        out.append(f"{library}: {parameter} is {kind}{where}{f' ({reason})' if reason else ''}.")
    return out


def _configs(names: set[str]) -> str:
    return f" in {', '.join(sorted(names))}" if len(names) <= 3 else f" in {len(names)} configs"


def _tally(findings: Iterable[tuple[str, str]], form: str) -> list[str]:
    """Each finding once, with how often it was made; a flood is cut short and counted."""
    counted = Counter(findings)
    out = []
    for (library, text), times in counted.most_common(_SHOWN):
        line = form.format(library=library, text=text).rstrip(".")
        out.append(f"{line}{f' ({times} times)' if times > 1 else ''}.")
    rest = len(counted) - len(out)
    return [*out, f"{rest} further findings of this kind."] if rest > 0 else out
