"""What `gate` is asked for."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (a request keeps its annotations)
from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import (
    InHome,
    Request,
    choice,
    count,
    number,
    output_option,
    parameter,
    path,
    quiet_option,
    text,
)
from boosters_eval.core.terms import named, the
from boosters_eval.engine.settings import run_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

TIERS = {"bronze": 10, "silver": 30, "gold": 100}  # the fewest units for a promotion
VOUCHED = {"bronze": 0.79, "silver": 0.92, "gold": 0.97}  # the highest threshold that so many perfect scores cover


DEFAULT_TIER = "bronze"


def threshold_is_required(tier: str) -> ConfigError:
    return ConfigError(
        f"{the('threshold')} is required: the share of the quality that must be kept for certain. A good one is"
        f" {VOUCHED[tier]} for tier {tier}, the most that {TIERS[tier]} data sets can vouch for."
    )


class GateRequest(InHome, Request):
    command: ClassVar = "gate"
    help: ClassVar = (
        "Decide whether a version may be released.\n\n"
        "It is promoted only if it keeps the share of the baseline's quality that the threshold asks for, 95 % sure"
        " and on enough data sets. Exit 0 if it is promoted, 1 if it is held, 2 if nothing could be computed, 3 for bad"
        " input."
    )
    program: ClassVar = "boosters_eval.programs.gate.decision:decide_and_write"

    run: str | None = run_parameter("A finished run")
    baseline: Path | None = parameter(
        None, kind=path(), help="The baseline or results file that the run is compared with."
    )
    scores: Path | None = parameter(
        None, kind=path(), help="Instead of a run: a JSON or CSV file with case_id, score[, class, dataset]."
    )
    library: str = parameter(
        "boosters", short="-l", kind=text("the name of a library", "NAME"), help="The library under test."
    )
    tier: str | None = parameter(
        None,
        kind=choice(*TIERS),
        help="bronze (10 data sets), silver (30) or gold (100). Default: the policy's of the run, or bronze.",
    )
    threshold: float | None = parameter(
        None,
        kind=number("above 0 and at most 1", above=0, most=1),
        help="Required, unless the run has a policy: the share of the quality that must be kept for certain, such as"
        " 0.97. As few data sets as a tier needs can vouch for at most 0.79 (bronze), 0.92 (silver) or 0.97 (gold).",
    )
    min_cases: int | None = parameter(
        None, kind=count(1), help="The minimum number of data sets, if more than the tier's."
    )
    held_out: Sequence[str] = parameter(
        (),
        kind=text("names of data sets or configs", "NAME"),
        help="Data sets or configs of the run that are held out.",
    )
    no_held_out: bool = parameter(False, help="Require no held-out data sets.")
    allow_changed_parameters: bool = parameter(False, help="Accept parameters that differ from the baseline's.")
    allow_low_coverage: bool = parameter(
        False, help="Accept a threshold that is too high for so few data sets to vouch for."
    )
    allow_flaky: int = parameter(0, kind=count(0), help="How many cells may have failed before they finished.")
    output: Path | None = output_option("File for the decision. Default: in gate/ under the home of the runs.")
    json: bool = parameter(False, door="options", help="Print the decision as JSON.")
    quiet: bool = quiet_option("Print nothing; only write the file and set the exit code.")

    def check(self) -> None:
        super().check()
        tier = self.tier or DEFAULT_TIER
        if self.threshold is None and self.run is None:
            raise threshold_is_required(tier)
        least = TIERS[tier]
        if self.min_cases is not None and self.min_cases < least:
            raise ConfigError(
                f"{the('min_cases')} must be at least {least}, which tier {tier} needs. Got {self.min_cases} instead."
            )
        if self.no_held_out and self.held_out:
            raise ConfigError(f"Use either {named('held_out')} or {named('no_held_out')}, not both.")
        run, baseline, scores = map(named, ("run", "baseline", "scores"))
        if self.scores is not None and (self.run is not None or self.baseline is not None or self.held_out):
            raise ConfigError(f"Use either {scores}, or {run} with {baseline} (and {named('held_out')}), not both.")
        if self.scores is None and (self.run is None or self.baseline is None):
            raise ConfigError(f"The gate needs {run} with {baseline}, or {scores}.")
