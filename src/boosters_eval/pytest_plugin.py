"""A pytest plugin: `pytest --boosters-eval-suite quick --boosters-eval-baseline FILE`, one item per (config, library).

It is loaded into every pytest run in its environment, so nothing but pytest is imported until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from boosters_eval import Check, DeterminismFindings, UpgradeFindings

MARKER = "boosters_eval"
# The parameters of `prepare_check`, by which its errors name the options.
_OPTIONS = {
    "suite": "--boosters-eval-suite",
    "baseline": "--boosters-eval-baseline",
    "tolerance": "--boosters-eval-tolerance",
    "statistical": "--boosters-eval-statistical",
    "seeds": "--boosters-eval-seeds",
    "allow_flaky": "--boosters-eval-allow-flaky",
    "libraries": "--boosters-eval-library",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("boosters-eval", "evaluation of gradient-boosting libraries")
    group.addoption("--boosters-eval-suite", metavar="NAME", help="run this suite, one item per (config, library) pair")
    group.addoption("--boosters-eval-baseline", metavar="FILE", help="check against this baseline")
    group.addoption("--boosters-eval-tolerance", metavar="X", type=float, default=0.02, help="default: %(default)s")
    group.addoption("--boosters-eval-statistical", action="store_true", help="test each change for significance")
    group.addoption(
        "--boosters-eval-seeds",
        metavar="N",
        type=lambda word: int(word) if word.isdecimal() else word,
        help="number of random splits, or auto (with a baseline and --boosters-eval-statistical): as many of the"
        " recorded ones as it takes to decide",
    )
    group.addoption(
        "--boosters-eval-allow-flaky", metavar="N", type=int, default=0, help="cells that may finish after failing"
    )
    group.addoption("--boosters-eval-library", metavar="NAME", action="append", help="only this library; repeatable")


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

    try:
        evaluation = _Evaluation(session.config)
    except BoostersEvalError as error:
        lines = error.lines if isinstance(error, BuildError) else [str(error)]
        raise pytest.UsageError("\n".join(map(_clean, lines))) from None
    suite = _Suite.from_parent(session, name=evaluation.name, nodeid=evaluation.name)
    suite.evaluation = evaluation
    return suite


def _clean(text: str) -> str:
    from boosters_eval.core.text import clean_message  # noqa: PLC0415 (only when it is used)

    return clean_message(text)


class _Evaluation:
    """What is to run and, once the first item needs it, the verdict."""

    def __init__(self, config: pytest.Config) -> None:
        from boosters_eval.api import prepare_check  # noqa: PLC0415 (only when it is used)
        from boosters_eval.core.terms import speaking_of  # noqa: PLC0415

        with speaking_of(_OPTIONS):
            self._prepared = prepare_check(**{name: config.getoption(option) for name, option in _OPTIONS.items()})
        self._check: Check | None = None
        self.pairs = self._prepared.pairs
        self.name = _clean(f"boosters-eval {self._prepared.run.plan.name}")

    def outcome(self, config: str, library: str) -> tuple[str, str]:
        """What became of a pair (failed, skipped, passed) and a sentence on why. The first call runs the suite."""
        from boosters_eval.api import run_check  # noqa: PLC0415 (only when it is used)
        from boosters_eval.core.terms import speaking_of  # noqa: PLC0415

        with speaking_of(_OPTIONS):
            self._check = self._check or run_check(self._prepared)
            return self._check.outcome(config, library)


class _Suite(pytest.Collector):
    evaluation: _Evaluation

    def collect(self) -> Iterator[_Pair]:
        for config, library in self.evaluation.pairs:
            item = _Pair.from_parent(self, name=_clean(f"{config}[{library}]"))
            item.pair, item.evaluation = (config, library), self.evaluation
            item.add_marker(MARKER)
            yield item


class FailedPairError(Exception):
    """A pair that failed; its text is the whole report."""


class _Pair(pytest.Item):
    pair: tuple[str, str]
    evaluation: _Evaluation

    def runtest(self) -> None:
        outcome, text = self.evaluation.outcome(*self.pair)
        text = _clean(text)
        if outcome == "passed":
            self.add_report_section("call", "boosters-eval", text)
        if outcome == "failed":
            raise FailedPairError(text)
        if outcome == "skipped":
            pytest.skip(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A finding is one sentence; only an internal error has a traceback."""
        from boosters_eval.core.errors import BoostersEvalError  # noqa: PLC0415 (only when it is used)

        if isinstance(excinfo.value, (FailedPairError, BoostersEvalError)):
            return _clean(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def assert_same_predictions(old: str, new: str, **options: Any) -> UpgradeFindings:
    """Fail unless two versions of a library predict the same: "xgboost==3.1.3" and "xgboost", the installed one.

    `options` are those of `check_upgrade`, such as `tolerance`, `datasets` and `params`.
    """
    from boosters_eval.api import check_upgrade  # noqa: PLC0415 (only when it is used)
    from boosters_eval.core.errors import ConfigError  # noqa: PLC0415
    from boosters_eval.runners.builds.reference import is_reference, parts_of  # noqa: PLC0415

    sides = [parts_of(side) if is_reference(side) else (side, "", "installed") for side in (old, new)]
    if None in sides or len({side[0] for side in sides if side}) > 1:
        raise ConfigError(
            f"assert_same_predictions() compares two versions of one library. Got '{old}' and '{new}' instead."
        )
    (library, _, first), (_, _, second) = (side for side in sides if side)
    found = check_upgrade(library, first, second, **options)
    if found.exit_code:
        pytest.fail(_clean("\n".join(found.document().answer)), pytrace=False)
    return found


def assert_deterministic(library: str, *questions: str, **options: Any) -> DeterminismFindings:
    """Fail if a library trains another model with the same seed: here, in another process, or twice on two threads.

    `questions` are "again", "process" and "threads again" by default, and may also be "threads", "all threads",
    "rows", "columns" and "repeated"; `options` are those of `determinism`.
    """
    from boosters_eval.api import determinism  # noqa: PLC0415 (only when it is used)
    from boosters_eval.core.errors import UnknownNameError  # noqa: PLC0415
    from boosters_eval.programs.determinism.findings import QUESTIONS, REPEATS  # noqa: PLC0415

    for name in questions:
        if name not in QUESTIONS:
            raise UnknownNameError("question", name, QUESTIONS)
    asked = questions or REPEATS
    found = determinism(library, **options)
    answers = [one for one in found.probes if one.question in asked]
    faults = [one for one in answers if one.outcome in ("different", "failed")]
    if faults or not any(one.outcome in ("identical", "equal to 1e-12") for one in answers):
        told = [f"{one.library}, {one.task}, {one.question}: {one.outcome} {one.setting}{one.reason}" for one in faults]
        pytest.fail(_clean("\n".join(told or [f"{library}: nothing could be compared."])), pytrace=False)
    return found
