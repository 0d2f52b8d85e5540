"""What on this machine would disturb a measurement of time now, with the number and the command that helps."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import psutil
from pydantic import Field

from boosters_eval.core.machine import available_cpus, cpu_quota, cpu_stats
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROOT = Path("/")
_SAMPLE = 0.2  # seconds in which the use of the CPUs is watched
_TAKEN = 0.1  # the share of the CPUs that other programs may use, as in a cell's own times
_LOADED = 0.5  # programs that waited for a CPU, per CPU, in the last minute
_NAMED = 3  # programs that are named

DisturbanceKind = Literal["programs", "load", "frequency", "turbo", "battery", "throttling"]


_REASONS: dict[DisturbanceKind, str] = {
    "programs": "the machine was busy",
    "load": "the machine had been busy",
    "frequency": "the frequency of the CPUs varied",
    "turbo": "the frequency of the CPUs varied",
    "battery": "the machine ran on its battery",
    "throttling": "the container was throttled",
}


class Disturbance(Model):
    """One thing that makes times depend on something other than what is measured."""

    kind: DisturbanceKind
    text: str  # what it is, with the number
    remedy: str  # what to do about it
    who: str = Field("", exclude=True)  # the programs; only for whoever is there now, not for the record
    judged: bool = False  # times are judged all the same: it is worth knowing, but affects all alike

    @property
    def warning(self) -> str:
        """For whoever is about to measure."""
        end = "" if self.judged else " Times will be shown, but not judged."
        who = f" ({self.who})" if self.who else ""
        return f"{self.text[:1].upper()}{self.text[1:]}{who}: {self.remedy}.{end}"

    @property
    def note(self) -> str:
        """For whoever reads what was measured."""
        start = "Before the run" if self.judged else "Times are indicative only: before the run"
        return f"{start}, {self.text}."

    @property
    def reason(self) -> str:
        """Why times are not judged, in a few words."""
        return _REASONS[self.kind]


def disturbances(root: Path = _ROOT, *, wait: Callable[[float], None] = time.sleep) -> tuple[Disturbance, ...]:
    """Look at the machine, for a quarter of a second."""
    cpus = available_cpus(root)
    return (*_busy(root, cpus, wait), *_load(root, cpus), *_frequency(root, cpus), *_battery(root))


def _busy(root: Path, cpus: list[int], wait: Callable[[float], None]) -> Iterator[Disturbance]:
    """Other programs on the CPUs, and a container that is throttled, both seen in a short sample."""
    programs = _programs() if root == _ROOT else {}
    before, own, throttled = _used(root, cpus), time.process_time(), cpu_stats(root)
    start = time.perf_counter()
    wait(_SAMPLE)
    wall = max(_SAMPLE, time.perf_counter() - start)
    after, again = _used(root, cpus), cpu_stats(root)
    if before is not None and after is not None:
        ticks = os.sysconf("SC_CLK_TCK")
        share = ((after - before) / ticks - (time.process_time() - own)) / (wall * len(cpus))
        share = min(share, 1.0)  # the kernel counts in hundredths of a second
        if share > _TAKEN:
            yield Disturbance(
                kind="programs",
                text=f"other programs used {_percent(share)} of the {len(cpus)} CPUs",
                who=_busiest(programs, wall),
                remedy="wait until they end, or stop them ('top' shows them)",
            )
    if again and again.get("nr_throttled", 0) > throttled.get("nr_throttled", 0):
        yield Disturbance(
            kind="throttling",
            text=f"this container was throttled to its quota of {cpu_quota(root) or 0:g} CPUs",
            remedy="give it a larger quota ('docker run --cpus'), or stop its other programs",
        )


def _used(root: Path, cpus: list[int]) -> int | None:
    """The ticks in which these CPUs worked, time stolen from a virtual machine included; None if unknown."""
    wanted = {f"cpu{cpu}" for cpu in cpus}
    try:
        lines = [line.split() for line in (root / "proc/stat").read_text().splitlines()]
        mine = [list(map(int, line[1:9])) for line in lines if line and line[0] in wanted]
    except (OSError, ValueError):
        return _used_elsewhere() if root == _ROOT else None
    return sum(sum(counts) - sum(counts[3:5]) for counts in mine) if len(mine) == len(wanted) else None


def _used_elsewhere() -> int | None:
    """The same of all CPUs, for systems that have no such file."""
    try:
        times = psutil.cpu_times()
    except (OSError, psutil.Error):
        return None
    idle = times.idle + getattr(times, "iowait", 0.0)
    return round((sum(times) - idle) * os.sysconf("SC_CLK_TCK"))


def _programs() -> dict[psutil.Process, float]:
    """The CPU seconds that each process of this machine has used, except for this one."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process] = times.user + times.system
    found.pop(psutil.Process(), None)
    return found


def _busiest(before: dict[psutil.Process, float], wall: float) -> str:
    """The programs that used most since then, by name and process id."""
    after = _programs() if before else {}
    used = {process: spent - before.get(process, spent) for process, spent in after.items()}
    told = []
    for process in sorted(used, key=lambda process: -used[process])[:_NAMED]:
        with contextlib.suppress(psutil.Error):
            if used[process] > 0:
                told.append(f"{process.name()} (process {process.pid}) {_percent(used[process] / wall)}")
    return ", ".join(told)


def _load(root: Path, cpus: list[int]) -> Iterator[Disturbance]:
    """An earlier run raises the load as well, so it is only told."""
    text = _read(root / "proc/loadavg").partition(" ")[0]
    with contextlib.suppress(ValueError, OSError):
        load = float(text) if text or root != _ROOT else os.getloadavg()[0]
        if load > _LOADED * len(cpus):
            yield Disturbance(
                kind="load",
                text=f"the load of the last minute was {load:.1f} on {len(cpus)} CPUs",
                remedy=f"wait until 'uptime' shows less than {_LOADED * len(cpus):.1f}",
                judged=True,
            )


def _frequency(root: Path, cpus: list[int]) -> Iterator[Disturbance]:
    base = root / "sys/devices/system/cpu"
    governors = {_read(base / f"cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus} - {"", "performance"}
    if governors:
        yield Disturbance(
            kind="frequency",
            text=f"the frequency of the CPUs followed their load (governor {', '.join(sorted(governors))})",
            remedy="fix it with 'sudo cpupower frequency-set -g performance'",
        )
    no_turbo, boost = base / "intel_pstate/no_turbo", base / "cpufreq/boost"
    if _read(no_turbo) == "0" or _read(boost) == "1":
        switch = f"echo 1 | sudo tee {_shown(no_turbo, root)}"
        if _read(no_turbo) != "0":
            switch = f"echo 0 | sudo tee {_shown(boost, root)}"
        yield Disturbance(
            kind="turbo",
            text="the CPUs could exceed their base frequency while they were cool (turbo)",
            remedy=f"for times that can be repeated, switch it off with '{switch}'",
            judged=True,
        )


def _battery(root: Path) -> Iterator[Disturbance]:
    level = _draining(root)
    if level is not None:
        yield Disturbance(
            kind="battery",
            text=f"the machine ran on its battery{f' ({level} %)' if level else ''}, which slows the CPUs down",
            remedy="plug it in",
        )


def _draining(root: Path) -> str | None:
    """The percentage left in a battery that nothing charges; None if there is no such battery."""
    supplies = list((root / "sys/class/power_supply").glob("*"))
    if supplies:
        plugged = any(_read(supply / "online") == "1" for supply in supplies)
        draining = [supply for supply in supplies if _read(supply / "status") == "Discharging"]
        return _read(draining[0] / "capacity") if draining and not plugged else None
    known = psutil.sensors_battery() if root == _ROOT and hasattr(psutil, "sensors_battery") else None
    return f"{known.percent:.0f}" if known is not None and known.power_plugged is False else None


def _shown(path: Path, root: Path) -> str:
    return f"/{path.relative_to(root)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
