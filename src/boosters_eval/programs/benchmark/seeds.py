"""How many seeds a run has; `--seeds auto` adds them until every pair has a verdict, at a fixed error rate."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from boosters_eval.core.errors import ConfigError, require
from boosters_eval.core.request import MAX_SEEDS
from boosters_eval.core.terms import given, the
from boosters_eval.core.text import count_of
from boosters_eval.runners.config import derive_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from boosters_eval.programs.benchmark.benchmarks import Benchmarks
    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.stats.sequential import SequentialRule
    from boosters_eval.stats.significance import Comparison

    # The comparisons of a look, judged at the level of the rule; it goes on until each has a verdict.
    _Pairs = Callable[[ResultCollection, SequentialRule], Iterable[Comparison]]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def count_seeds(seeds: int | str | None, default: int) -> int:
    """The RFC's precedence: the argument, BOOSTERS_EVAL_SEEDS, the suite's default."""
    text = str(seeds if seeds is not None else os.environ.get("BOOSTERS_EVAL_SEEDS") or default)
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MAX_SEEDS:
        what = the("seeds") if seeds is not None else "The BOOSTERS_EVAL_SEEDS variable"
        raise ConfigError(f"{what} must be a count from 1 to {MAX_SEEDS}. Got {text!r} instead.")
    return int(text)


def overrule_seeds(benchmarks: Benchmarks, seeds: int | str | None) -> Benchmarks:
    """The RFC's precedence: a number from the caller or the environment replaces seeds that a benchmark names."""
    wish = seeds if seeds is not None else os.environ.get("BOOSTERS_EVAL_SEEDS")
    if not wish:  # where the repeats are windows of time, further seeds only vary the model and must be asked for
        configs = (
            config.replace(seeds=derive_seeds(1)) if config.is_by_time and not config.own_seeds else config
            for config in benchmarks.configs
        )
        return replace(benchmarks, configs=tuple(configs))
    if benchmarks.folded:
        return benchmarks
    origin = given("seeds", seeds) if seeds is not None else f"BOOSTERS_EVAL_SEEDS {wish}"
    notes = [
        f"{config.name} names its own seeds ({', '.join(map(str, config.own_seeds))}); {origin} replaces them"
        for config in benchmarks.configs
        if config.own_seeds
    ]
    configs = (config.replace(seeds=()) if config.own_seeds else config for config in benchmarks.configs)
    return replace(benchmarks, configs=tuple(configs), notes=(*benchmarks.notes, *notes))


@dataclass(frozen=True)
class Growth:
    """How seeds are added: the sequential rule, the time that they may take, and what is to be decided."""

    rule: SequentialRule
    budget_s: float | None = None
    pairs: _Pairs | None = None  # None: each pair of rows of every table

    @classmethod
    def of(cls, max_seeds: int | None = None, budget: str | float | None = None) -> Self:
        """The default rule, with a different maximum or a budget."""
        from boosters_eval.stats.sequential import SequentialRule  # noqa: PLC0415 (loads scipy)

        require("max_seeds", max_seeds, (Integral, type(None)), f"a count from 2 to {MAX_SEEDS}")
        if max_seeds is not None and not 2 <= max_seeds <= MAX_SEEDS:
            raise ConfigError(f"{the('max_seeds')} must be a count from 2 to {MAX_SEEDS}. Got {max_seeds} instead.")
        rule = SequentialRule() if max_seeds is None else SequentialRule(max_seeds=max_seeds)
        return cls(rule, parse_budget(budget))

    @property
    def sentence(self) -> str:
        """What reports on such a run must mention: its verdicts are made at another level."""
        looks = len(self.rule.schedule)
        times = "one look" if looks == 1 else f"up to {looks} looks, each"
        return f"seeds were added at {times} at alpha = {self.rule.level:g}"


def parse_budget(text: str | float | None) -> float | None:
    """Seconds from 90, `90s`, `10m` or `1.5h`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(text))
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds <= 0:
        raise ConfigError(f"{the('budget')} must be a time such as 90s, 10m or 1h. Got {text!r} instead.")
    return seconds


def grow(
    run: Callable[[int], ResultCollection],
    rule: SequentialRule,
    *,
    budget_s: float | None = None,
    pairs: _Pairs | None = None,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    began: Callable[[], float] | None = None,
) -> ResultCollection:
    """Look after 5, 10, 20, ... seeds. `run` is called with the number of seeds that its results must have.

    `began` is when the first cell began: what was spent before, on imports, is not repeated with the next seeds.
    """
    start = clock()
    pairs = pairs or _table_pairs
    seeds = rule.schedule[0]
    for look, scheduled in enumerate(rule.schedule):
        results = run(seeds)

        def affordable(following: int, done: int = seeds) -> int:
            now = clock()
            spent, worked = now - start, now - (start if began is None else began())
            if budget_s is None or (worked <= 0 and spent < budget_s):
                return following
            more = int((budget_s - spent) * done / worked) if worked > 0 else 0
            return min(following, done + more) if more > 0 else 0

        decision = rule.decide(look, pairs(results, rule), budget_left=seeds == scheduled, affordable=affordable)
        say(f"{count_of(seeds, 'seed')}: {decision.reason}")
        if decision.stop:
            return results
        seeds = decision.seeds
    raise AssertionError("the last look of a schedule always stops")


def _table_pairs(results: ResultCollection, rule: SequentialRule) -> Iterator[Comparison]:
    """Each pair of rows of every table, compared on the primary metric at the level of one look."""
    from boosters_eval.metrics import higher_is_better  # noqa: PLC0415 (what judges is loaded when there is something)
    from boosters_eval.programs.benchmark.comparisons import compare_rows  # noqa: PLC0415
    from boosters_eval.programs.benchmark.tables.contenders import group_by_name, group_results  # noqa: PLC0415

    margins = results.metadata.margins()
    for contenders in group_results(results).values():
        rows = group_by_name(contenders.values())
        primary = (result.primary_metric for row in rows.values() for result in row)
        metric = next(filter(None, primary), None)
        if metric is not None:
            better = higher_is_better(metric)
            how: Any = {"alpha": rule.level, "margins": margins, "evidence": results.evidence}
            table = compare_rows(rows, metric, higher_is_better=better, **how)
            yield from table.pairs.values()
