"""What a cell's process does. A workload is registered by name; third parties add theirs by entry point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import FileFormatError
from boosters_eval.core.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.engine.cell import Build, Cell, Lane, Spec
    from boosters_eval.engine.outcome import Outcome
    from boosters_eval.engine.plan import Plan


class Workload(ABC):
    """One kind of work. All methods are class methods: a workload has no state of its own."""

    name: ClassVar[str]
    spec_type: ClassVar[type[Spec]]
    outcome_type: ClassVar[type[Outcome]]

    @classmethod
    @abstractmethod
    def build(cls, target: str) -> Build:
        """Which build of a target is here. Called when a plan is made; imports nothing heavy."""

    @classmethod
    @abstractmethod
    def run(cls, cell: Cell, loaded: Any, inputs: Mapping[str, str], phase: Callable[[str], None]) -> Outcome:
        """Do the work, in the process that was made for this cell; whatever is raised becomes a Failure.

        `loaded` is what `load` returned, `inputs` says where the cell's inputs lie, and `phase` is told each step, so
        that a process that dies can be said to have died in it. A target that is not Python is started from here: it
        shares the cell's process group, its limits and its end.
        """

    @classmethod
    def address(cls, target: str) -> dict[str, Any]:  # noqa: ARG003 (a target may be known by its name alone)
        """What a lane must know to find the target, as plain data. Called in the program's own process."""
        return {}

    @classmethod
    def imports(cls, target: str) -> tuple[str, ...]:  # noqa: ARG003 (a target may need no module)
        """Modules that the lane will import: what two lanes have in common is imported once for both."""
        return ()

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> Any:  # noqa: ARG003 (there may be nothing to load)
        """Import all that the lane's cells use, once, and start no thread: every cell is forked from here."""
        return None

    @classmethod
    def upgraded_plan(cls, raw: dict[str, Any]) -> Plan:
        """A plan that an older version of this workload wrote."""
        raise FileFormatError(f"The plan has schema version {raw.get('schema_version')}, which is not readable.")


def _is_workload(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, Workload)


# Even the workloads of this package come by entry point, so that the engine need not know them.
WORKLOADS: Registry[type[Workload]] = Registry("workload", group="boosters_eval.workloads", accepts=_is_workload)
