"""The fingerprint, and the processors a process may use."""

import os
import subprocess
import sys

import psutil
import pytest

from boosters_eval.core import machine
from boosters_eval.core.devices import CudaDevices
from boosters_eval.core.errors import ConfigError
from boosters_eval.core.machine import MachineInfo, _cpu_model, count_cores, list_cpus, read_cpu_quota


def info(**changes):
    base = {"cpu_model": "Test CPU", "cpu_cores": 4, "cpu_threads": 8, "memory_gb": 15.6, "os": "Linux 6.1"}
    return MachineInfo(**{**base, **changes})


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_collect_describes_this_machine():
    found = MachineInfo.collect()
    assert found.cpu_threads == psutil.cpu_count()
    assert 1 <= found.cpu_cores <= found.cpu_threads
    assert found.memory_gb == pytest.approx(psutil.virtual_memory().total / 2**30, abs=0.06)
    assert found.cpu_model
    assert found.blas_backend is not None
    assert found.cpus_available == len(list_cpus())


def test_numpy_need_not_be_loaded_but_then_no_blas_is_known():
    code = (
        "import sys; from boosters_eval.core.machine import MachineInfo; m = MachineInfo.collect(load_blas=False);"
        "assert m.blas_backend is None; assert 'numpy' not in sys.modules; print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ok"


def test_the_blas_of_numpy_is_told_whatever_else_is_loaded():
    code = (
        "from boosters_eval.core.machine import MachineInfo; before = MachineInfo.collect().blas_backend;"
        "import scipy.linalg; assert before and before == MachineInfo.collect().blas_backend; print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ok"


def test_digest_is_the_same_on_two_looks():
    assert MachineInfo.collect().digest == MachineInfo.collect().digest


@pytest.mark.parametrize(
    "changes",
    [
        {"os": "Linux 6.9"},
        {"blas_backend": "mkl 2025"},
        {"cpus_available": 1},
        {"memory_gb": 15.3},
        {"build_type": "debug"},
        {"cuda": "12.4"},
    ],
)
def test_digest_ignores_what_changes_on_the_same_machine(changes):
    assert info(**changes).digest == info().digest


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu_model": "Other"},
        {"cpu_cores": 2},
        {"cpu_threads": 4},
        {"memory_gb": 31.3},
        {"architecture": "arm64"},
        {"gpu": "NVIDIA T4"},
    ],
)
def test_digest_tells_machines_apart(changes):
    assert info(**changes).digest != info().digest


def test_machine_info_is_frozen_and_refuses_unknown_keys():
    with pytest.raises(ConfigError, match="no parameter 'tpu'"):
        info(tpu="none")
    with pytest.raises(Exception, match="frozen"):
        info().cpu_cores = 3


def test_available_cpus_are_within_the_affinity_mask():
    assert set(list_cpus()) <= os.sched_getaffinity(0)
    assert 1 <= count_cores() <= len(list_cpus())


def test_affinity_limits_the_processors():
    code = (
        "import os; cpu = min(os.sched_getaffinity(0)); os.sched_setaffinity(0, {cpu});"
        "from boosters_eval.core.machine import list_cpus, count_cores;"
        "assert list_cpus() == [cpu]; assert count_cores() == 1; print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "ok"


def test_siblings_of_a_core_come_last(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    files = {}
    for cpu, core in enumerate((0, 0, 1, 1)):
        base = f"sys/devices/system/cpu/cpu{cpu}/topology"
        files |= {f"{base}/core_id": f"{core}\n", f"{base}/physical_package_id": "0\n"}
    root = tree(tmp_path, files)
    assert list_cpus(root) == [0, 2, 1, 3]
    assert count_cores(root) == 2


def test_without_topology_every_processor_is_a_core_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 7})
    monkeypatch.setattr(psutil, "cpu_count", lambda *, logical=True: 16)
    assert list_cpus(tmp_path) == [4, 7]
    assert count_cores(tmp_path) == 2


def test_without_affinity_all_processors_count(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert list_cpus(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
            },
            2.0,
        ),
        (
            {
                "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/x\n",
                "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_quota_is_read_from_both_cgroup_versions(tmp_path, files, quota):
    assert read_cpu_quota(tree(tmp_path, files)) == quota


@pytest.mark.parametrize(("limit", "count"), [("250000", 2), ("50000", 1), ("900000", 4)])
def test_quota_limits_the_processors_but_never_to_none(tmp_path, monkeypatch, limit, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    root = tree(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": f"{limit} 100000\n"})
    assert len(list_cpus(root)) == count


def test_cpu_model_is_the_name_in_cpuinfo(tmp_path):
    root = tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU 9000 @ 3GHz\n"})
    assert _cpu_model(root) == "Fast CPU 9000 @ 3GHz"
    assert _cpu_model(tmp_path / "nothing")


def test_device_is_described_only_where_one_is_asked_for(monkeypatch):
    found = CudaDevices(names=("NVIDIA A100", "NVIDIA T4"), version="12.4")
    monkeypatch.setattr(machine, "cuda_devices", lambda: found)
    plain = MachineInfo.collect()
    assert (plain.gpu, plain.cuda) == (None, None)
    asked = MachineInfo.collect(device=True)
    assert (asked.gpu, asked.cuda) == ("NVIDIA A100", "12.4")
    assert asked.recorded() == {**asked.model_dump(), "digest": asked.digest}
    monkeypatch.setattr(machine, "cuda_devices", lambda: CudaDevices(fault="none"))
    assert MachineInfo.collect(device=True) == plain


def test_node_of_several_with_equal_hardware_is_a_machine_of_its_own():
    plain = MachineInfo.collect()
    named = plain.replace(node="a1")
    assert named.digest != plain.digest
    assert MachineInfo.of_record(named.recorded()) == named
