"""What a cell needs on another machine: its inputs, by digest or as text, and the user's own files, which do not go."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boosters_eval.cluster.messages import Input, Order, Question, WantedLane
from boosters_eval.cluster.parcels import Parcels, digest_of
from boosters_eval.core.errors import UnsupportedError
from boosters_eval.engine.lanes import identities, longest_timeout
from boosters_eval.engine.workload import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.cluster.parcels import Parcel
    from boosters_eval.engine.cell import Lane
    from boosters_eval.engine.executor import Work


class CellRequests:
    """The inputs of a run's cells, and what nodes are asked about."""

    def __init__(self, works: Sequence[Work], version: str, parcels: Parcels) -> None:
        _refuse_bound(works)
        wanted = identities(works)
        self._lanes: dict[Lane, int] = {lane: number for number, lane in enumerate(wanted)}
        self.widest = max((work.cell.spec.n_threads for work in works), default=1)
        self.alone = any(work.cell.spec.alone for work in works)
        self._of_path: dict[str, Parcel] = {}
        self.parcels: dict[str, Parcel] = {}  # by digest
        self.digests: dict[str, tuple[str, ...]] = {}  # of each cell's inputs, by its key
        for work in works:
            self._pack(work, parcels)
        texts = {text for work in works for text in (*work.cell.lane.preload, *work.inputs.values())}
        files = {file for text in texts for file in _files_in(_parsed(text))}
        files |= {file for found in wanted.values() for file in _files_in([found.address, found.workload])}
        self.question = Question(
            run=secrets.token_hex(8),
            version=version,
            lanes=tuple(WantedLane.of(lane, identity) for lane, identity in wanted.items()),
            files={file: digest_of(Path(file)) for file in sorted(files)},
            timeout_s=longest_timeout(works),
            device=any(work.cell.spec.uses_device for work in works),
        )

    def _pack(self, work: Work, parcels: Parcels) -> None:
        found = []
        for name, value in work.inputs.items():
            if self._kind(work, name, value) == "parcel":
                parcel = self._of_path.get(value)
                if parcel is None:
                    parcel = self._of_path[value] = parcels.of(value)
                    self.parcels[parcel.digest] = parcel
                found.append(parcel.digest)
        self.digests[work.cell.key] = tuple(found)

    def _kind(self, work: Work, name: str, value: str) -> str:
        workload = WORKLOADS[work.cell.spec.workload]
        if name in workload.stores:
            return "written"
        if name in workload.makes:
            return "made"
        return "parcel" if value in self._of_path or (Path(value).is_absolute() and Path(value).exists()) else "text"

    def folders(self, work: Work) -> dict[str, str]:
        """Where what the cell stores belongs on this machine."""
        return {name: value for name, value in work.inputs.items() if self._kind(work, name, value) == "written"}

    def order(self, work: Work) -> str:
        """The cell as a node is told of it."""
        cell, inputs = work.cell, {}
        for name, value in work.inputs.items():
            kind = self._kind(work, name, value)
            text = self._of_path[value].digest if kind == "parcel" else value if kind == "text" else ""
            inputs[name] = Input(kind=kind, text=text)
        return Order(
            lane=self._lanes[cell.lane],
            spec=cell.spec.model_dump(mode="json"),
            repeat=tuple(cell.repeat),
            inputs=inputs,
            timeout_s=work.limits.timeout_s,
            memory_mb=work.limits.memory_mb,
        ).model_dump_json()


def _refuse_bound(works: Sequence[Work]) -> None:
    for work in works:
        reason = WORKLOADS[work.cell.spec.workload].bound_here(work.cell, work.inputs)
        if reason is not None:
            raise UnsupportedError(f"{work.cell} cannot run on the nodes of a cluster: {reason}.")


def _parsed(text: str) -> Any:
    """What is written in JSON: the addresses of the user's metrics and steps are."""
    try:
        return json.loads(text) if text[:1] in "{[" else None
    except ValueError:
        return None


def _files_in(value: Any) -> Iterator[str]:
    """The files that addresses name; one that has a module is imported by its name instead."""
    if isinstance(value, dict):
        file = value.get("file")
        if isinstance(file, str) and file and (value.get("module") is None or "name" in value) and Path(file).is_file():
            yield file
        for part in value.values():
            yield from _files_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _files_in(part)
