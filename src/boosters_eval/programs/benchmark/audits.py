"""What the audit of a data set says of a run: whether the run mends a finding, and how its libraries treat columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boosters_eval.core.text import join_words
from boosters_eval.datasets import open_stored
from boosters_eval.datasets.config import AuditFinding
from boosters_eval.metrics.task import Task
from boosters_eval.runners.installed import runner_for
from boosters_eval.runners.parameters import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boosters_eval.datasets import Stored
    from boosters_eval.datasets.config import DataAudit
    from boosters_eval.engine.plan import Plan
    from boosters_eval.programs.benchmark.spec import FitSpec

_MOST_NAMED = 3  # columns in a hint


def adapt_audits(
    audits: Mapping[str, DataAudit], plan: Plan, specs: Mapping[str, FitSpec], own: Mapping[str, Stored]
) -> dict[str, DataAudit]:
    """The audits for this plan. `own` has the user's own data sets, where both profiles may be asked for."""
    found = {}
    for name, audit in audits.items():
        ours = [spec for spec in specs.values() if spec.dataset == name]
        adapted = _tell_centering(audit, ours)
        touched = _find_touched(ours, plan, own[name]) if name in own else []
        found[name] = adapted.with_finding(_hint_at_profiles(touched)) if touched else adapted
    return found


def _tell_centering(audit: DataAudit, specs: Sequence[FitSpec]) -> DataAudit:
    """What float32 blurs is mended for all libraries, for one of two profiles, or not where a library is judged."""
    centered = {spec.centered for spec in specs}
    if True in centered:
        return audit.for_centered(partly=False in centered)
    return audit.for_judged() if any(spec.profile is Profile.PARITY for spec in specs) else audit


def _find_touched(specs: Sequence[FitSpec], plan: Plan, data: Stored) -> list[str]:
    """The columns that matter and that libraries treat in their own ways, unless other profiles are run as well."""
    if any(spec.profile is not Profile.PARITY or spec.task is Task.RANKING for spec in specs):
        return []
    touched: dict[str, None] = {}
    for spec in specs:
        runners = {runner.library(): runner for target in plan.targets_of(spec) if (runner := runner_for(target))}
        marks = [mark for runner in runners.values() for mark in runner.translate(spec.request(0)).marks]
        inexact = {mark.parameter for mark in marks if mark.kind in ("own", "approximated")}
        if len(runners) > 1:
            from boosters_eval.datasets.auditing import name_touched  # noqa: PLC0415 (loads pandas)

            touched |= dict.fromkeys(name_touched(open_stored(data.path), spec.task, inexact))
    return list(touched)


def _hint_at_profiles(columns: Sequence[str]) -> AuditFinding:
    named = join_words([f"'{name}'" for name in columns], most=_MOST_NAMED)
    text = f"libraries treat {named} each in its own way, which may decide their order"
    return AuditFinding(kind="own-treatment", text=text, option="--profile both")
