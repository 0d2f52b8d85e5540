"""What a choice costs, and what to run next: a command that works as it stands."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boosters_eval.core.text import clean, join_words
from boosters_eval.datasets import DATASETS
from boosters_eval.datasets.config import DataSettings
from boosters_eval.datasets.resolve import split_item
from boosters_eval.programs.benchmark.tables.answers import OUTWEIGHED
from boosters_eval.programs.benchmark.tables.environment import derive_command
from boosters_eval.programs.benchmark.tables.sections import select_audits
from boosters_eval.reports.numbers import number
from boosters_eval.runners import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boosters_eval.programs.benchmark.results import ResultCollection
    from boosters_eval.programs.benchmark.tables.answers import Contest, TableAnswer
    from boosters_eval.programs.benchmark.tables.contenders import Contender
    from boosters_eval.runners.result import BenchmarkResult

_LADDER = (5, 10, 20, 50, 100)  # numbers of seeds to advise; hardly anybody would wait for more
_PATIENCE = 10  # times the limit that stopped what failed
_NAMED = 5  # competitors whose costs are told; of more, the lowest and the highest
# What concerns one execution of a command, and with how many values.
_OF_ONE_RUN = {"--resume", "--rerun-failed", "--dry-run", "-v", "--verbose", "-q", "--quiet", "--open"}
_WITH_VALUE = {"-o", "--output", "-f", "--format", "--name", "--verdict"}
_FIXED = {
    "leak": "leave that column out",
    "groups": "keep each group on one side of the split",
    "drift": "split by time",
    "id": "leave out what names rows",
    "time-order": "test on later rows, if such are to be predicted",
}


@dataclass(frozen=True)
class Costs:
    """What training takes on average, and how large the models are, by competitor."""

    times: Mapping[str, float]
    sizes: Mapping[str, float]
    how: str  # they were measured
    over: str = ""  # the tables that they are averaged over, or which of several they are of

    @classmethod
    def of(cls, contenders: Sequence[Contender], unfair: str = "") -> Costs:
        shown = {one.name: [r for r in one.results if r.repeat not in one.apart] for one in contenders}
        times, sizes = (
            {name: sum(found) / len(found) for name, results in shown.items() if (found := _values(results, field))}
            for field in ("train_time_s", "model_size_mb")
        )
        return cls(times, sizes, _tell_measuring([r for one in contenders for r in one.results], unfair))

    @classmethod
    def average(cls, several: Mapping[str, Costs]) -> Costs:
        """The means over the tables that all competitors are in, or else of the competitors that all tables have."""
        names = {name for one in several.values() for name in one.times}
        whole = {where: one for where, one in several.items() if one.times.keys() == names} or several
        found = list(whole.values())
        everywhere = [name for name in found[0].times if all(name in one.times for one in found)]
        times = {name: sum(one.times[name] for one in found) / len(found) for name in everywhere}
        sizes = {name: sum(one.sizes.get(name, 0.0) for one in found) / len(found) for name in everywhere}
        how = next((one.how for one in found if one.how.startswith("Rough")), found[0].how)
        count = "both" if len(found) == 2 else f"all {len(found)}"
        where = f"{count} data sets" if len(found) == len(several) else join_words(whole, most=_NAMED)
        over = f" (mean of {where})"
        over = f" on {next(iter(whole))}" if len(found) == 1 else over
        return cls(times, {name: size for name, size in sizes.items() if size}, how, over)

    def tell(self, fastest: Sequence[str] = ()) -> str:
        """In one sentence, the cheapest first; nothing if no time is known. `fastest` was shown to be that."""
        order = sorted(self.times, key=lambda name: self.times[name])
        if not order:
            return ""
        mark = dict.fromkeys(fastest, " (shown to be the fastest)")
        times = {name: f"{number(self.times[name], 2)} s{mark.get(name, '')}" for name in order}
        sizes = {name: f"{number(self.sizes[name], 2)} MB" for name in sorted(self.sizes, key=self.sizes.__getitem__)}
        if len(order) > _NAMED:
            stored = f"; to store, {_tell_range(sizes)}" if sizes else ""
            return f"to train one model{self.over}, {_tell_range(times)}{stored}. {self.how}."
        each = (f"{name} {times[name]}{f', {sizes[name]}' if name in sizes else ''}" for name in order)
        return f"to train{' and store' if sizes else ''} one model{self.over}: {'; '.join(each)}. {self.how}."


def _values(results: Sequence[BenchmarkResult], field: str) -> list[float]:
    return [value for result in results if (value := getattr(result, field)) is not None]


def _tell_measuring(results: Sequence[BenchmarkResult], unfair: str) -> str:
    threads = sorted({result.n_threads for result in results})
    on = f"on {' or '.join(map(str, threads))} thread{'' if threads == [1] else 's'}" if threads else ""
    if not all(result.timing_mode for result in results):
        return f"Rough times, {on}, not alone on the machine"
    if unfair or not all(result.fairly_timed for result in results):
        return f"Rough times: {unfair or 'the machine was busy'}"
    return f"Timed {on}, alone on the machine"


def _tell_range(shown: Mapping[str, str]) -> str:
    """The first and the last."""
    names = list(shown)
    return f"{shown[names[0]]} ({names[0]}) to {shown[names[-1]]} ({names[-1]})"


def advise(results: ResultCollection, answers: Mapping[str, TableAnswer]) -> str:
    """Why, and the command; nothing where there is nothing left to ask. `answers` are by the name of their table."""
    if not results.results and not results.errors:
        return ""
    again = _Again(_find_words(results), results.metadata.rescored)
    contests = {name: one.contest for name, one in answers.items() if one.contest is not None}
    lost = bool(contests) and all(one.lost for one in contests.values())
    steps = (
        _fix_data(results, again),
        _finish(results, again),
        _weigh_targets(results, answers),
        _try_both(results, again),
        _keep_predictions(contests, again),
        _learn(results, again) if lost else _add_splits(contests, again, len(answers)),
    )
    return next(filter(None, steps), "") or ("" if lost else _weigh(results, contests, again))


@dataclass(frozen=True)
class _Again:
    """The comparison once more, with something changed."""

    words: list[str] | None  # of the command; None: only Python can run it
    rescored: Sequence[str] = ()  # the words of `rescore`, which then judges the new run too

    def only(self, datasets: Collection[str]) -> _Again | None:
        """The same for some of the data sets; None if the words do not name each of them."""
        if self.words is None:
            return self
        kept: dict[str, str] = {}
        for word in self.words:
            path, target = split_item(word)
            name = word if target is None else f"{Path(path).name.partition('.')[0]}.{target}"
            kept |= {name: word} if name in datasets else {}
        if kept.keys() != set(datasets):
            return None
        return _Again([*drop_options(self.words, "-d", "--dataset"), "-d", *kept.values()], self.rescored)

    def say(self, why: str, *options: str, ending: str = "", without: Sequence[str] = ()) -> str:
        if self.words is not None:
            words = [*drop_options(self.words, *without), *options]
            judged = f" && boosters-eval rescore last {shlex.join(map(clean, self.rescored))}" if self.rescored else ""
            return f"{why}: boosters-eval {shlex.join(map(clean, words))}{ending}{judged}"
        given = [*options, *shlex.split(ending)]
        judged = ", then rescore() it" if self.rescored else ""
        return f"{why}: call compare() again{f' with {_spell(given)}' if given else ''}{judged}"


def _spell(options: Sequence[str]) -> str:
    """Options as parameters of Python: --seeds 10 is seeds=10, and what says how data are read is in data."""
    found: dict[str, list[str]] = {}
    for word in options:
        if word.startswith("--"):
            name, _, value = word.lstrip("-").partition("=")
            found.setdefault(name.replace("-", "_"), []).extend([value] if value else [])
        else:
            found[list(found)[-1]].append(word)
    data = {name: values for name, values in found.items() if name in DataSettings.model_fields}
    plain = {name: values[0] if values else True for name, values in found.items() if name not in data}
    spelled = [f"{name}={value if str(value).isdigit() else repr(value)}" for name, value in plain.items()]
    return ", ".join([*([f"data={data}"] if data else []), *spelled])


def _fix_data(results: ResultCollection, again: _Again) -> str:
    """The command with what acts on the grave findings about a data set, on its ids, and on rows in order of time."""
    several = len(_datasets(results)) > 1
    for name, audit in select_audits(results).items():
        way = again.only([name]) if several else again
        typed = shlex.join(way.words or []) if way is not None else ""
        options: dict[str, tuple[str, str]] = {}
        for finding in (*audit.severe, *(one for one in audit.findings if one.kind in ("id", "time-order"))):
            option = finding.option.partition(";")[0]  # the first, if there are several
            once = next((each for each in ("--profile", "--split") if option.startswith(each)), option)
            if option and option not in typed and once not in options:
                options[once] = (option, _FIXED.get(finding.kind, "fix the data"))
        if options and way is not None:
            chosen, whys = zip(*options.values(), strict=True)
            replaced = [one for one in ("--profile", "--split") if one in options]
            why = f"{f'on {clean(name)}, ' if several else ''}{join_words(dict.fromkeys(whys))}"
            return way.say(why, ending=f" {' '.join(chosen)}", without=replaced)
    return ""


def _try_both(results: ResultCollection, again: _Again) -> str:
    """The command in both profiles, where libraries treat a column that matters in their own ways."""
    kinds = {finding.kind for audit in select_audits(results).values() for finding in audit.findings}
    why = "see whether that holds with each library's own defaults"
    return again.say(why, "--profile", "both", without=("--profile",)) if "own-treatment" in kinds else ""


def _finish(results: ResultCollection, again: _Again) -> str:
    if results.metadata.n_missing or results.metadata.unfinished_attempt:
        return again.say("finish the run", "--resume")
    if not results.errors:
        return ""
    limit = _find_limit(again.words or []) if {one.error_type for one in results.errors} == {"Timeout"} else None
    if limit is not None:  # the same limit would stop them again
        longer = ("--timeout", f"{_PATIENCE * limit:g}", "--rerun-failed")
        return again.say("give what was stopped ten times as long", *longer, without=("--timeout",))
    return again.say("once the cause is fixed, run what failed again", "--rerun-failed")


def _find_limit(words: Sequence[str]) -> float | None:
    """The seconds of --timeout."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, _, value = word.partition("=")
        if name == "--timeout":
            with contextlib.suppress(ValueError):
                return float(value or following)
    return None


def _weigh_targets(results: ResultCollection, answers: Mapping[str, TableAnswer]) -> str:
    """The same predictions by R², where one of several targets outweighs the others."""
    if not any(doubt.kind == OUTWEIGHED for one in answers.values() for doubt in one.doubts):
        return ""
    why = "weigh all targets alike"
    known = results.folder is not None and results.run_id and not results.metadata.rescored
    return f"{why}: boosters-eval rescore {results.reference} --metric r2" if known else ""


def _learn(results: ResultCollection, again: _Again) -> str:
    """Smaller trees, where none has learned what helps: more splits and the cost decide nothing then."""
    typed = shlex.join(again.words or [])
    of_trees = {result.booster_type for result in results.results} == {"gbdt"}
    told = any(word in typed for word in ("max_depth", "leafwise", "defaults", "--variants"))
    known = typed.startswith("compare") and of_trees and not told
    return again.say("smaller trees might learn more", "--param", "max_depth=2") if known else ""


def _keep_predictions(contests: Mapping[str, Contest], again: _Again) -> str:
    """The command with predictions, where splits alone left something open that rows may decide."""
    option = "--no-predictions"
    open_ = (one for one in contests.values() if one.more is not None and one.open and not one.lost)
    unclear = any(one.found.test == "rows" for one in open_)
    left_out = again.words is not None and option in again.words
    return again.say("rows would tell more than splits alone", without=(option,)) if unclear and left_out else ""


def _add_splits(contests: Mapping[str, Contest], again: _Again, tables: int) -> str:
    """The command with as many splits as would probably decide something, or else might."""
    found = {name: one for name, one in contests.items() if one.open and not one.lost}
    ready = {name: one for name, one in found.items() if one.more is not None and one.is_complete}
    if not ready:
        return ""
    folds = max(one.more.folds for one in ready.values() if one.more is not None)
    n = max(pair.n for one in ready.values() for pair in one.pairs.values())
    ladder = [seeds for seeds in _LADDER if max(folds, 1) * seeds > n]

    def ask(seeds: int, why: str, where: Collection[str] = ()) -> str:
        option = ["--cv", f"{folds}x{seeds}"] if folds else ["--seeds", str(seeds)]
        way = again.only(where) if 0 < len(where) < tables else again
        return (way or again).say(why, *option, without=("-s", "--seeds", "--cv"))

    if all(one.single for one in ready.values()):
        return ask(ladder[0], "more splits than one would tell") if ladder else ""
    for chance in ("would probably", "might"):
        for seeds in ladder:
            splits = max(folds, 1) * seeds
            where = [name for name, one in ready.items() if one.chance_with(splits) in (chance, "would probably")]
            if where:
                rest = [name for name in ready if name not in where]
                on = f" on {join_words(where, most=2)}" if tables > 1 else ""
                on += f", hardly on {join_words(rest, most=2)}" if rest else ""
                which = f"{splits} splits" if folds else f"{seeds} seeds (one split each)"
                return ask(seeds, f"{which} {chance} show more{on}", where)
    return ""


def _weigh(results: ResultCollection, contests: Mapping[str, Contest], again: _Again) -> str:
    """What is left when the scores have said what they can: others to compare with, the cost, or the whole report."""
    if not contests:
        alone = len({result.library for result in results.results}) == 1
        option = ("-l", "--library")
        chosen = again.words is not None and drop_options(again.words, *option) != again.words
        return again.say("compare with all that is installed", without=option) if alone and chosen else ""
    unclear = any(contest.open for contest in contests.values())
    if not all(result.timing_mode for result in results.results):
        open_ = "more rows might decide it, more splits hardly. To choose by the cost, measure it fairly"
        return again.say(open_ if unclear else "weigh the cost, measured fairly", "--timing-mode")
    known = results.folder is not None and results.run_id
    return f"read the whole report: boosters-eval runs open {results.reference}" if known else ""


def _find_words(results: ResultCollection) -> list[str] | None:
    """The words that ran it, without what concerns one execution; None where no command line could run it."""
    typed = results.metadata.facts.command
    if results.metadata.user_metrics.keys() & set(results.metadata.rescored):  # a function that Python has
        return None
    if typed and typed[0] in ("compare", "run"):
        return strip_words(typed)
    if not results.results or (results.suite in (None, "compare") and not _datasets(results) <= set(DATASETS)):
        return None
    libraries = {result.library for result in results.results}
    known = libraries - results.metadata.facts.targets.keys() <= set(RUNNERS)
    return derive_command(results, results.metadata.margins().words) if known else None


def _datasets(results: ResultCollection) -> set[str]:
    return {item.dataset_name for item in (*results.results, *results.errors)}


def strip_words(words: Sequence[str]) -> list[str]:
    out: list[str] = []
    skip = False
    for word in words:
        name = word.partition("=")[0]
        if skip or name in _OF_ONE_RUN or name in _WITH_VALUE:
            skip = not skip and word in _WITH_VALUE
            continue
        out.append(word)
    return out


def drop_options(words: Sequence[str], *options: str) -> list[str]:
    """Words of a command without these options and their values."""
    out: list[str] = []
    dropping = False
    for word in words:
        if word.startswith("-") and len(word) > 1:
            dropping = word.partition("=")[0] in options
        if not dropping:
            out.append(word)
    return out
