"""A benchmark on a device: nothing runs where there is none, nothing changes where none is asked for."""

import pytest

import factories
from boosters_eval import ResultCollection, TrainingConfig, load_run, run_suite
from boosters_eval.core import machine
from boosters_eval.core.devices import CudaDevices, cuda_devices
from boosters_eval.core.errors import ConfigError, UnsupportedError
from boosters_eval.engine.plan import Plan
from boosters_eval.programs.baseline.check import check
from boosters_eval.programs.baseline.findings import CheckRules
from boosters_eval.programs.baseline.snapshot import Snapshot, make_baseline
from boosters_eval.programs.benchmark.benchmarks import select_benchmarks
from boosters_eval.programs.benchmark.paper_protocol import canonicalize_native
from boosters_eval.programs.benchmark.planning import fit_specs
from boosters_eval.programs.benchmark.suites import SUITES, cost_key
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.history.query import list_runs as history_runs
from boosters_eval.runners import RUNNERS, base
from boosters_eval.runners.config import BenchmarkConfig
from boosters_eval.runners.parameters import BoosterType, Device, Profile
from tiny import TINY, plan_of, prepare_tiny, run_tiny, tiny_config

GPU = CudaDevices(names=("Test GPU",), version="12.4")


def on(device, *libraries, name="tiny/gbdt", **changes):
    training = TrainingConfig(n_estimators=2, device=device)
    return BenchmarkConfig(
        name=name, dataset=TINY, task=TINY.task, training=training, libraries=libraries or ("xgboost",), **changes
    )


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.setattr(base, "cuda_devices", lambda: CudaDevices(fault="the test took it away"))


@pytest.fixture
def a_device(monkeypatch):
    """One that this process believes in; workers ask the driver themselves."""
    for module in (base, machine):
        monkeypatch.setattr(module, "cuda_devices", lambda: GPU)


def test_plan_is_on_the_cpu_unless_a_device_is_named(home, no_device):
    named, unnamed = (plan_of(on("cpu")), plan_of(on("cpu").replace(training=TrainingConfig(n_estimators=2))))
    assert named.run_id == unnamed.run_id
    assert Plan.parse(named.model_dump_json(), "plan.json") == named


def test_plan_on_a_device_is_another_one(home, a_device, monkeypatch):
    monkeypatch.setattr(base, "_shared_libraries", lambda runner: ())
    found = plan_of(on("cuda"))
    (spec,) = fit_specs(found).values()
    assert spec.uses_device
    assert spec.alone  # some libraries take all the memory of a device
    assert found.run_id != plan_of(on("cpu")).run_id
    assert Plan.parse(found.model_dump_json(), "plan.json").run_id == found.run_id


def test_cells_without_a_device_are_unsupported_and_nothing_runs(home, no_device):
    prepared = prepare_tiny(on("cpu", name="tiny/cpu"), on("cuda", "xgboost", "catboost", "sklearn", name="tiny/gpu"))
    missing = "there is no CUDA device here: the test took it away"
    assert {(item.spec, item.target): item.reason for item in prepared.plan.excluded} == {
        ("tiny/gpu", "xgboost"): missing,
        ("tiny/gpu", "catboost"): missing,
        ("tiny/gpu", "sklearn"): "the library trains on CPUs only",
    }
    assert len(prepared.plan.cells) == 1
    with pytest.raises(UnsupportedError) as error:
        run_tiny(on("cpu", name="tiny/cpu"), on("cuda", "xgboost", "catboost", "sklearn", name="tiny/gpu"))
    assert str(error.value) == (
        "Nothing runs, because no library can train tiny/gpu on the device 'cuda':"
        f" {missing} (xgboost, catboost); the library trains on CPUs only (sklearn)."
    )
    assert not (home / "runs").exists()


def test_library_that_cannot_use_the_device_does_not_stop_those_that_can(home, a_device, monkeypatch):
    monkeypatch.setattr(base, "_shared_libraries", lambda runner: ())
    prepared = prepare_tiny(on("cuda", "xgboost", "sklearn"))
    assert [cell.target.name for cell in prepared.plan.cells] == ["xgboost"]
    assert [item.target for item in prepared.plan.excluded] == ["sklearn"]


def test_worker_looks_for_the_device_itself_and_the_run_records_what_it_asked_for(home, a_device):
    """What the machine that made the plan has, another one need not have: XGBoost would train on the CPU there."""
    if RUNNERS["catboost"].missing() or cuda_devices().names:
        pytest.skip("needs CatBoost and no device")
    run = run_tiny(on("cuda", "catboost"))
    (failure,) = run.errors
    assert failure.error_type == "UnsupportedError"
    assert failure.error_message.startswith("catboost cannot train on cuda: there is no CUDA device here")
    assert run.metadata.configs["tiny/gbdt"]["device"] == "cuda"
    recorded = run.metadata.facts
    assert (recorded.machine["gpu"], recorded.machine["cuda"]) == ("Test GPU", "12.4")
    again = ResultCollection.from_json(run.to_json())
    assert again.metadata == load_run().metadata == run.metadata
    rows = dict(build_document(run).data.environment.rows({}))
    assert rows["GPU"] == "Test GPU, CUDA 12.4"
    (entry,) = history_runs()
    assert (entry.run_id, entry.machine) == (run.run_id, recorded.machine["digest"])
    assert entry.machine_label.endswith(", Test GPU")


def test_no_device_is_looked_for_where_none_is_used(home, faulty, a_device):
    recorded = run_tiny(tiny_config()).metadata
    assert (recorded.facts.machine["gpu"], recorded.facts.machine["cuda"]) == (None, None)
    assert recorded.configs["tiny/none"]["device"] == "cpu"


def test_suite_of_the_rfc_compares_the_cpu_with_a_device():
    suite = SUITES["ablation-device"]
    assert {config.variant: config.training.device for config in suite.configs} == {
        "cpu": Device.CPU,
        "gpu": Device.CUDA,
    }
    assert {config.training.replace(device="cpu") for config in suite.configs} == {suite.configs[0].training}
    assert all(set(config.libraries) >= {"boosters", "xgboost"} for config in suite.configs)


def test_suite_of_devices_never_loses_its_half_because_of_the_libraries_named(home, no_device):
    found = select_benchmarks("ablation-device", ["sklearn"])
    assert [config.variant for config in found.configs] == ["cpu", "gpu"]
    with pytest.raises(UnsupportedError, match="trains on CPUs only"):
        run_suite("ablation-device", 1, ["sklearn"])


def test_seeds_auto_and_timing_mode_refuse_before_they_begin(home, no_device):
    for options in ({"seeds": "auto"}, {"seeds": 2, "timing_mode": True, "jobs": 1}):
        with pytest.raises(UnsupportedError, match="on the device 'cuda'"):
            run_tiny(on("cuda"), **options)


def test_own_defaults_need_the_device_too(home, no_device):
    with pytest.raises(UnsupportedError, match="on the device 'cuda'"):
        run_tiny(on("cuda", profile=Profile.DEFAULTS))


def test_variants_that_differ_in_the_device_alone_are_two(home, a_device, monkeypatch):
    monkeypatch.setattr(base, "_shared_libraries", lambda runner: ())
    variants = [on(device, name=f"tiny/{device}", variant=device) for device in ("cpu", "cuda")]
    prepared = prepare_tiny(*variants)
    assert len(prepared.plan.cells) == 2
    assert not prepared.notes  # the device is no setting without effect
    prepared = prepare_tiny(*variants, variants[1].replace(name="tiny/again", variant="again"))
    assert [spec.variant for spec in prepared.plan.specs] == ["cpu", "cuda = again"]


def test_times_of_a_device_are_not_those_of_the_cpu():
    keys = {cost_key("d", BoosterType.GBDT, TrainingConfig(device=device), "xgboost") for device in Device}
    assert len(keys) == 2


def test_reports_name_the_device_and_the_option_that_asks_for_it():
    configs = {factories.CONFIG: TrainingConfig(device="cuda").model_dump(mode="json")}
    run = factories.remember(factories.collection(suite="compare"), configs=configs)
    document = build_document(run)
    assert "--device cuda" in document.reproduce[0]
    assert document.data.configs[0].canonical.endswith("device=cuda")


def test_baseline_of_the_cpu_says_that_a_run_on_a_device_had_other_parameters():
    before = factories.collection(factories.grid(lambda *_: 0.5, libraries=("boosters",), native_params={"eta": 1}))
    after = factories.collection(
        factories.grid(lambda *_: 0.9, libraries=("boosters",), native_params={"eta": 1, "device": "cuda"})
    )
    found = check(Snapshot.of_baseline(make_baseline(before)), Snapshot.of_run(after), CheckRules())
    assert all("parameters changed: device unset → cuda" in finding.cause for finding in found.findings)


@pytest.mark.parametrize(
    ("library", "native"),
    [
        ("xgboost", {"device": "cuda:0"}),
        ("lightgbm", {"device": "gpu"}),
        ("lightgbm", {"device_type": "cuda"}),
        ("catboost", {"task_type": "GPU"}),
    ],
)
def test_native_device_must_be_the_canonical_one_which_is_looked_for(library, native):
    with pytest.raises(ConfigError, match="must be given as the canonical 'device'"):
        canonicalize_native(library, native)
    assert canonicalize_native(library, dict.fromkeys(native, "CPU" if library == "catboost" else "cpu"))
