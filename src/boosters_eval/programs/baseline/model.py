"""The baseline's file: a superset of the RFC's own, whose schema version is 1 and which is read too."""

from __future__ import annotations

import json
import math
import statistics
from contextlib import suppress
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from annotated_types import Ge, MinLen
from pydantic import ConfigDict, Field, StringConstraints, ValidationError, model_validator

from boosters_eval.core.errors import ConfigError, FileFormatError, find_doubled, require
from boosters_eval.core.files import (
    FORMAT,
    Format,
    check_format,
    check_path,
    compute_digest,
    dump_canonical,
    load_json,
    read_text,
    write_atomically,
)
from boosters_eval.core.model import FileModel
from boosters_eval.core.request import Part
from boosters_eval.core.text import escape_json
from boosters_eval.engine.cell import Build
from boosters_eval.metrics import find
from boosters_eval.metrics.task import Task
from boosters_eval.reports.findings import Reported
from boosters_eval.runners.result import KeptRows, SplitFacts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from boosters_eval.reports.document import Document

_OF_RFC = 1
HOME_LIBRARY = "boosters"  # the library whose repository this tool serves
_SNIFF = 1_000_000  # a foreign file of more characters than this is refused before it is parsed
_WIDTH = 110


class _Part(FileModel):
    """A part of the file: frozen, unknown keys and NaN refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


CellName = Annotated[str, StringConstraints(pattern=r"^\d{1,20}(/\d{1,9})?$")]  # "42", or "42/0" where there are folds


class MetricStats(_Part):
    """One metric of one (config, library) pair over its cells."""

    mean: float
    std: Annotated[float, Ge(0)] | None  # ddof 1; None for one cell, whose spread is unknown
    n: Annotated[int, Ge(1)]
    per_seed: dict[CellName, float] = Field(default_factory=dict)

    @classmethod
    def of(cls, values: dict[str, float]) -> Self:
        """The values of some cells, by the names of the cells."""
        numbers = list(values.values())
        std = statistics.stdev(numbers) if len(numbers) > 1 else None
        return cls(mean=math.fsum(numbers) / len(numbers), std=std, n=len(numbers), per_seed=values)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """A mean that was edited by hand is no record of anything."""
        if self.per_seed and not (
            len(self.per_seed) == self.n
            and math.isclose(math.fsum(self.per_seed.values()) / self.n, self.mean, rel_tol=1e-9, abs_tol=1e-300)
        ):
            raise ValueError("mean and n must be those of per_seed")
        return self


class FitFacts(_Part):
    """What one fit made besides its scores: a regression is explained by what of it moved."""

    trees: int | None = None
    rounds: int | None = None
    leaves: int | None = None
    training: float | None = None  # the primary metric on training rows
    predictions: str | None = None  # a digest: equal ones are equal to the last bit
    kept: KeptRows | None = None  # the arrays in the file beside the baseline
    part: Part | None = None  # of a balanced split


class BaselineResult(_Part):
    """What is known of one (config, library) pair."""

    config: str
    library: str
    task: Task
    primary_metric: str
    metrics: dict[str, MetricStats]
    higher_is_better: bool | None = None  # of the primary metric; None: as the metric of this name is defined here
    dataset: str = ""
    profile: str = "parity"
    n_train: int | None = None
    n_valid: int | None = None
    data_digest: str | None = None
    split_digests: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)  # the native ones, without the seed
    times: dict[str, MetricStats] = Field(default_factory=dict)  # only of a run in timing mode on an idle machine
    failed_before: dict[CellName, Annotated[int, Ge(1)]] = Field(default_factory=dict)  # tries of the flaky cells
    split: SplitFacts | None = None  # None: at random
    outcomes_digest: str | None = None  # of how long each cell took, which no other run of the same plan repeats
    fits: dict[CellName, FitFacts] = Field(default_factory=dict)
    quantiles: tuple[float, ...] = ()  # that were predicted
    targets: tuple[str, ...] = ()  # the names of several
    build: Build | None = None
    source: str | None = None  # the run that it was recorded from: a key of the baseline's sources

    @model_validator(mode="after")
    def _primary_is_there(self) -> Self:
        if self.primary_metric not in self.metrics:
            raise ValueError(f"metrics must hold the primary metric '{self.primary_metric}'")
        return self

    @model_validator(mode="after")
    def _known_metrics_have_one_direction(self) -> Self:
        """A user's metric may mean anything; what is built in means one thing everywhere."""
        known = find(self.primary_metric)
        if known and known.info.built_in and self.higher_is_better not in (None, known.higher_is_better):
            more = "more" if known.higher_is_better else "less"
            right = str(known.higher_is_better).lower()
            raise ValueError(f"higher_is_better must be {right}: {more} {self.primary_metric} is better")
        return self

    @property
    def key(self) -> tuple[str, str]:
        return self.config, self.library

    @property
    def primary(self) -> MetricStats:
        return self.metrics[self.primary_metric]


class AbsentResult(_Part):
    """A (config, library) pair that was asked for when the baseline was recorded, but has no values in it."""

    config: str
    library: str
    reason: str


class Source(_Part):
    """A sealed run that pairs were recorded from."""

    run_id: str
    attempt: int
    journal: str  # the digest of its last line, which all others are chained to
    recorded_at: datetime

    @property
    def name(self) -> str:
        return f"{self.run_id}/{self.attempt}"


class Acceptance(_Part):
    """Why pairs were recorded although they got worse or disappeared."""

    at: datetime
    reason: Annotated[str, MinLen(1)]
    pairs: tuple[str, ...]  # in words, with what became of each


_Results = tuple[BaselineResult, ...]
_Seeds = tuple[int, ...]


class BaselineConfig(_Part):
    suite: str | None = None
    seeds: _Seeds = ()
    splits: Literal["balanced", "random"] = "random"  # as they were before there was a choice


class Baseline(Reported, _Part):
    """A recorded run."""

    schema_version: Format = FORMAT
    boosters_version: str | None = None
    boosters_eval_version: str | None = None
    recorded_at: datetime
    git_sha: str | None = None
    run_id: str | None = None
    config: BaselineConfig = BaselineConfig()
    libraries: dict[str, Build] = Field(default_factory=dict)
    mapping_digest: str | None = None
    machine: dict[str, Any] = Field(default_factory=dict)
    absent: tuple[AbsentResult, ...] = ()
    sources: dict[str, Source] = Field(default_factory=dict)
    accepted: tuple[Acceptance, ...] = ()
    results: Annotated[_Results, MinLen(1)]

    def document(self) -> Document:
        """What it holds, pair by pair."""
        from boosters_eval.programs.baseline.document import lay_out_baseline  # noqa: PLC0415 (it reads this)

        return lay_out_baseline(self)

    @model_validator(mode="before")
    @classmethod
    def _read_rfc(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or not _is_of_rfc(raw.get("schema_version")):
            return raw
        rfc = _RfcBaseline.model_validate(raw)  # what it does not say stays unknown
        return {
            **vars(rfc),
            "schema_version": FORMAT,
            "config": BaselineConfig(suite=rfc.config.suite, seeds=rfc.config.seeds),
            "libraries": {HOME_LIBRARY: Build(version=rfc.boosters_version, digest="")},
        }

    @model_validator(mode="after")
    def _sources_are_there(self) -> Self:
        named = {result.source for result in self.results if result.source is not None}
        if not named <= self.sources.keys():
            raise ValueError(f"sources must hold the run {min(named - self.sources.keys())}, which a pair names")
        if other := next((name for name, source in self.sources.items() if name != source.name), None):
            raise ValueError(f"sources must have the run {self.sources[other].name} under its own name, not as {other}")
        return self

    @model_validator(mode="after")
    def _each_pair_once(self) -> Self:
        if doubled := find_doubled(result.key for result in self.results):
            raise ValueError(f"results must hold each pair once, {' '.join(doubled[0])} occurs again")
        return self


class _RfcConfig(FileModel):
    """The RFC leaves the content of its config open."""

    suite: str | None = None
    seeds: _Seeds = ()


class _RfcBaseline(_Part):
    schema_version: Literal[1]
    boosters_version: str
    recorded_at: datetime
    git_sha: str | None = None
    config: _RfcConfig = _RfcConfig()
    results: _Results


def digest_content(raw: dict[str, Any]) -> str:
    """A digest of a baseline as it is in its file, but for the digest itself."""
    return compute_digest(dump_canonical({name: value for name, value in raw.items() if name != "digest"}), 32)


def digest_mapping(results: Iterable[BaselineResult]) -> str:
    """A digest of the effective parameters of all pairs."""
    mapping = sorted([result.config, result.library, result.parameters] for result in results)
    return compute_digest(json.dumps(mapping, sort_keys=True), 16)


def _is_of_rfc(version: Any) -> bool:
    return not isinstance(version, bool) and version == _OF_RFC


def check_recorded(path: Path) -> Path:
    """The path of a baseline, which must be there."""
    with suppress(PermissionError):  # which reading it tells
        if not path.exists():
            again = f"'boosters-eval baseline record {quote(str(path))}'"
            raise ConfigError(f"{path} does not exist; record it with {again}.")
    return path


def load_baseline(path: str | Path) -> Baseline:
    """Read a baseline; whatever else the file is, one sentence says so."""
    path = check_recorded(check_path(path))
    raw = _parse(path, read_text(path))
    version = raw["schema_version"]
    if not _is_of_rfc(version):
        check_format(version, str(path), "a baseline")
    raw.pop("digest", None)  # of the file, not of what it says: `audit_baseline` compares it
    if not raw["results"]:
        raise FileFormatError(f"{path} is an empty baseline: nothing can be checked against it.")
    try:
        return Baseline.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ")
        raise FileFormatError(f"{path} is not a valid baseline: {f'{where}: ' if where else ''}{what}.") from None
    except ConfigError as error:
        raise FileFormatError(f"{path} is not a valid baseline: {error}") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    if len(text) > _SNIFF and '"schema_version"' not in text:
        raise FileFormatError(f"{path} is not a boosters-eval baseline.")
    raw = load_json(text, str(path))
    if isinstance(raw, dict) and raw.get("kind") == "boosters-eval results":
        raise FileFormatError(
            f"{path} holds results, not a baseline; make one with"
            f" 'boosters-eval baseline record --results {quote(str(path))}'."
        )
    if not isinstance(raw, dict) or not {"schema_version", "results"} <= raw.keys():
        raise FileFormatError(f"{path} is not a boosters-eval baseline.")
    return raw


def save_baseline(baseline: Baseline, path: str | Path) -> None:
    """Write the file whole or not at all, laid out so that a change shows as a changed line."""
    require("baseline", baseline, Baseline, "a Baseline")
    raw = baseline.model_dump(mode="json", exclude_defaults=False)
    text = _layout({**raw, "digest": digest_content(raw)})
    write_atomically(check_path(path), escape_json(text) + "\n")


def _layout(value: Any, indent: int = 0) -> str:
    """JSON in which everything that fits on a line is on one line."""
    compact = json.dumps(value, ensure_ascii=False)
    if indent + len(compact) <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return compact
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(name, ensure_ascii=False)}: {_layout(item, indent + 1)}" for name, item in value.items()]
        opening, closing = "{", "}"
    else:
        parts = [_layout(item, indent + 1) for item in value]
        opening, closing = "[", "]"
    body = ",\n".join(inner + part for part in parts)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"
