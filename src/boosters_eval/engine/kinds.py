"""Runs by kind: how the program that made a run reads it, and what it tells trackers of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.registry import Registry, must_extend
from boosters_eval.engine.outcome import CellOutcome, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boosters_eval.engine.cell import Spec
    from boosters_eval.engine.folder import Run, RunFolder
    from boosters_eval.engine.outcome import Outcome


@dataclass(frozen=True)
class Competing:
    """The cells of one spec and target that have an outcome, in the plan's order."""

    spec: Spec
    target: str
    planned: int
    results: tuple[Outcome, ...]
    failures: tuple[Failure, ...]


class RunKind:
    """A run, as its program reads it. The base tells of any run what can be told without knowing its workload."""

    workloads: ClassVar[frozenset[str]] = frozenset()  # that a run of this kind may have

    def __init__(self, run: Run, folder: RunFolder) -> None:
        self.run, self.folder = run, folder

    @cached_property
    def findings(self) -> Any:
        """What the program concludes from the run; one that it cannot read is a RunError."""
        return self.run

    def parameters(self, cells: Competing) -> Mapping[str, Any]:
        """What was asked for, and what the target made of that as far as results tell."""
        return cells.spec.model_dump(mode="json", exclude={"name"})

    def facts(self, cells: Competing) -> Mapping[str, Any]:  # noqa: ARG002 (of any target, its build is known)
        """What else is known of a spec and target: digests, verdicts."""
        return {}

    def numbers(self, result: Outcome) -> Mapping[str, float | None]:
        """What one cell measured: metrics, times."""
        own = (name for name in type(result).model_fields if name not in CellOutcome.model_fields)
        return {name: value for name in own if type(value := getattr(result, name)) in (int, float)}

    def summary(self, cells: Competing) -> Mapping[str, float | None]:  # noqa: ARG002 (means are taken of all numbers)
        """What a spec and target are told to have come to, besides the means of their numbers."""
        return {}

    def files(self) -> Mapping[str, str]:
        """The reports on a run that came to its end, by the names of their files."""
        return {}

    def competing(self) -> list[Competing]:
        """All that has an outcome, in the plan's order."""
        plan = self.run.plan
        found: dict[tuple[int, str], list[Outcome | Failure | None]] = {}
        for key, ref in zip(plan.keys, plan.refs, strict=True):
            found.setdefault((ref.spec, ref.target), []).append(self.run.outcomes.get(key))
        return [
            Competing(
                plan.specs[spec],
                target,
                len(outcomes),
                tuple(item for item in outcomes if item is not None and not isinstance(item, Failure)),
                tuple(item for item in outcomes if isinstance(item, Failure)),
            )
            for (spec, target), outcomes in found.items()
            if any(outcomes)
        ]


# The kinds of this package are entry points as well, so that the engine need not know them.
RUN_KINDS: Registry[type[RunKind]] = Registry("kind of run", group="boosters_eval.kinds", fault=must_extend(RunKind))


def kind_of_run(run: Run, folder: RunFolder) -> RunKind:
    """The run as its program reads it; the base, where none is registered or it is said to be what it is not."""
    workloads = {spec.workload for spec in run.plan.specs}
    kind = RUN_KINDS.get(run.facts.kind)
    return (RunKind if kind is None or not workloads <= kind.workloads else kind)(run, folder)
