"""What a run measured against the run before on the same machine.

Verdicts are found when they are first asked for, and kept in the index as long as the run before stays the same.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.programs.history import store
from boosters_eval.programs.history.model import EVERYTHING, NOT_COMPARABLE, Change, HistoryFilter
from boosters_eval.programs.history.rows import encode_verdicts, find_row, select_parts, select_rows, select_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from boosters_eval.programs.history.compare import RowsOf
    from boosters_eval.programs.history.model import RunEntry
    from boosters_eval.programs.history.rows import SeriesRow

_LATEST = 30  # runs that are judged at the end of a run: those that are listed


def judge_latest(connection: sqlite3.Connection, home: Path | None) -> None:
    """Judge what a listing will show, so that it need not load scipy."""
    judge = RunJudge(connection, home)
    for number, entry in select_runs(connection, HistoryFilter(limit=_LATEST)):
        judge.compare(number, entry, usual=True)
    judge.keep()


class RunJudge:
    """Compares runs with the runs before them. What was not known yet is kept for the next question."""

    def __init__(self, connection: sqlite3.Connection, home: Path | None) -> None:
        self.connection, self.home = connection, home
        self.rows: dict[str, RowsOf] = {}  # of the run that is compared, and of those before it
        self.fresh: list[tuple[int, int, int, str]] = []

    def keep(self) -> None:
        """Let go of the state that was asked, and keep the new verdicts; if that fails, they are found again."""
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")
        if self.fresh:
            with contextlib.suppress(sqlite3.Error):
                store.keep_verdicts(self.connection, self.fresh)
            self.fresh.clear()

    def compare(
        self, number: int, entry: RunEntry, wanted: HistoryFilter = EVERYTHING, *, usual: bool = False
    ) -> list[Change]:
        """What a run measured against the run before; only what a listing tells if just the `usual` is wanted."""
        self.rows.clear()
        rows = select_rows(self.connection, number, wanted)
        made = []
        for _, config, dataset, target, library, failed in select_parts(self.connection, wanted, "p.run = ?", number):
            who = {"config": config, "dataset": dataset, "target": target, "library": library}
            known: dict[str, Any] = {**who, "version": entry.versions.get(target, ""), "failed": failed}
            own = [row for row in rows if (row.config, row.target) == (config, target)]
            if not own and failed and not wanted.metrics:  # what has no number at all must not look whole
                nothing: dict[str, Any] = {"metric": "", "primary": True, "mean": None, "n": 0, "before": ""}
                made.append(Change(**known, **nothing, verdict="failed"))
            for row in own:
                made += self._compare_row(row, entry, known, wanted.metrics, usual=usual)
        return made

    def _compare_row(
        self, row: SeriesRow, entry: RunEntry, known: dict[str, Any], metrics: Sequence[str], *, usual: bool
    ) -> Iterator[Change]:
        """The primary metric is usual, and so is a time of training that could be judged."""
        names = {
            name: bool(primary)
            for name, _, primary, _ in row.measures()
            if (name in metrics if metrics else not usual or primary or name == "train_time_s")
        }
        earlier = find_row(self.connection, row.line, row.before) if row.before and names else None
        verdicts, before, last = dict.fromkeys(names, "first" if row.before == 0 else ""), "", {}
        if earlier is not None:
            verdicts, before, last = self._judge(row, entry, earlier, names), earlier[0].key, earlier[1].means()
        for name, (mean, n) in row.means().items():
            verdict = verdicts.get(name, "")
            if name in names and (
                names[name] or not usual or verdict in ("better", "worse", "equivalent", "identical")
            ):
                told: dict[str, Any] = {"metric": name, "primary": names[name], "mean": mean, "n": n}
                before_mean = last.get(name, (None, 0))[0]
                yield Change(**known, **told, verdict=verdict, before=before, before_mean=before_mean)

    def _judge(
        self, row: SeriesRow, entry: RunEntry, earlier: tuple[RunEntry, SeriesRow], names: Iterable[str]
    ) -> dict[str, str]:
        """The verdicts on these metrics, by metric; empty where one of the runs has no number."""
        verdicts = row.judged()
        lacking = [name for name in names if name not in verdicts]
        if lacking:
            from boosters_eval.programs.history.compare import compare_series  # noqa: PLC0415 (loads scipy)

            rows = self._read_rows(earlier[0]), self._read_rows(entry)
            for name in lacking:
                new, old = row.series(entry, name), earlier[1].series(earlier[0], name)
                try:
                    verdicts[name] = compare_series(old, new, rows=rows).verdict if new and old else ""
                except BoostersEvalError:  # values that no test is made for
                    verdicts[name] = NOT_COMPARABLE
            self.fresh.append((row.line, row.run, row.before or 0, encode_verdicts(row.measures(), verdicts)))
        return verdicts

    def _read_rows(self, entry: RunEntry) -> RowsOf:
        from boosters_eval.programs.history.compare import read_rows  # noqa: PLC0415 (as above)

        if entry.key not in self.rows:
            self.rows[entry.key] = read_rows(entry, self.home)
        return self.rows[entry.key]
