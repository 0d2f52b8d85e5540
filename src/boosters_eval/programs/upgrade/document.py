"""Whether a newer version may be used, laid out: the answer in four lines, the matrix, costs, models and complaints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.upgrade.findings import UNANSWERED
from boosters_eval.reports.document import Document, Listing, MarkedCell, Notes, PlainTable, Section
from boosters_eval.reports.numbers import MISSING, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.upgrade.findings import (
        CellState,
        ReloadedModel,
        UpgradeCell,
        UpgradeCost,
        UpgradeFindings,
    )
    from boosters_eval.reports.document import PlainCell

_NAMED = 3  # cells in the answer
_FEW = 4  # names in a cell of a table
_LONGEST = 80  # characters of a reason there
_TONES = {
    **dict.fromkeys(("identical", "drift", "newly works"), "better"),
    "works in neither": "",
    **dict.fromkeys(("changed", "fails"), "worse"),
    **dict.fromkeys(UNANSWERED, "changed"),
}


def lay_out(found: UpgradeFindings) -> Document:
    cells = tuple(_tell_cell(cell) for cell in found.cells)
    headings = ("Cell", "Outcome", "Largest difference", "Metric", "Old", "New", "Why")
    models = tuple(_tell_models(found))
    costs = tuple((cost.quantity, _ratio(cost), cost.cells) for cost in found.costs)
    said = [
        *(f"{found.new} alone says: {line}" for line in found.said_by_new),
        *(f"{found.old} alone says: {line}" for line in found.said_by_old),
        *(f"Both versions say: {line}" for line in found.said_by_both),
    ]
    defaults = tuple(
        (one.name, one.old.strip('"'), one.new.strip('"'), _name_some(one.cells)) for one in found.defaults
    )
    return Document(
        f"{found.library} {found.old} → {found.new}",
        tuple(_answer(found)),
        sections=(
            Section("cells", "What became of each cell", (PlainTable("Cells", headings, cells, measured=True),)),
            Section(
                "costs", "Costs", (PlainTable("Costs", ("Quantity", "New over old", "Cells"), costs, measured=True),)
            ),
            Section(
                "models",
                "Saved models that differ",
                (PlainTable("Models", ("Saved by", "Outcome", "Why", "Models"), models),) if models else (),
            ),
            Section(
                "defaults",
                "Parameters that have another value",
                (PlainTable("Defaults", ("Parameter", "Old", "New", "Cells"), defaults),) if defaults else (),
            ),
            Section("said", "What a version says of parameters", (Listing.of(*said),) if said else ()),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


def _answer(found: UpgradeFindings) -> Iterator[str]:
    """The decision, how sure it is, what it costs, and the pin."""
    old, new = found.old, f"{found.library} {found.new}"
    works = len(found.cells) - len(found.having("works in neither"))
    if found.answer == "safe":
        yield f"Safe: {new} does what {old} does, in {'all ' if works > 1 else ''}{count_of(works, 'cell')}."
    elif found.answer == "safe but":
        yield f"Safe but for: {_list_faults(found)}."
    elif found.answer == "changes":
        yield f"Changes results: {_list_faults(found)}."
    else:
        lost = found.having(*UNANSWERED)
        named = [f"{cell.name} ({cell.state}{_reason(cell)})" for cell in lost]
        named += [f"the model {model.name} ({model.state}{_reason(model)})" for model in found.lost_models]
        why = "; ".join([*named[:_NAMED], *([f"{len(named) - _NAMED} more"] if named[_NAMED:] else [])])
        yield f"Cannot say whether {new} is safe: {why or 'nothing could be compared'}."
    yield f"How sure: {_count(found)}."
    yield f"Cost: {'; '.join(_tell_costs(found))}."
    yield _tell_pin(found)


def _list_faults(found: UpgradeFindings) -> str:
    """What fails or changes, by causes; what several cells have in common is counted, not listed."""
    told = [*map(_name_change, found.having("fails"))]
    by_cause: dict[str, list[UpgradeCell]] = {}
    for cell in found.having("changed"):
        by_cause.setdefault(cell.cause, []).append(cell)
    for cause in sorted(by_cause, key=lambda cause: (not cause, -len(by_cause[cause]))):
        cells = by_cause[cause]
        if cause and cells[1:]:
            told.append(f"{len(cells)} cells change by another default of {cause}")
        else:
            told += map(_name_change, cells)
    listed = [*told[:_NAMED], *([f"{len(told) - _NAMED} more"] if told[_NAMED:] else [])]  # names have commas
    unexplained = {cell.name for cell in by_cause.get("", ())}
    others = [one.name for one in found.defaults if unexplained & {*one.cells}]
    if others:
        listed.append(f"other defaults do not explain all of it ({join_words(others, most=_FEW)})")
    if found.broken_models:
        listed.append(f"{count_of(len(found.broken_models), 'saved model')} no longer the same")
    return "; ".join(listed)


def _name_change(cell: UpgradeCell) -> str:
    verb = "fails" if cell.state == "fails" else "changes"
    return f"{cell.name} {verb}{_reason(cell) if cell.state == 'fails' else f' ({_tell_change(cell)})'}"


def _tell_change(cell: UpgradeCell) -> str:
    size = ""
    if cell.percent:
        size = f"{percent(abs(cell.percent) / 100, sign=False)} {'worse' if cell.percent > 0 else 'better'}, "
    shown = {"better": f"{size}shown", "worse": f"{size}shown", "equivalent": "equivalent, shown"}
    parts = (shown.get(cell.verdict, f"{size}not shown"), cell.cause and f"by {cell.cause}", cell.reason)
    return ", ".join(filter(None, parts))


def _reason(one: UpgradeCell | ReloadedModel) -> str:
    """Why it fails, in the first words of what the library says."""
    return f": {one.reason[:_LONGEST]}{'…' if one.reason[_LONGEST:] else ''}" if one.reason else ""


def _count(found: UpgradeFindings) -> str:
    """How many cells ended in each way, with the largest drift."""
    states = dict.fromkeys(cell.state for cell in found.cells)
    parts = []
    for state in sorted(states, key=[*_TONES].index):
        cells = found.having(state)
        drift = ""
        if state == "drift":
            ulps, away = max(cell.ulps or 0 for cell in cells), max(cell.deviations or 0.0 for cell in cells)
            drift = f" (at most {count_of(ulps, 'ulp')}, {number(away, 2)} of a standard deviation)"
        parts.append(f"{len(cells)} {state}{drift}")
    tail = " (both are the same code)" if found.same_code else ""
    models = [model for model in found.models if model.saved_by != "new"]
    kept = sum(model.state in ("identical", "drift", "newly works") for model in models)
    loaded = (
        f"; {kept} of {count_of(len(models), 'saved model')} {'predicts' if len(models) == 1 else 'predict'} the same"
        if models
        else ""
    )
    return f"{', '.join(parts) or 'no cell ran'}, in {count_of(found.seeds, 'split')} each{loaded}{tail}"


def _tell_costs(found: UpgradeFindings) -> Iterator[str]:
    """Each ratio; what is not judged for the same reason is told at once."""
    for cost in found.costs:
        if cost.ratio is not None:
            yield f"{cost.quantity} {_ratio(cost)}{'' if cost.told_apart else ', not told apart'}"
    for reason in dict.fromkeys(cost.reason for cost in found.costs if cost.ratio is None):
        names = join_words(cost.quantity for cost in found.costs if cost.ratio is None and cost.reason == reason)
        yield f"{names} not judged ({reason})"


def _ratio(cost: UpgradeCost) -> str:
    if cost.ratio is None:
        return MISSING
    interval = "" if cost.low is None or cost.high is None else f" ({cost.low:.2f} to {cost.high:.2f})"
    return f"x {cost.ratio:.2f}{interval}"


def _tell_pin(found: UpgradeFindings) -> str:
    if found.answer == "unanswered":
        return "Pin: leave it as it is until that is answered."
    if not found.pin:
        return "Pin: none tells the two apart; both have the same version."
    return f"Pin: {found.pin}"


def _tell_cell(cell: UpgradeCell) -> tuple[PlainCell, ...]:
    away = None
    if cell.largest:
        steps = f"{count_of(cell.ulps or 0, 'ulp')}, " if cell.state == "drift" else ""
        scale = "all alike" if cell.deviations is None else f"{number(cell.deviations, 2)} sd"
        away = f"{number(cell.largest, 2)} ({steps}{scale})"
    values = [None if value is None else number(value, 6) for value in (cell.old, cell.new)]
    why = _tell_change(cell) if cell.state == "changed" else cell.reason or None
    return (cell.name, MarkedCell(cell.state, _TONES[cell.state]), away, cell.metric or None, *values, why)


def _tell_models(found: UpgradeFindings) -> Iterator[tuple[PlainCell, ...]]:
    """What becomes of saved models, one row for those that end alike."""
    alike: dict[tuple[str, CellState, str], list[ReloadedModel]] = {}
    for model in found.models:
        if model.state != "identical":
            alike.setdefault((model.saved_by, model.state, model.reason), []).append(model)
    savers = {"old": f"{found.old}, loaded by {found.new}", "new": f"{found.new}, loaded by {found.old}", "user": "you"}
    for (saved_by, state, reason), models in alike.items():
        away = reason or f"by {number(max(model.largest or 0.0 for model in models), 2)}"
        yield savers[saved_by], MarkedCell(state, _TONES[state]), away, _name_some([model.name for model in models])


def _name_some(names: Sequence[str]) -> str:
    """The first of several; names have commas."""
    return names[0] + (f"; and {len(names) - 1} more" if names[1:] else "")


def _notes(found: UpgradeFindings) -> Iterator[str]:
    yield (
        f"Each cell was trained by both versions with the parameters that {found.old} takes, the same seeds, and one"
        f" thread. Predictions may drift by {found.tolerance:g} of their standard deviation."
    )
    if found.unsaved:
        yield f"No models were saved: {found.unsaved}."
    if found.unsupported:
        yield f"No part of this: {'; '.join(found.unsupported)}."
    yield from found.notes
