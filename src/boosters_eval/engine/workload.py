"""What a cell's process does. Workloads are registered by name; third parties add theirs through an entry point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.registry import Registry, must_extend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boosters_eval.engine.cell import Cell, Lane, Outcome, Spec, Target


class Workload(ABC):
    """One kind of work. All methods are class methods: a workload has no state of its own."""

    name: ClassVar[str]
    spec_type: ClassVar[type[Spec]]
    outcome_type: ClassVar[type[Outcome]]
    # Inputs that are folders which cells write to: what they store there, by digest, and what they make there if it is
    # not there yet. On another machine both begin empty, and only what is stored is brought home.
    stores: ClassVar[frozenset[str]] = frozenset({"artifacts"})
    makes: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @abstractmethod
    def target(cls, name: str) -> Target:
        """What is installed by this name. Called when a plan is made; must not import anything heavy."""

    @classmethod
    @abstractmethod
    def run(cls, cell: Cell, loaded: Any, inputs: Mapping[str, str], phase: Callable[[str], None]) -> Outcome:
        """Do the work, in a process of its own per cell; anything raised becomes a Failure.

        `loaded` is what `load` returned and `inputs` locates the cell's inputs. Call `phase` at each step, so that the
        failure of a process that dies can name the step. A target that is not Python is started from here: it shares
        the cell's process group and limits, and is killed with it.
        """

    @classmethod
    def address(cls, target: Target) -> dict[str, Any]:  # noqa: ARG003 (a target may be known by its name alone)
        """What a lane needs to find the target, as plain data. Called in the program's own process."""
        return {}

    @classmethod
    def imports(cls, target: Target) -> tuple[str, ...]:  # noqa: ARG003 (a target may need no module)
        """Modules that the lane will import; those that lanes share are imported only once."""
        return ()

    @classmethod
    def path(cls, target: Target) -> tuple[str, ...]:  # noqa: ARG003 (most targets are installed with the program)
        """Folders that come first on the import path of the target's lane, such as that of one build of a library.

        What they provide is never imported in a process that lanes share, so that none of them sees another's build.
        """
        return ()

    @classmethod
    def isolated(cls, target: Target) -> bool:  # noqa: ARG003 (see above)
        """Whether these folders take the place of the program's environment, of which only this package remains."""
        return False

    @classmethod
    def bound_here(cls, cell: Cell, inputs: Mapping[str, str]) -> str | None:  # noqa: ARG003 (see above)
        """Why a cell can only run on the machine that made the plan, as in "it ...", or None."""
        return None

    @classmethod
    def load(cls, lane: Lane, address: Mapping[str, Any]) -> Any:  # noqa: ARG003 (there may be nothing to load)
        """Import everything that the lane's cells use, and start no threads: every cell is forked from this process.

        `address` is what the method of that name returned, with the target's build in the plan under `build`.
        """
        return None


# The workloads of this package are entry points as well, so that the engine need not know them.
WORKLOADS: Registry[type[Workload]] = Registry("workload", group="boosters_eval.workloads", fault=must_extend(Workload))
