"""What disturbs times is seen before they are measured, in files that the kernel would write."""

import os
from typing import NamedTuple

import psutil
import pytest

from boosters_eval.core import machine
from boosters_eval.core.machine import find_disturbances

QUIET = {
    "proc/stat": "cpu  0 0 0 0 0 0 0 0\ncpu0 100 0 0 900 0 0 0 0\ncpu1 100 0 0 900 0 0 0 0\n",
    "proc/loadavg": "0.30 0.20 0.10 1/100 42\n",
    "proc/self/cgroup": "0::/box\n",
    "sys/fs/cgroup/box/cpu.max": "200000 100000\n",
    "sys/fs/cgroup/box/cpu.stat": "usage_usec 100\nnr_throttled 3\nthrottled_usec 9\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/class/power_supply/AC/online": "1\n",
    "sys/class/power_supply/BAT0/status": "Charging\n",
    "sys/class/power_supply/BAT0/capacity": "71\n",
}


@pytest.fixture
def look(tmp_path, monkeypatch):
    """Look at a quiet machine of two CPUs, except for what is given; `later` is written while it waits."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def disturbed(files=None, later=None):
        write({**QUIET, **(files or {})})
        return find_disturbances(tmp_path, wait=lambda _: write(later or {}))

    return disturbed


def test_quiet_machine_has_none(look):
    assert look() == ()


def test_machine_that_tells_nothing_has_none(tmp_path):
    assert find_disturbances(tmp_path, wait=lambda _: None) == ()


class Times(NamedTuple):
    user: float
    idle: float


def test_system_without_the_files_of_linux_is_asked_in_other_ways(tmp_path, monkeypatch):
    spent = iter([(50.0, 100.0), (50.3, 100.0)])  # seconds that were worked and idle
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    monkeypatch.setattr(machine, "_programs", dict)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(os, "getloadavg", lambda: (1.7, 1.0, 1.0))
    monkeypatch.setattr(psutil, "cpu_times", lambda: Times(*next(spent)))
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)
    found = {item.kind: item.text for item in find_disturbances(tmp_path, wait=lambda _: None)}
    assert found == {
        "programs": "other programs used 75 % of the 2 CPUs",
        "load": "the load of the last minute was 1.7 on 2 CPUs",
    }


ROWS = [
    (
        "programs",
        {},
        {
            "proc/stat": "cpu0 112 0 0 908 0 0 0 0\ncpu1 102 0 0 916 0 0 0 2\n"
        },  # 16 of 40 hundredths, two of them stolen
        "Other programs used 40 % of the 2 CPUs: wait until they end, or stop them ('top' shows them).",
    ),
    (
        "throttling",
        {},
        {"sys/fs/cgroup/box/cpu.stat": "nr_throttled 4\n"},
        (
            "This container was throttled to its quota of 2 CPUs: give it a larger quota ('docker run --cpus'), or stop"
            " its other programs."
        ),
    ),
    (
        "frequency",
        {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n"},
        {},
        (
            "The frequency of the CPUs followed their load (governor powersave): fix it with 'sudo cpupower"
            " frequency-set -g performance'."
        ),
    ),
    (
        "battery",
        {"sys/class/power_supply/AC/online": "0\n", "sys/class/power_supply/BAT0/status": "Discharging\n"},
        {},
        "The machine ran on its battery (71 %), which slows the CPUs down: plug it in.",
    ),
]


@pytest.mark.parametrize(("kind", "files", "later", "warning"), ROWS, ids=[row[0] for row in ROWS])
def test_each_disturbance_is_told_with_its_number_and_remedy_and_keeps_times_from_being_judged(
    look, kind, files, later, warning
):
    [found] = look(files, later)
    assert found.kind == kind
    assert not found.judged
    assert found.warning == f"{warning} Times will be shown, but not judged."
    assert found.note.startswith("Times are indicative only: before the run, ")


def test_load_of_an_earlier_run_is_told_but_times_are_judged(look):
    [found] = look({"proc/loadavg": "1.72 0.2 0.1 1/1 4\n"})
    assert found.judged
    assert found.warning == "The load of the last minute was 1.7 on 2 CPUs: wait until 'uptime' shows less than 1.0."
    assert found.note == "Before the run, the load of the last minute was 1.7 on 2 CPUs."


@pytest.mark.parametrize(
    ("file", "value", "command"),
    [
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0", "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate"),
        ("sys/devices/system/cpu/cpufreq/boost", "1", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
    ],
)
def test_turbo_is_told_with_the_command_that_switches_it_off(look, file, value, command):
    [found] = look({file: value})
    assert (found.kind, found.judged) == ("turbo", True)
    assert command in found.warning


def test_a_plugged_laptop_that_drains_all_the_same_is_not_on_battery(look):
    assert look({"sys/class/power_supply/BAT0/status": "Discharging\n"}) == ()


def test_real_machine_is_looked_at_quickly_and_this_process_is_not_another_program(monkeypatch):
    slept = []
    found = find_disturbances(wait=slept.append)
    assert slept == [0.2]
    assert str(psutil.Process().pid) not in " ".join(item.text for item in found)
