"""The machine: its fingerprint, the processors that this process may use, and what disturbs times now."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import psutil
from pydantic import Field

from boosters_eval.core.devices import CudaDevices, cuda_devices
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import compute_digest
from boosters_eval.core.model import Model
from boosters_eval.core.text import format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_ROOT = Path("/")
_STABLE = ("cpu_model", "cpu_cores", "cpu_threads", "architecture")


class MachineInfo(Model):
    """What must be known about a machine to judge a measurement made on it."""

    cpu_model: str
    cpu_cores: int  # physical, of the whole machine
    cpu_threads: int  # logical, of the whole machine
    memory_gb: float
    os: str
    blas_backend: str | None = None
    build_type: str | None = None
    architecture: str = ""
    cpus_available: int | None = None  # what affinity and cgroup leave to this process
    gpu: str | None = None  # the CUDA device that is used; only looked for where one is asked for
    cuda: str | None = None  # the version that its driver supports
    # Which of several with equal hardware, in a run that used them; a machine by itself has no such name.
    node: str | None = None

    @classmethod
    def collect(cls, *, load_blas: bool = True, device: bool = False) -> Self:
        """Describe this machine. The BLAS is only known once numpy is loaded, which `load_blas` does."""
        found, mac = cuda_devices() if device else CudaDevices(), sys.platform == "darwin"
        return cls(
            cpu_model=_cpu_model(),
            cpu_cores=psutil.cpu_count(logical=False) or 1,
            cpu_threads=psutil.cpu_count(logical=True) or 1,
            memory_gb=round(psutil.virtual_memory().total / 2**30, 1),
            os=f"macOS {platform.mac_ver()[0]}" if mac else f"{platform.system()} {platform.release()}",
            blas_backend=_blas(load=load_blas),
            build_type=getattr(sys.modules.get("boosters"), "__build_type__", None),
            architecture=platform.machine(),
            cpus_available=len(list_cpus()),
            gpu=found.names[0] if found.names else None,
            cuda=found.version or None,
        )

    def recorded(self) -> dict[str, Any]:
        return {**self.model_dump(), "digest": self.digest}

    @classmethod
    def of_record(cls, recorded: Mapping[str, Any]) -> Self:
        """What `recorded` gave; a digest that is not that of the rest is refused."""
        found = cls(**{name: value for name, value in recorded.items() if name != "digest"})
        if recorded.get("digest", found.digest) != found.digest:
            raise ConfigError(f"the machine {recorded['digest']} has the digest {found.digest}")
        return found

    @property
    def digest(self) -> str:
        """Equal on the same machine: a kernel upgrade, an affinity mask or another BLAS does not change it.

        Memory counts in whole gigabytes, rounded up: what the firmware reserves varies from boot to boot. Another
        device makes another machine of it for the runs that use one, and so does the name of a node.
        """
        stable = {name: getattr(self, name) for name in _STABLE} | {"memory_gb": math.ceil(self.memory_gb)}
        stable |= {name: found for name in ("gpu", "node") if (found := getattr(self, name)) is not None}
        return compute_digest(json.dumps(stable, sort_keys=True), 16)


def list_cpus(root: Path = _ROOT) -> list[int]:
    """The processors this process may use, by affinity and cgroup quota.

    One processor of each physical core comes before any of its siblings, so that the first k of the list
    share as few cores as possible; a quota of 2.5 processors leaves two, because a third would be throttled.
    """
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    seen: dict[tuple[str, ...], int] = {}
    order: list[tuple[int, int]] = []
    for cpu in cpus:
        core = _core(cpu, root)
        order.append((seen.get(core, 0), cpu))
        seen[core] = seen.get(core, 0) + 1
    quota = read_cpu_quota(root)
    count = len(cpus) if quota is None else max(1, min(len(cpus), int(quota)))
    return [cpu for _, cpu in sorted(order)[:count]]


def count_cores(root: Path = _ROOT) -> int:
    cpus = list_cpus(root)
    cores = len({_core(cpu, root) for cpu in cpus})
    if (root / "sys/devices/system/cpu").is_dir():
        return cores
    return min(psutil.cpu_count(logical=False) or cores, len(cpus))


def read_cpu_quota(root: Path = _ROOT) -> float | None:
    """The smallest quota of processors that a cgroup (version 2 or 1) sets, or None; a parent's limit binds too."""
    quotas = []
    for directory, unified in _groups(root):
        if unified:
            limit, _, period = _read(directory / "cpu.max").partition(" ")
        else:
            limit, period = _read(directory / "cpu.cfs_quota_us"), _read(directory / "cpu.cfs_period_us")
        if limit.isdecimal() and period.isdecimal() and int(period):  # not "max", -1 or a missing file
            quotas.append(int(limit) / int(period))
    return min(quotas, default=None)


def _core(cpu: int, root: Path) -> tuple[str, ...]:
    """What names the physical core of a processor; the processor itself where the kernel does not say."""
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    found = tuple(_read(topology / name) for name in ("physical_package_id", "core_id"))
    return found if all(found) else (str(cpu),)


def read_cpu_stats(root: Path = _ROOT) -> dict[str, int]:
    """What the cgroups of this process have counted of their CPU time, such as `nr_throttled`; the largest of each."""
    found: dict[str, int] = {}
    for directory, _ in _groups(root):
        for line in _read(directory / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if value.isdecimal():
                found[name] = max(found.get(name, 0), int(value))
    return found


def _groups(root: Path) -> Iterator[tuple[Path, bool]]:
    """The cgroups that limit the CPUs of this process, and whether each is of version 2."""
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        unified = not controllers
        if not unified and "cpu" not in controllers.split(","):
            continue
        base = mount if unified else mount / controllers
        relative = Path(group.lstrip("/"))
        for directory in (relative, *relative.parents):
            yield base / directory, unified


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _cpu_model(root: Path = _ROOT) -> str:
    """The marketing name; platform.processor() alone says "x86_64" or nothing on Linux."""
    for line in _read(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    if sys.platform == "darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (fixed command)
        return found.stdout.strip() or "Unknown"
    return platform.processor() or platform.machine() or "Unknown"


def _blas(*, load: bool) -> str | None:
    """The BLAS that numpy is linked to, for example "openblas 0.3.30"; scipy may have another."""
    if load:
        import numpy as np  # noqa: F401, PLC0415 (loading it is the purpose, and slow)
    if "numpy" not in sys.modules:
        return None
    from threadpoolctl import threadpool_info  # noqa: PLC0415 (useless before numpy is there)

    every = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    pools = [pool for pool in every if "numpy" in pool["filepath"]] or every
    names = {f"{pool['internal_api']} {pool['version'] or ''}".strip() for pool in pools}
    return ", ".join(sorted(names)) or None


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


def find_disturbances(root: Path = _ROOT, *, wait: Callable[[float], None] = time.sleep) -> tuple[Disturbance, ...]:
    cpus = list_cpus(root)
    return (*_busy(root, cpus, wait), *_load(root, cpus), *_frequency(root, cpus), *_battery(root))


def _busy(root: Path, cpus: list[int], wait: Callable[[float], None]) -> Iterator[Disturbance]:
    """Other programs on the CPUs, and a container that is throttled, both seen in a short sample."""
    programs = _programs() if root == _ROOT else {}
    before, own, throttled = _used(root, cpus), time.process_time(), read_cpu_stats(root)
    start = time.perf_counter()
    wait(_SAMPLE)
    wall = max(_SAMPLE, time.perf_counter() - start)
    after, again = _used(root, cpus), read_cpu_stats(root)
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
            text=f"this container was throttled to its quota of {read_cpu_quota(root) or 0:g} CPUs",
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
        off, file = ("1", no_turbo) if _read(no_turbo) == "0" else ("0", boost)
        switch = f"echo {off} | sudo tee /{file.relative_to(root)}"
        yield Disturbance(
            kind="turbo",
            text="the CPUs could exceed their base frequency while they were cool (turbo)",
            remedy=f"for times that can be repeated, switch it off with '{switch}'",
            judged=True,
        )


def _battery(root: Path) -> Iterator[Disturbance]:
    if (level := _draining(root)) is not None:
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


def _percent(share: float) -> str:
    return format_share(share, 0)
