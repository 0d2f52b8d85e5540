"""A pytest plugin: `pytest --boosters-eval-suite quick --boosters-eval-baseline FILE`, one item per (config, library).

It is loaded into every pytest run in its environment, so nothing but pytest is imported until it is used.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from boosters_eval.programs.baseline import Baseline, Check, CheckRules
    from boosters_eval.programs.benchmark.planning import PreparedRun

MARKER = "boosters_eval"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, in a group of their own."""
    group = parser.getgroup("boosters-eval", "evaluation of gradient-boosting libraries")
    group.addoption("--boosters-eval-suite", metavar="NAME", help="run this suite, one item per (config, library) pair")
    group.addoption("--boosters-eval-baseline", metavar="FILE", help="check against this baseline")
    group.addoption("--boosters-eval-tolerance", metavar="X", type=float, default=0.02, help="default: %(default)s")
    group.addoption("--boosters-eval-statistical", action="store_true", help="test each change for significance")
    group.addoption(
        "--boosters-eval-seeds",
        metavar="N",
        type=_seeds,
        help="number of random splits, or auto (with a baseline and --boosters-eval-statistical): as many of the"
        " recorded ones as it takes to decide",
    )
    group.addoption(
        "--boosters-eval-allow-flaky", metavar="N", type=int, default=0, help="cells that may finish after failing"
    )
    group.addoption("--boosters-eval-library", metavar="NAME", action="append", help="only this library; repeatable")


def _seeds(text: str) -> int | str:
    if text == "auto" or (text.isdecimal() and int(text)):
        return text if text == "auto" else int(text)
    raise argparse.ArgumentTypeError(f"must be a count of at least 1, or auto. Got '{text}' instead.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker for `-m boosters_eval`, and refuse xdist, because each worker would run the whole suite."""
    config.addinivalue_line("markers", f"{MARKER}: a (config, library) pair of a boosters-eval suite")
    if _wanted(config) and config.getoption("numprocesses", None):
        raise pytest.UsageError("boosters-eval runs its own processes; run its items without pytest-xdist (-n 0).")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add the suite to the collected files, so that its pairs are collected, counted and selected like tests."""
    report = yield
    if isinstance(collector, pytest.Session) and report.result is not None and _wanted(collector.config):
        report.result.append(_suite(collector))
    return report


def _wanted(config: pytest.Config) -> bool:
    return bool(config.getoption("--boosters-eval-suite") or config.getoption("--boosters-eval-baseline"))


def _suite(session: pytest.Session) -> _Suite:
    from boosters_eval.core.errors import BoostersEvalError, BuildError  # noqa: PLC0415 (see above)
    from boosters_eval.core.text import message  # noqa: PLC0415

    try:
        evaluation = _Evaluation(session.config)
    except BoostersEvalError as error:
        lines = error.lines if isinstance(error, BuildError) else [str(error)]
        raise pytest.UsageError("\n".join(map(message, lines))) from None
    suite = _Suite.from_parent(session, name=evaluation.name, nodeid=evaluation.name)
    suite.evaluation = evaluation
    return suite


class _Evaluation:
    """What is to run and, once the first item needs them, the results."""

    def __init__(self, config: pytest.Config) -> None:
        from boosters_eval.core.errors import ConfigError  # noqa: PLC0415
        from boosters_eval.core.text import message  # noqa: PLC0415
        from boosters_eval.programs.baseline import CheckRules, read_baseline  # noqa: PLC0415
        from boosters_eval.programs.baseline.plan import Request, plan_run, until_decided  # noqa: PLC0415
        from boosters_eval.programs.benchmark.settings import Settings  # noqa: PLC0415 (only when it is used)

        file = config.getoption("--boosters-eval-baseline")
        statistical = config.getoption("--boosters-eval-statistical")
        if config.getoption("--boosters-eval-seeds") == "auto" and not (file and statistical):
            needed = "--boosters-eval-baseline and --boosters-eval-statistical"
            raise ConfigError(
                f"The '--boosters-eval-seeds auto' option needs {needed}: it adds seeds until a test decides."
            )
        libraries = config.getoption("--boosters-eval-library")
        self._baseline: Baseline | None = read_baseline(Path(file)) if file else None
        request = Request(
            config.getoption("--boosters-eval-suite"),
            tuple(libraries) if libraries else None,
            config.getoption("--boosters-eval-seeds"),
        )
        prepared, restriction = plan_run(request, Settings(), self._baseline)
        self._rules: CheckRules = CheckRules(
            tolerance=config.getoption("--boosters-eval-tolerance"),
            statistical=statistical,
            allow_flaky=config.getoption("--boosters-eval-allow-flaky"),
            **asdict(restriction),
        )
        self._prepared: PreparedRun = (
            until_decided(prepared, self._baseline, self._rules) if self._baseline else prepared
        )
        self._check: Check | None = None
        self.name = message(f"boosters-eval {prepared.plan.name}")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every pair that will run, and every pair in the baseline."""
        planned = [(cell.spec.name, cell.target) for cell in self._prepared.plan.cells]
        recorded = [result.key for result in self._baseline.results] if self._baseline else []
        return list(dict.fromkeys([*planned, *recorded]))

    def outcome(self, config: str, library: str) -> tuple[str, str]:
        """The status of a pair (failed, skipped, passed) and a sentence on why. The first call runs the suite."""
        from boosters_eval.programs.baseline import Status  # noqa: PLC0415 (only when it is used)
        from boosters_eval.programs.baseline.render import headline, sentence  # noqa: PLC0415

        check = self._checked()
        found = next((f for f in check.findings if (f.config, f.library) == (config, library)), None)
        if found is None:
            return "failed", f"{config} {library}: it was not run"
        if found.fails or found.failed_cells or (found.flaky and check.too_flaky):
            return "failed", sentence(found)
        if self._baseline is None:
            return "passed", sentence(found) if found.flaky else ""
        if not check.counted:
            return "failed", headline(check, "the baseline")
        return "skipped" if found.status in (Status.SKIPPED, Status.NEW) else "passed", sentence(found)

    def _checked(self) -> Check:
        """The run checked against the baseline or, without one, against itself, which finds only failures."""
        if self._check is None:
            from boosters_eval.programs.baseline import Snapshot, check  # noqa: PLC0415
            from boosters_eval.running import run_prepared  # noqa: PLC0415 (only when it is used)

            after = Snapshot.of_run(run_prepared(self._prepared))
            before = Snapshot.of_baseline(self._baseline) if self._baseline else after
            self._check = check(before, after, self._rules)
        return self._check


class _Suite(pytest.Collector):
    """The parent of all pairs."""

    evaluation: _Evaluation

    def collect(self) -> Iterable[_Pair]:
        """One item per pair."""
        return list(self._pairs())

    def _pairs(self) -> Iterator[_Pair]:
        from boosters_eval.core.text import message  # noqa: PLC0415 (only when it is used)

        for config, library in self.evaluation.pairs:
            item = _Pair.from_parent(self, name=message(f"{config}[{library}]"))
            item.pair, item.evaluation = (config, library), self.evaluation
            item.add_marker(MARKER)
            yield item


class FailedPairError(Exception):
    """A pair that failed; its text is the whole report."""


class _Pair(pytest.Item):
    """One (config, library) pair."""

    pair: tuple[str, str]
    evaluation: _Evaluation

    def runtest(self) -> None:
        """Pass, skip or fail according to the finding for this pair."""
        from boosters_eval.core.text import message  # noqa: PLC0415 (only when it is used)

        outcome, text = self.evaluation.outcome(*self.pair)
        text = message(text)
        if outcome == "passed":
            self.add_report_section("call", "boosters-eval", text)
        if outcome == "failed":
            raise FailedPairError(text)
        if outcome == "skipped":
            pytest.skip(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A finding is one sentence; only an internal error has a traceback."""
        from boosters_eval.core.errors import BoostersEvalError  # noqa: PLC0415 (only when it is used)
        from boosters_eval.core.text import message  # noqa: PLC0415

        if isinstance(excinfo.value, (FailedPairError, BoostersEvalError)):
            return message(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The heading of a failure."""
        return self.path, None, self.name
