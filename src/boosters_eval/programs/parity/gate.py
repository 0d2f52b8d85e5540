"""Whether the bindings of a project agree: the decision that fails a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.errors import ExitCode, UnknownNameError
from boosters_eval.core.findings import Findings
from boosters_eval.core.model import Model
from boosters_eval.programs.parity.rows import current_rows, merge, read_rows
from boosters_eval.programs.parity.verdicts import BindingStatus, ParityVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boosters_eval.core.findings import Screen
    from boosters_eval.programs.parity.request import ParityGateRequest
    from boosters_eval.programs.parity.rows import ParityRow


def decide_gate(request: ParityGateRequest) -> ParityDecision:
    """Judge the rows of files."""
    return decide(
        merge(*map(read_rows, request.csv)),
        strict_external=request.strict_external,
        own=tuple(request.own),
        allow_absent=request.allow_absent,
    )


class ParityDecision(Findings, Model):
    """What the gate objects to, and what it looked at."""

    divergent: tuple[str, ...] = ()
    without_result: tuple[str, ...] = ()
    n_judged: int = 0
    n_absent: int = 0

    @property
    def objections(self) -> tuple[str, ...]:
        """All sentences."""
        return (*self.divergent, *self.without_result)

    @property
    def exit_code(self) -> ExitCode:
        """A divergence is told first; nothing that was judged is no pass."""
        if self.divergent:
            return ExitCode.REGRESSION
        return ExitCode.EXECUTION_ERROR if self.without_result or not self.n_judged else ExitCode.SUCCESS

    @property
    def summary(self) -> str:
        """The decision in one line."""
        word = {0: "AGREE", 1: "DIVERGE", 2: "INCOMPLETE"}[int(self.exit_code)]
        absent = f", {self.n_absent} left out" if self.n_absent else ""
        counts = f"{len(self.divergent)} divergent, {len(self.without_result)} without a result"
        return f"{word}: {self.n_judged} cell{'' if self.n_judged == 1 else 's'} judged, {counts}{absent}"

    def show(self, screen: Screen) -> None:
        """The objections, and the decision."""
        for sentence in (*self.objections, self.summary):
            screen.say(sentence)


def _words(row: ParityRow) -> tuple[ParityVerdict | None, ParityVerdict | None]:
    return row.binding_verdict, row.verdict


_OLDER = "only measured on other data or with other parameters than the newest of that size"


def _lack(row: ParityRow) -> str:
    """Why a row cannot be judged; '' if it can."""
    if row.status is not BindingStatus.OK:
        return f"{row.status.value}: {row.message or 'no outcome'}"
    return "" if any(_words(row)) else "it has no verdict"


def decide(
    rows: Iterable[ParityRow], *, strict_external: bool = False, own: tuple[str, ...] = (), allow_absent: bool = False
) -> ParityDecision:
    """Judge the rows of the project's own bindings, and those of others on request.

    They are the rows that every rendering shows. A binding that was only measured on older data has no result.
    """
    rows = list(rows)
    current, left_out = current_rows(rows)
    older = {place: row for place, row in left_out.items() if place not in current}
    known = {row.backend for row in rows}
    unknown = next((name for name in own if name not in known), None)
    if unknown is not None:
        raise UnknownNameError("backend", unknown, sorted(known))
    divergent: list[str] = []
    lacking: list[str] = []
    judged = absent = 0
    for row in (*current.values(), *older.values()):
        mine = row.backend in own if own else row.own
        excused = allow_absent or not mine  # a binding of one's own that is not installed is not known to agree
        if not (mine or strict_external):
            continue
        name = f"{row.method} {row.n}x{row.p} {row.backend}, {row.threads} thread{'s' if row.threads > 1 else ''}"
        if row.status is BindingStatus.NOT_IMPLEMENTED or (row.status is BindingStatus.NOT_AVAILABLE and excused):
            absent += 1
            continue
        lack = _OLDER if row.place in older else _lack(row)
        if lack:
            lacking.append(f"{name}: {lack}")
            continue
        judged += any(word not in (None, ParityVerdict.NO_ORACLE, ParityVerdict.ORACLE_MISSING) for word in _words(row))
        for word, against, far in (
            (row.binding_verdict, "the canonical binding", row.binding_max_abs),
            (row.verdict, f"the oracle {row.oracle}", row.divergence),
        ):
            if word is ParityVerdict.DIVERGENT:
                how_far = "" if far is None else f" ({far:.3g})"
                divergent.append(f"{name}: divergent from {against.strip()}{how_far}")
            elif word is ParityVerdict.ORACLE_MISSING:
                lacking.append(f"{name}: oracle_missing: {against.strip()} has no prediction to compare it with")
    return ParityDecision(divergent=tuple(divergent), without_result=tuple(lacking), n_judged=judged, n_absent=absent)
