"""Trackers of a third party: one that notes what it is told, and some that fail in every way a tracker can."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from boosters_eval.tracking import Tracker


class NotingTracker(Tracker):
    """Appends a line per call to the file named by NOTED; it has what the file says that it has."""

    def note(self, what, **told):
        with Path(os.environ["NOTED"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, **told}, default=str) + "\n")

    def holds(self, run):
        ended = [call for call in noted() if call["what"] == "end"]
        return bool(run.content) and bool(ended) and ended[-1]["content"] == run.content

    def begin(self, run):
        self.note("begin", **asdict(run))
        return f"page of {run.name}"

    def describe(self, competitor):
        self.note("describe", key=competitor.key, **asdict(competitor))

    def log(self, competitor, cells):
        self.note("log", key=competitor.key, cells=[asdict(cell) for cell in cells])

    def end(self, run, ending):
        sizes = {name: path.stat().st_size for name, path in ending.files.items()}
        competitors = {key: asdict(end) for key, end in ending.competitors.items()}
        told = {"content": run.content, "status": ending.status, "ended": ending.ended}
        self.note("end", **told, sizes=sizes, competitors=competitors)


def noted():
    path = Path(os.environ["NOTED"])
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


class _Faulty(NotingTracker):
    """It shares the file with one that notes, but has nothing of what that one was told."""

    def holds(self, run):
        return False


class RefusingTracker(_Faulty):
    """Wrong credentials."""

    def begin(self, run):
        raise PermissionError("401: who are you?")


class DyingTracker(_Faulty):
    """Takes its process with it."""

    def begin(self, run):
        os.write(2, b"last words\n")
        os._exit(3)


class HangingTracker(_Faulty):
    """A server that never answers; it tells its pid before."""

    def begin(self, run):
        self.note("hang", pid=os.getpid())
        time.sleep(3600)
