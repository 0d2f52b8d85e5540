"""What rows come to: whether a project's own bindings agree, and the report that all renderings and JSON show."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from functools import lru_cache
from itertools import product
from math import exp, isfinite, log, sqrt
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field

from boosters_eval.core.errors import ConfigError, ExitCode, pick
from boosters_eval.core.files import FORMAT, Format, load_json
from boosters_eval.core.model import FileModel, Model
from boosters_eval.core.text import count_of, join_words
from boosters_eval.programs.parity.method import Size
from boosters_eval.programs.parity.rows import ParityRow, Place, merge, read_rows, select_current
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict, Word
from boosters_eval.reports.document import Document, Listing, Section
from boosters_eval.reports.findings import Reported, ReportedFindings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.request import ParityGateRequest


def decide_gate(request: ParityGateRequest) -> ParityDecision:
    """Whoever gives a registry is told of the bindings that it declares and that have no row at all."""
    from boosters_eval.programs.parity import catalog  # noqa: PLC0415 (it lists what this module names)

    catalog.register_files(request.registry)
    rows = merge(*map(read_rows, request.csv))
    return decide(
        rows,
        strict_external=request.strict_external,
        own=tuple(request.own),
        allow_absent=request.allow_absent,
        declared=catalog.list_own(rows) if request.registry else (),
    )


class ParityDecision(ReportedFindings, Model):
    """What the gate objects to, and what it looked at."""

    divergent: tuple[str, ...] = ()
    without_result: tuple[str, ...] = ()
    known_defects: tuple[str, ...] = ()  # of others, which are seen, and fail nothing
    n_judged: int = 0
    n_absent: int = 0

    @property
    def objections(self) -> tuple[str, ...]:
        return (*self.divergent, *self.without_result)

    @property
    def exit_code(self) -> ExitCode:
        """A divergence is told first; nothing that was judged is no pass."""
        if self.divergent:
            return ExitCode.REGRESSION
        return ExitCode.EXECUTION_ERROR if self.without_result or not self.n_judged else ExitCode.SUCCESS

    @property
    def summary(self) -> str:
        word = {0: "AGREE", 1: "DIVERGE", 2: "INCOMPLETE"}[int(self.exit_code)]
        absent = f", {self.n_absent} left out (not installed here, or without the method)" if self.n_absent else ""
        counts = f"{len(self.divergent)} too far apart, {len(self.without_result)} without a result"
        known = f", {count_of(len(self.known_defects), 'known defect')} of others" if self.known_defects else ""
        return f"{word}: {count_of(self.n_judged, 'prediction')} compared, {counts}{known}{absent}"

    def document(self) -> Document:
        listed = (("Objections", self.objections), ("Known defects of others", self.known_defects))
        sections = (
            Section(heading.lower().replace(" ", "-"), heading, (Listing.of(*lines),) if lines else ())
            for heading, lines in listed
        )
        return Document("Parity gate", (self.summary,), sections=tuple(sections))

    def show(self, screen: Screen) -> None:
        for sentence in (*self.known_defects, *self.objections, self.summary):
            screen.say(sentence)


MAIN = "the project's main binding"
APART = (ParityVerdict.DIVERGENT, ParityVerdict.KNOWN_DEFECT)
_UNCOMPARED = (None, ParityVerdict.NO_ORACLE, ParityVerdict.ORACLE_MISSING)
_OLDER = "only measured on other data or with other parameters than the newest of that size"


def name_kind(own: bool) -> str:
    """Whether a backend belongs to the project under test."""
    return "under test" if own else "other"


def _lack(row: ParityRow) -> str:
    """Why a row cannot be judged; '' if it can."""
    if row.status is not BindingStatus.OK:
        return f"{row.status.value}: {row.message or 'no outcome'}"
    return "" if row.binding_verdict or row.verdict else "it has no verdict"


def decide(
    rows: Iterable[ParityRow],
    *,
    strict_external: bool = False,
    own: tuple[str, ...] = (),
    allow_absent: bool = False,
    declared: Iterable[tuple[str, str]] = (),
) -> ParityDecision:
    """Judge the rows of the project's own bindings, and those of others on request.

    They are the rows that every rendering shows. A binding that was only measured on older data has no result, nor has
    one that is declared, as a method and its backend, and has no row.
    """
    rows = list(rows)
    current, left_out = select_current(rows)
    older = {place: row for place, row in left_out.items() if place not in current}
    own = tuple(pick("backend", name, [row.backend for row in rows]) for name in own)
    divergent: list[str] = []
    known: list[str] = []
    lacking: list[str] = []
    judged = absent = 0
    for row in (*current.values(), *older.values()):
        mine = row.backend in own if own else row.own
        excused = allow_absent or not mine  # a binding of one's own that is not installed is not known to agree
        if not (mine or strict_external):
            continue
        name = f"{row.method} {row.n}x{row.p} {row.backend}, {count_of(row.threads, 'thread')}"
        if row.status is BindingStatus.NOT_IMPLEMENTED or (row.status is BindingStatus.NOT_AVAILABLE and excused):
            absent += 1
            continue
        if row.status is BindingStatus.STALE and row.place not in older:
            divergent.append(f"{name}: its answer does not depend on its input: {row.message}")
            continue
        lack = _OLDER if row.place in older else _lack(row)
        if lack:
            lacking.append(f"{name}: {lack}")
            continue
        comparisons = (
            (row.binding_verdict, MAIN, row.binding_max_abs),
            (row.verdict, f"the reference {row.oracle}", row.divergence),
        )
        judged += any(word not in _UNCOMPARED for word, *_ in comparisons)
        apart = [
            f"from {against.strip()}" + ("" if far is None else f" by {far:.3g}")
            for word, against, far in comparisons
            if word in APART
        ]
        told = row.convention if row.verdict is ParityVerdict.KNOWN_DEFECT else row.diagnosis
        if apart and row.verdict is ParityVerdict.KNOWN_DEFECT and not mine:
            known.append(f"{name}: {told}")
        elif apart:
            divergent.append(f"{name}: differs {join_words(apart)}{f': {told}' if told else ''}")
        if row.verdict is ParityVerdict.ORACLE_MISSING:
            lacking.append(f"{name}: the reference has no stored prediction to compare it with")
    present = {(row.method, row.backend) for row in rows}
    lacking += [
        f"{method} {backend}: it is declared, and has no row"
        for method, backend in declared
        if (method, backend) not in present and (not own or backend in own)
    ]
    return ParityDecision(
        divergent=tuple(divergent),
        without_result=tuple(lacking),
        known_defects=tuple(known),
        n_judged=judged,
        n_absent=absent,
    )


WORDS: dict[str, Word] = {word.value: word for word in (*ParityVerdict, *BindingStatus) if word is not BindingStatus.OK}
QUIET = (None, ParityVerdict.BIT_EXACT, ParityVerdict.ROUNDING, ParityVerdict.NO_ORACLE)
_MAX_CELLS = 1_000_000  # places in the tables: a file with as many backends as sizes must not fill the memory
_KINSHIP = 0.5  # of the backends of two methods that share a matrix
_MAX_RUNS = 40  # of the protocol


class ParityCell(FileModel):
    """A row, and what follows from the other rows: its speed-up over the oracle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: ParityRow
    speedup: float | None = None  # the oracle's time at the same size and threads over this one
    speedup_low: float | None = None  # a 95 % interval, where both were timed in several rounds
    speedup_high: float | None = None

    @property
    def word(self) -> str:
        row = self.row
        found = row.status if row.status is not BindingStatus.OK else row.verdict or ParityVerdict.NO_ORACLE
        return str(found.value)

    @property
    def mark(self) -> str:
        return self.row.status.mark

    @property
    def told_apart(self) -> bool | None:
        """Whether it is known to be faster or slower than the oracle; None where no interval is known."""
        if self.speedup_low is None or self.speedup_high is None:
            return None
        return not self.speedup_low <= 1 <= self.speedup_high

    @property
    def failed(self) -> bool:
        """Whether it was tried and has no result."""
        return bool(self.mark) and self.row.status.started

    @property
    def notable(self) -> bool:
        """Whether a reader must know of it: it failed, or it does not simply agree."""
        row = self.row
        return self.failed or row.verdict not in QUIET or row.binding_verdict in APART

    @property
    def reason(self) -> str:
        """Why there is no result, or what the verdict rests on."""
        row = self.row
        ending = f"{row.signal}: " if row.signal else ""
        return f"{ending}{row.message}" if row.message or row.signal else row.convention


class MethodAxes(Model):
    """What a method was run with: the axes of its table."""

    name: str
    backends: tuple[str, ...]
    sizes: tuple[Size, ...]
    threads: tuple[int, ...]
    oracle: str = ""
    metric: str = ""
    tolerance: float | None = None


class BackendScore(Model):
    """A backend over all its cells."""

    backend: str
    language: str
    own: bool
    words: dict[str, int]  # verdicts and statuses, without those that do not occur
    n_cells: int
    n_failed: int
    binding_divergent: int = 0  # from the canonical binding
    median_speedup: float | None = None


class ParityReport(Reported, Model):
    """The content of every rendering."""

    schema_version: Format = FORMAT
    kind: Literal["boosters-eval parity"] = "boosters-eval parity"
    hosts: tuple[dict[str, str], ...] = ()  # the machines, as the runs recorded them
    versions: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    first_measured: str = ""
    last_measured: str = ""
    totals: dict[str, int] = Field(default_factory=dict)  # cells per verdict or status
    methods: tuple[MethodAxes, ...] = ()
    matrices: tuple[tuple[str, ...], ...] = ()  # methods that share most of their backends
    scores: tuple[BackendScore, ...] = ()
    cells: tuple[ParityCell, ...] = ()
    notes: tuple[str, ...] = ()

    def document(self) -> Document:
        from boosters_eval.programs.parity.document import lay_out_report  # noqa: PLC0415 (it knows this module)

        return lay_out_report(self)


def build_parity_report(rows: Iterable[ParityRow], declared: Mapping[str, Sequence[str]] | None = None) -> ParityReport:
    """Rows with distinct keys, as tables. `declared` names the backends of methods, shown even if they have no rows."""
    given = list(rows)
    current, left_out = select_current(given)
    methods = _axes([*current.values(), *left_out.values()], declared or {})
    cells = _with_speedups(_filled(current, methods, left_out))
    started = sorted(row.measured_at for row in given if row.measured_at)
    older = "1 older row was" if len(left_out) == 1 else f"{len(left_out)} older rows were"
    note = f"{older} measured on other data or with other parameters than the newest of that size, and left out."
    return ParityReport(
        hosts=tuple(read_facts(text) for text in dict.fromkeys(row.host_json for row in given if row.host_json)),
        versions=_versions(given),
        first_measured=started[0] if started else "",
        last_measured=started[-1] if started else "",
        totals=_count_words(cells),
        methods=methods,
        matrices=_matrices(methods),
        scores=_scores(cells),
        cells=tuple(cells),
        notes=(note,) if left_out else (),
    )


def _axes(rows: Iterable[ParityRow], declared: Mapping[str, Sequence[str]]) -> tuple[MethodAxes, ...]:
    by_method: dict[str, list[ParityRow]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    methods = []
    for name, own in by_method.items():
        judged = next((row for row in own if row.oracle), None)
        methods.append(
            MethodAxes(
                name=name,
                backends=tuple(dict.fromkeys((*declared.get(name, ()), *(row.backend for row in own)))),
                sizes=tuple(sorted({Size(row.n, row.p) for row in own})),
                threads=tuple(sorted({row.threads for row in own})),
                oracle=judged.oracle if judged else "",
                metric=judged.divergence_metric if judged else "",
                tolerance=judged.tolerance if judged else None,
            )
        )
    places = sum(len(method.backends) * len(method.sizes) * len(method.threads) for method in methods)
    if places > _MAX_CELLS:
        raise ConfigError(f"The files span {places} cells; at most {_MAX_CELLS} can be rendered at once.")
    return tuple(methods)


def _filled(
    rows: Mapping[Place, ParityRow], methods: Sequence[MethodAxes], left_out: Mapping[Place, ParityRow]
) -> list[ParityRow]:
    """A row for every place: what was not run is shown as such."""
    known = {row.backend: row for row in (*left_out.values(), *rows.values())}
    places = (
        Place(method.name, backend, *size, threads)
        for method in methods
        for backend, size, threads in product(method.backends, method.sizes, method.threads)
    )
    return [rows.get(place) or _missing(place, known.get(place.backend), left_out.get(place)) for place in places]


def _missing(place: Place, like: ParityRow | None, older: ParityRow | None) -> ParityRow:
    told = "not in the given files"
    if older is not None:
        told = f"only measured on other data or with other parameters ({older.measured_at or 'no date'})"
    language, own = (like.language, like.own) if like else ("", False)
    status = BindingStatus.NOT_RUN
    return ParityRow(**place._asdict(), language=language, own=own, status=status, message=told)


def _with_speedups(rows: Sequence[ParityRow]) -> list[ParityCell]:
    places = {row.place: row for row in rows}
    cells = []
    for row in rows:
        oracle = places.get(Place(row.method, name_oracle(row.oracle), row.n, row.p, row.threads))
        if oracle is None or oracle is row or not _on_one_machine(oracle, row):
            cells.append(ParityCell(row=row, speedup=1.0 if oracle is row and row.reported_ms else None))
        else:
            cells.append(ParityCell(row=row, **_compare_times(oracle, row)))
    return cells


def _compare_times(oracle: ParityRow, row: ParityRow) -> dict[str, float]:
    """The speed-up, with an interval where both were timed in several rounds.

    Rounds are the unit: within one process, the machine's mood and the layout of its memory are the same for all runs.
    """
    if not (oracle.reported_ms and row.reported_ms):
        return {}
    rounds = [
        log(_summarize(first) / _summarize(second))
        for first, second in zip((oracle.samples_ns, *oracle.rounds_ns), (row.samples_ns, *row.rounds_ns), strict=False)
        if first and second and _summarize(first) and _summarize(second)
    ]
    if len(rounds) < 2:
        ratio = oracle.reported_ms / row.reported_ms
        return {"speedup": ratio} if isfinite(ratio) else {}
    middle, low, high = bound_mean(rounds)
    return {"speedup": exp(middle), "speedup_low": exp(low), "speedup_high": exp(high)}


def _summarize(samples: Sequence[int]) -> float:
    """The time of a round; the warm start counts only if there is nothing else."""
    return median(samples[1:] or samples)


def bound_mean(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean of a few numbers, and where it lies with 95 % by the distribution of Student."""
    from scipy.special import stdtrit  # noqa: PLC0415 (whoever only gates needs none of it)

    middle = fmean(values)
    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / sqrt(len(values))
    return middle, middle - half, middle + half


def _on_one_machine(*rows: ParityRow) -> bool:
    """Whether times may be compared; where no machine was recorded, nothing speaks against it."""
    if len({row.host_json for row in rows}) == 1:
        return True
    hosts = [read_facts(row.host_json) for row in rows]
    return len({tuple(map(host.get, ("processor", "architecture", "processors"))) for host in hosts}) == 1


def name_oracle(oracle: str) -> str:
    """The backend in a row's oracle, which is a backend and its version."""
    return oracle.rpartition(" ")[0]


def _versions(rows: Iterable[ParityRow]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for text in dict.fromkeys(row.versions_json for row in rows if row.versions_json):
        for name, version in read_facts(text).items():
            found.setdefault(name, set()).add(version)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


@lru_cache(maxsize=10_000)
def read_facts(text: str) -> dict[str, str]:
    """The names and values of a JSON column; what is no JSON object is shown as it is."""
    found = _read_json(text)
    if not isinstance(found, dict):
        return {"unreadable": text} if text else {}
    return {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}


def _read_json(text: str) -> Any:
    try:
        return load_json(text, "a JSON column")
    except ConfigError:
        return None


def _count_words(cells: Iterable[ParityCell]) -> dict[str, int]:
    counts = Counter(cell.word for cell in cells)
    return {word: counts[word] for word in WORDS if counts[word]}


def _scores(cells: Sequence[ParityCell]) -> tuple[BackendScore, ...]:
    by_backend: dict[str, list[ParityCell]] = {}
    for cell in cells:
        by_backend.setdefault(cell.row.backend, []).append(cell)
    scores = []
    for backend, own in by_backend.items():
        speedups = [cell.speedup for cell in own if cell.speedup is not None]
        scores.append(
            BackendScore(
                backend=backend,
                language=own[0].row.language,
                own=own[0].row.own,
                words=_count_words(own),
                n_cells=len(own),
                n_failed=sum(cell.failed for cell in own),
                binding_divergent=sum(cell.row.binding_verdict in APART for cell in own),
                median_speedup=median(speedups) if speedups else None,
            )
        )
    return tuple(scores)


def _matrices(methods: Sequence[MethodAxes]) -> tuple[tuple[str, ...], ...]:
    """Methods whose backends are mostly the same share a matrix, so that none is sparse."""
    groups: list[tuple[set[str], list[str]]] = []
    for method in methods:
        own = set(method.backends)
        kin = next((group for group in groups if len(group[0] & own) >= _KINSHIP * len(group[0] | own)), None)
        if kin is None:
            groups.append((own, [method.name]))
        else:
            kin[0].update(own)
            kin[1].append(method.name)
    return tuple(tuple(names) for _, names in groups)


def reproduce_parts(row: ParityRow) -> tuple[str, str]:
    """The command in two parts, each of which many cells share: what is run, and how."""
    capped = row.stop_reason == "max_runs" and row.total_runs is not None and row.total_runs < _MAX_RUNS
    limit = f" --max-runs {row.total_runs}" if capped else ""
    what = _what(row.method, name_oracle(row.oracle), row.backend, row.registry_json)
    return what, f"--sizes {row.n}x{row.p} --threads {row.threads}{limit} --out-csv again.csv"


@lru_cache(maxsize=10_000)
def _what(method: str, oracle: str, backend: str, registry: str) -> str:
    backends = dict.fromkeys(name for name in (oracle, backend) if name)
    found = _read_json(registry)
    names = [file for file in found if isinstance(file, str)] if isinstance(found, list) else []
    files = [word for file in names for word in ("--registry", file)]
    return shlex.join(["boosters-eval", "parity", "run", *files, "--methods", method, "--backends", ",".join(backends)])
