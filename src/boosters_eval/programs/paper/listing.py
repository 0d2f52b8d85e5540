"""What specifications ask to reproduce, and what stands in the way here. It imports no science."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.findings import Findings
from boosters_eval.programs.paper.reading import read_specification
from boosters_eval.programs.paper.targets import obstacle, paper_targets, way_of

if TYPE_CHECKING:
    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.paper.request import ListPaperRequest


def list_targets(request: ListPaperRequest) -> ListedTargets:
    """The targets of the specifications that were named, or of those that are here."""
    found = []
    for file in request.files or _specifications():
        spec = read_specification(file)
        for target in paper_targets(spec, file.parent, request.model):
            reason = obstacle(target, allow_pickle=request.allow_pickle)
            found.append(
                ListedTarget(
                    specification=str(file),
                    paper=spec.paper,
                    kind="primary" if target.primary else "secondary",
                    table=target.table.id,
                    row=target.row,
                    dataset=target.dataset_name,
                    runs_by=way_of(target),
                    runnable=reason is None,
                    reason=reason or "",
                )
            )
    return ListedTargets(tuple(found), json=request.json)


def _specifications() -> list[Path]:
    """Files that look like a specification: other YAML files are passed over without a word."""
    found = []
    for folder in (Path("examples/papers"), Path()):
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                read_specification(path)
            except BoostersEvalError:
                continue
            found.append(path)
    return found


@dataclass(frozen=True)
class ListedTarget:
    """One row of a table on one data set."""

    specification: str
    paper: str
    kind: Literal["primary", "secondary"]
    table: str
    row: str
    dataset: str
    runs_by: str  # a library, a function, ...; '' if nothing is bound to it
    runnable: bool
    reason: str  # why it cannot run here

    def record(self) -> dict[str, Any]:
        """The same as plain data, under the names that people read."""
        names = {"dataset": "data set", "runs_by": "runs by"}
        return {names.get(name, name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class ListedTargets(Findings):
    """All targets, as a table or as data."""

    targets: tuple[ListedTarget, ...]
    json: bool = False

    def show(self, screen: Screen) -> None:
        """In a pipe one table; on a terminal one per specification, whose name and paper would fill its lines."""
        records = [target.record() for target in self.targets]
        if self.json:
            screen.json(records)
        elif not records:
            screen.note(
                "Note: there is no specification with targets here: name one, or write one with 'paper extract'."
            )
        elif not screen.is_terminal:
            screen.rows(list(records[0]), [[_text(value) for value in record.values()] for record in records], keys=6)
        else:
            names = ("table", "row", "data set", "kind", "runs by", "runnable", "reason")
            for file in dict.fromkeys(record["specification"] for record in records):
                mine = [record for record in records if record["specification"] == file]
                screen.say(f"{file}: {mine[0]['paper']}")
                screen.rows(names, [[_text(record[name]) for name in names] for record in mine], keys=3)


def _text(value: Any) -> str:
    return {True: "yes", False: "no", "": "-"}.get(value, str(value))
