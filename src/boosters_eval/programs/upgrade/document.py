"""Whether a newer version may be used, laid out: the answer in four lines, the matrix, costs, models and complaints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.upgrade.findings import UNANSWERED
from boosters_eval.reports.document import Document, Listing, MarkedCell, Notes, PlainTable, Section
from boosters_eval.reports.numbers import MISSING, number, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.upgrade.findings import SavedModel, UpgradeCell, UpgradeCost, UpgradeFindings
    from boosters_eval.reports.document import PlainCell

_NAMED = 4  # cells in the answer
_LONGEST = 80  # characters of a reason there
_TONES = {
    **dict.fromkeys(("identical", "drift", "newly works"), "pass"),
    "works in neither": "",
    **dict.fromkeys(("changed", "fails"), "fail"),
    **dict.fromkeys(UNANSWERED, "warn"),
}


def lay_out(found: UpgradeFindings) -> Document:
    cells = tuple(_tell_cell(cell) for cell in found.cells)
    headings = ("Cell", "Outcome", "Largest difference", "Metric", "Old", "New", "Why")
    costs = tuple((cost.quantity, _ratio(cost), cost.cells) for cost in found.costs)
    models = tuple(_tell_model(model) for model in found.models if model.state != "identical")
    said = [*_quote(found.said_by_new, found.new), *_quote(found.said_by_old, found.old)]
    said += [f"Both versions say: {line}" for line in found.said_by_both]
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
                (PlainTable("Models", ("Model", "Saved by", "Outcome", "Why"), models),) if models else (),
            ),
            Section("said", "What a version says of parameters", (Listing.of(*said),) if said else ()),
            Section("notes", "Notes", (Notes(tuple(_notes(found))),)),
        ),
    )


def _answer(found: UpgradeFindings) -> Iterator[str]:
    """The decision, how sure it is, what it costs, and the pin."""
    old, new = found.old, f"{found.library} {found.new}"
    bad = [*_name_faults(found)]
    told = "; ".join(bad[:_NAMED])  # names have commas
    more = f"; and {len(bad) - _NAMED} more" if bad[_NAMED:] else ""
    broken = f"{count_of(len(found.broken_models), 'saved model')} no longer the same" if found.broken_models else ""
    what = "; ".join(filter(None, (f"{told}{more}", broken)))
    if found.answer == "safe":
        works = len(found.cells) - len(found.having("works in neither"))
        yield f"Safe: {new} does what {old} does, in {'all ' if works > 1 else ''}{count_of(works, 'cell')}."
    elif found.answer == "safe but":
        yield f"Safe but for: {what}."
    elif found.answer == "changes":
        yield f"Changes results: {what}."
    else:
        lost = found.having(*UNANSWERED)
        named = [f"{cell.name} ({cell.state}{_reason(cell)})" for cell in lost]
        named += [f"the model {model.name} ({model.state}{_reason(model)})" for model in found.lost_models]
        why = join_words(named, most=_NAMED) or "nothing could be compared"
        yield f"Cannot say whether {new} is safe: {why}."
    yield f"How sure: {_count(found)}."
    yield f"Cost: {'; '.join(map(_tell_cost, found.costs))}."
    yield _tell_pin(found)


def _name_faults(found: UpgradeFindings) -> Iterator[str]:
    """What fails or changes; cells that one cause explains are counted, not listed."""
    yield from map(_name_change, found.having("fails"))
    by_cause: dict[str, list[UpgradeCell]] = {}
    for cell in found.having("changed"):
        by_cause.setdefault(cell.cause, []).append(cell)
    for cause, cells in sorted(by_cause.items(), key=lambda item: not item[0]):
        if cause and cells[1:]:
            yield f"{len(cells)} cells change by another default of {cause}"
        else:
            yield from map(_name_change, cells)


def _name_change(cell: UpgradeCell) -> str:
    if cell.state == "fails":
        return f"{cell.name} fails{_reason(cell)}"
    size = ""
    if cell.percent:
        size = f"{percent(abs(cell.percent) / 100, sign=False)} {'worse' if cell.percent > 0 else 'better'}, "
    shown = {"better": f"{size}shown", "worse": f"{size}shown", "equivalent": "equivalent, shown"}
    cause = f", by {cell.cause}" if cell.cause else ""
    return f"{cell.name} changes ({shown.get(cell.verdict, f'{size}not shown')}{cause})"


def _reason(one: UpgradeCell | SavedModel) -> str:
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
    loaded = f"; {kept} of {count_of(len(models), 'saved model')} predict the same" if models else ""
    return f"{', '.join(parts) or 'no cell ran'}, in {count_of(found.seeds, 'split')} each{loaded}{tail}"


def _tell_cost(cost: UpgradeCost) -> str:
    if cost.ratio is None:
        return f"{cost.quantity} not judged ({cost.reason})"
    return f"{cost.quantity} {_ratio(cost)}{'' if cost.told_apart else ', not told apart'}"


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
        scale = "" if cell.deviations is None else f", {number(cell.deviations, 2)} sd"
        away = f"{number(cell.largest, 2)} ({count_of(cell.ulps or 0, 'ulp')}{scale})"
    values = [None if value is None else number(value, 6) for value in (cell.old, cell.new)]
    why = cell.reason or (_name_change(cell).removeprefix(f"{cell.name} ") if cell.state == "changed" else None)
    state = MarkedCell(cell.state, _TONES[cell.state])
    return (cell.name, state, away, cell.metric or None, *values, why)


def _tell_model(model: SavedModel) -> tuple[PlainCell, ...]:
    away = "" if model.largest is None else f"by {number(model.largest, 2)}"
    return (model.name, model.saved_by, MarkedCell(model.state, _TONES[model.state]), model.reason or away)


def _quote(lines: tuple[str, ...], version: str) -> Iterator[str]:
    yield from (f"{version} alone says: {line}" for line in lines)


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
