"""What will be run: a frozen list of cells whose run_id is a digest of their content."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import FORMAT, Format, check_format, compute_digest, dump_canonical, refuse_wide
from boosters_eval.core.model import Model
from boosters_eval.core.request import Part, Repeat
from boosters_eval.engine.cell import Build, Cell, Installation, Spec, Target, make_key
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CELLS = 10_000_000


class CellRef(NamedTuple):
    """A cell as stored in the plan's file, with its spec given by position."""

    spec: int
    target: str
    seed: int
    fold: int | None
    part: Part | None = None


class Exclusion(Model):
    """A spec that a target cannot carry out; known before anything runs."""

    spec: str
    target: str
    reason: str


def _typed_spec(raw: Any) -> Any:
    if isinstance(raw, Spec):
        return raw
    if not isinstance(raw, dict) or not isinstance(raw.get("workload"), str):
        raise ConfigError("A spec in the plan does not name a workload.")
    return WORKLOADS[raw["workload"]].spec_type.model_validate(raw)


class Plan(Model):
    """The cells of one run, and the builds of their targets."""

    schema_version: Format = FORMAT
    name: str
    specs: tuple[Annotated[SerializeAsAny[Spec], BeforeValidator(_typed_spec)], ...]
    refs: tuple[CellRef, ...]
    builds: dict[str, dict[str, Build]]  # by workload, then by target
    excluded: tuple[Exclusion, ...] = ()
    policy: dict[str, Any] | None = None  # what is decided by, where that was stated before anything ran

    @model_validator(mode="after")
    def _refs_have_specs(self) -> Self:
        if any(not 0 <= ref.spec < len(self.specs) for ref in self.refs):
            raise ConfigError("A cell of the plan refers to a spec that is not there.")
        return self

    @classmethod
    def of(
        cls,
        name: str,
        specs: Iterable[Spec],
        refs: Iterable[CellRef],
        excluded: Iterable[Exclusion] = (),
        targets: Iterable[Target] = (),
        policy: dict[str, Any] | None = None,
    ) -> Self:
        """A plan with these targets; one that only its name is known of is what is installed."""
        specs, refs = tuple(specs), tuple(refs)
        given = {target.name: target for target in targets}
        if len(refs) > MAX_CELLS:
            raise ConfigError(f"A plan may have {MAX_CELLS} cells. Got {len(refs)}: split it into several.")
        builds: dict[str, dict[str, Build]] = {}
        for workload, target in sorted({(specs[ref.spec].workload, ref.target) for ref in refs}):
            found = given[target] if target in given else WORKLOADS[workload].target(target)
            builds.setdefault(workload, {})[target] = found.build
        plan = cls(name=name, specs=specs, refs=refs, builds=builds, excluded=tuple(excluded), policy=policy)
        doubled = next((key for key, count in Counter(plan.keys).items() if count > 1), None)
        if doubled is not None:
            raise ConfigError(f"The cells of a plan must have different keys. Got '{doubled}' more than once.")
        vars(plan)["installations"] = {name: one.installation for name, one in given.items() if one.installation}
        return plan

    @classmethod
    def grid(cls, name: str, specs: Iterable[Spec], targets: Iterable[str], repeats: Iterable[Repeat]) -> Self:
        """One cell for every combination of spec, target and repeat."""
        specs, repeats = tuple(specs), tuple(repeats)
        refs = (CellRef(i, target, *repeat) for target in targets for i in range(len(specs)) for repeat in repeats)
        return cls.of(name, specs, refs)

    @classmethod
    def parse(cls, text: str, source: str) -> Plan:
        """Read a plan's file; any other content raises an error of one sentence."""
        head = re.match(r'\s*\{\s*"schema_version":\s*(\d{1,9})\b', text)
        if head is None:
            raise FileFormatError(f"{source} is not a plan.")
        check_format(int(head[1]), source, "a plan")
        try:
            refuse_wide(text, source)
            return cls.model_validate_json(text)
        except ConfigError as error:
            raise FileFormatError(f"{source} is not a plan: {error}") from None

    @cached_property
    def run_id(self) -> str:
        """A digest of everything that the outcomes depend on; the plan's name and any order are not part of it."""
        content = {
            "schema_version": self.schema_version,
            "specs": sorted(dump_canonical(spec.identity()) for spec in self.specs),
            "cells": sorted(self.keys),
            "parts": sorted((key, ref.part) for key, ref in zip(self.keys, self.refs, strict=True) if ref.part),
            "builds": {
                workload: {target: build.model_dump() for target, build in targets.items()}
                for workload, targets in self.builds.items()
            },
            **({} if self.policy is None else {"policy": self.policy}),
        }
        return compute_digest(dump_canonical(content), 16)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of all cells, in the order in which they are reported."""
        names = [spec.name for spec in self.specs]
        return tuple(make_key(names[ref.spec], ref.target, ref.seed, ref.fold) for ref in self.refs)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order in which they are reported."""
        places = sorted({(self.specs[ref.spec].workload, ref.target) for ref in self.refs})
        found = {place: self.target(*place) for place in places}
        return tuple(
            Cell(spec := self.specs[ref.spec], found[spec.workload, ref.target], Repeat(ref.seed, ref.fold), ref.part)
            for ref in self.refs
        )

    @cached_property
    def installations(self) -> dict[str, Installation]:
        """Where builds lie, by target, as whoever made the plan knows it; that of a file has none."""
        return {}

    @property
    def targets(self) -> list[Target]:
        return [self.target(workload, name) for workload, builds in self.builds.items() for name in builds]

    def target(self, workload: str, name: str) -> Target:
        return Target(name=name, build=self.builds[workload][name], installation=self.installations.get(name))

    def targets_of(self, spec: Spec) -> list[Target]:
        """The targets of a spec, in the order of their first cell."""
        here = self.specs.index(spec)
        names = dict.fromkeys(ref.target for ref in self.refs if ref.spec == here)
        return [self.target(spec.workload, name) for name in names]

    def in_running_order(self, cells: Iterable[Cell]) -> list[Cell]:
        """Repeat by repeat, with the targets reshuffled in each, so that drift affects all targets equally.

        The longest specs of a repeat start first: at the end of a run, little is left to wait for.
        """
        blocks: dict[Repeat, dict[str, list[Cell]]] = {}
        for cell in cells:
            blocks.setdefault(cell.repeat, {}).setdefault(cell.spec.name, []).append(cell)
        ordered: list[Cell] = []
        for (seed, fold), specs in blocks.items():
            for name, group in sorted(specs.items(), key=lambda item: -item[1][0].spec.work):
                random.Random(f"{self.run_id}|{seed}|{fold or 0}|{name}").shuffle(group)  # noqa: S311 (an order)
                ordered += group
        return ordered
