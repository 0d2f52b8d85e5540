"""The device: mapped by every table, refused where it is missing, and never replaced by the CPU in silence."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import factories
from boosters_eval.core.devices import CudaDevices, cuda_devices
from boosters_eval.core.errors import ConfigError, UnsupportedError
from boosters_eval.engine.cell import Installation
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, Runner, TrainData
from boosters_eval.runners import base as module
from boosters_eval.runners.base import cannot_run, find_device_fault
from boosters_eval.runners.parameters import BoosterType, Device, GrowthStrategy, Profile, TrainingConfig
from boosters_eval.runners.rules import find_refusal, translate
from mapping_requests import EDITIONS, IDS, MAPPING, requests
from tiny import loaded

NATIVE = {
    "xgboost": {"device": "cuda"},
    "lightgbm": {"device_type": "cuda"},
    "catboost": {"task_type": "GPU", "devices": "0"},
}
SPELLINGS = {"device", "device_type", "task_type", "devices"}
ON_CPU_ONLY = ("boosters", "sklearn")


def on(device, task=Task.REGRESSION, *, booster=BoosterType.GBDT, profile=Profile.PARITY, **changes):
    fields = {name: changes.pop(name) for name in list(changes) if name in FitRequest.__dataclass_fields__}
    training = TrainingConfig(device=device, **changes)
    return FitRequest(task, training, booster, profile, n_classes=3, quantiles=(0.1, 0.9), **fields)


@pytest.fixture
def a_device(monkeypatch):
    monkeypatch.setattr(module, "cuda_devices", lambda: CudaDevices(names=("Test GPU",), version="12.4"))


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.setattr(module, "cuda_devices", lambda: CudaDevices(fault="the test took it away"))


def test_device_is_written_whichever_it_is():
    assert TrainingConfig(device="cpu") == TrainingConfig(device=Device.CPU) == TrainingConfig()
    assert TrainingConfig().model_dump(mode="json")["device"] == "cpu"
    cuda = TrainingConfig(device="cuda")
    assert list(cuda.model_dump(mode="json"))[-1] == "device"  # after the RFC's fields
    assert TrainingConfig.model_validate_json(cuda.model_dump_json()) == cuda


@pytest.mark.parametrize("given", ["gpu", "cuda:1", "", None, 0])
def test_a_device_that_does_not_exist_is_one_sentence(given):
    with pytest.raises(ConfigError, match=r"'device' parameter of TrainingConfig must be 'cpu' or 'cuda'\. Got"):
        TrainingConfig(device=given)


@pytest.mark.parametrize("edition", EDITIONS, ids=IDS)
@settings(max_examples=30, deadline=None)
@given(request=requests)
def test_device_is_passed_where_it_is_asked_for_and_only_there(edition, request):
    if find_refusal(edition, request):
        return
    translation = translate(edition, request)
    named = {name: translation.native[name] for name in SPELLINGS & set(translation.native)}
    marks = {mark.parameter: mark for mark in translation.marks}
    if request.training.device is Device.CPU:
        assert not named
        assert request.profile is Profile.DEFAULTS or marks["device"].kind == "exact"
        return
    assert named == NATIVE[edition.library]  # with a library's own defaults too
    assert {translation.origins[name] for name in named} == {"device"}
    if request.profile is Profile.PARITY:
        assert marks["device"].kind == "approximated"
        assert "deterministic" not in translation.native
        assert ("gpu_use_dp" in translation.native) == (edition.library == "lightgbm")


@pytest.mark.parametrize("edition", EDITIONS, ids=IDS)
@settings(max_examples=30, deadline=None)
@given(request=requests)
def test_what_is_refused_on_the_cpu_is_refused_on_a_device(edition, request):
    on_cpu = FitRequest(**{**vars(request), "training": request.training.replace(device=Device.CPU)})
    on_cuda = FitRequest(**{**vars(request), "training": request.training.replace(device=Device.CUDA)})
    if find_refusal(edition, on_cpu):
        assert find_refusal(edition, on_cuda)
    if edition.library in ON_CPU_ONLY:
        assert find_refusal(edition, on_cuda)


@pytest.mark.parametrize("library", ON_CPU_ONLY)
@pytest.mark.parametrize("profile", Profile)
def test_library_without_devices_refuses_in_every_edition_and_profile(library, profile):
    for edition in MAPPING[library]:
        assert find_refusal(edition, on("cuda", profile=profile)) == "the library trains on CPUs only"
        assert find_refusal(edition, on("cpu", profile=profile)) is None


@pytest.mark.parametrize(
    ("library", "request_", "why"),
    [
        ("xgboost", on("cuda", booster=BoosterType.GBLINEAR), "linear models are trained on CPUs only"),
        ("lightgbm", on("cuda", booster=BoosterType.LINEAR_TREES), "fitted on CPUs only"),
        ("catboost", on("cuda", Task.RANKING, max_depth=9), "at most 8 deep"),
    ],
)
def test_what_a_library_would_do_on_the_cpu_in_silence_or_not_at_all_is_refused(library, request_, why):
    for edition in MAPPING[library]:
        assert why in find_refusal(edition, request_)
        training = request_.training.replace(device=Device.CPU)
        assert find_refusal(edition, FitRequest(**{**vars(request_), "training": training})) is None


def test_the_same_seed_may_give_another_model_only_where_the_library_says_so():
    why = {library: translate(editions[-1], on("cuda")).nondeterministic for library, editions in MAPPING.items()}
    assert {library for library, reason in why.items() if reason} == {"lightgbm", "catboost"}
    assert not any(translate(editions[-1], on("cpu")).nondeterministic for editions in MAPPING.values())


@pytest.mark.parametrize(
    ("changes", "parameter", "kind", "native"),
    [
        ({"max_bins": 256}, "max_bins", "exact", {"border_count": 255}),
        ({"max_bins": 1000}, "max_bins", "approximated", {"border_count": 255}),
        ({"max_bins": 100, "has_missing": True}, "max_bins", "approximated", {"border_count": 100}),
        ({"colsample": 0.5}, "colsample", "unsupported", {}),
        ({"colsample": 1.0}, "colsample", "exact", {}),
        ({"subsample": 0.5}, "subsample", "exact", {"bootstrap_type": "Bernoulli", "subsample": 0.5}),
        ({"n_threads": 4}, "n_threads", "approximated", {"thread_count": 4}),
        ({"categorical": (1,)}, "categorical", "own", {}),
        (
            {"task": Task.RANKING, "growth_strategy": GrowthStrategy.LEAFWISE},
            "n_leaves",
            "approximated",
            {"max_leaves": 31, "depth": 8},
        ),
    ],
)
def test_catboost_on_a_device_differs_where_its_documentation_says_so(changes, parameter, kind, native):
    translation = translate(MAPPING["catboost"][-1], on("cuda", changes.pop("task", Task.REGRESSION), **changes))
    assert {mark.parameter: mark.kind for mark in translation.marks}[parameter] == kind
    assert native.items() <= translation.native.items()
    assert {"rsm", "sampling_frequency"}.isdisjoint(translation.native)


def test_early_stopping_and_its_marks_are_the_same_on_a_device():
    for library in NATIVE:
        found = [translate(MAPPING[library][-1], on(device, early_stopping_rounds=5)) for device in Device]
        stopping = [next(m for m in it.marks if m.parameter == "early_stopping_rounds") for it in found]
        assert stopping[0] == stopping[1]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_without_a_device_the_reason_is_the_machine(no_device, library):
    expected = "there is no CUDA device here: the test took it away"
    assert find_device_fault(RUNNERS[library], Device.CUDA) == expected
    assert cannot_run(RUNNERS[library], on("cuda")) == expected
    assert cannot_run(RUNNERS[library], on("cpu")) is None


@pytest.mark.parametrize("library", ON_CPU_ONLY)
def test_a_library_that_never_could_says_so_whatever_the_machine(a_device, library):
    assert cannot_run(RUNNERS[library], on("cuda")) == "the library trains on CPUs only"


@pytest.mark.parametrize(
    ("library", "code", "why"),
    [
        ("xgboost", [False], "no code for CUDA devices: install xgboost instead of xgboost-cpu"),
        ("lightgbm", [False, False], "USE_CUDA=ON"),
        ("catboost", [False], "on Linux or Windows"),
        ("xgboost", [True, False], None),
        ("xgboost", [None, False], None),  # not known: it is tried, and fails by itself
        ("xgboost", [], None),
    ],
)
def test_with_a_device_the_build_must_have_code_for_it(a_device, monkeypatch, library, code, why):
    answers = iter(code)
    monkeypatch.setattr(module, "_shared_libraries", lambda runner: code)
    monkeypatch.setattr(module, "has_cuda_code", lambda file: next(answers))
    found = find_device_fault(RUNNERS[library], Device.CUDA)
    assert found is None if why is None else why in found


@pytest.mark.parametrize(("library", "usable"), [("xgboost", False), ("lightgbm", False), ("catboost", True)])
def test_installed_builds_are_recognized_by_their_files(a_device, library, usable):
    if RUNNERS[library].missing():
        pytest.skip("not installed")
    assert (find_device_fault(RUNNERS[library], Device.CUDA) is None) == usable


@pytest.mark.parametrize(("content", "usable"), [(b"MZ .nv_fatb", True), (b"MZ .text", False)])
def test_a_build_is_judged_by_its_own_files(a_device, tmp_path, content, usable):
    (tmp_path / "xgboost" / "lib").mkdir(parents=True)
    (tmp_path / "xgboost" / "__init__.py").touch()
    (tmp_path / "xgboost" / "lib" / "xgboost.dll").write_bytes(content)
    where = Installation(library="xgboost", version="3.0.5", digest="0" * 16, path=(str(tmp_path),))
    build = RUNNERS["xgboost"].at("xgboost==3.0.5", where)
    assert (cannot_run(build, on("cuda")) is None) == usable


def test_the_cpu_asks_neither_the_driver_nor_the_files(monkeypatch):
    monkeypatch.setattr(module, "cuda_devices", lambda: pytest.fail("asked"))
    assert all(find_device_fault(runner, Device.CPU) is None for runner in RUNNERS.values())


def test_runner_of_someone_else_refuses_a_device_that_it_never_heard_of(a_device):
    class Theirs(RUNNERS["sklearn"]):
        @classmethod
        def unsupported(cls, request):
            return None

    assert cannot_run(Theirs, on("cuda")) == "its runner knows no device but the CPU"
    assert Runner.cuda_build == ""


def test_the_rfc_way_in_refuses_too(no_device):
    config = factories.config(factories.dataset(), training=TrainingConfig(n_estimators=2, device="cuda"))
    rows = np.zeros((4, 2), np.float32)
    assert not RUNNERS["xgboost"].supports(config)
    with pytest.raises(UnsupportedError, match="there is no CUDA device here"):
        RUNNERS["xgboost"].run(config, rows, np.arange(4.0), rows, np.arange(4.0), seed=1)


def test_xgboost_that_fell_back_to_the_cpu_is_an_error():
    """It does so with no more than a warning: the model would be reported as trained on the device."""
    runner = loaded("xgboost")
    if runner.missing() or cuda_devices().names:
        pytest.skip("needs XGBoost and no device")
    translation = runner.translate(on("cuda", n_estimators=2))
    rows = TrainData(np.random.default_rng(1).random((50, 2), np.float32), np.arange(50.0))
    dataset = runner.build(translation, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UnsupportedError, match="trained on the device 'cpu' instead of 'cuda'"):
            runner.fit(translation, dataset)


VALIDATED = """
import json, sys, numpy, catboost
x = numpy.random.default_rng(1).random((60, 3), numpy.float32)
y = {"multiclass": numpy.arange(60) % 3, "ranking": numpy.arange(60) % 3, "binary": numpy.arange(60) % 2}
for task, native in json.loads(sys.argv[1]):
    alpha = native.pop("alpha", None)
    loss = native["loss_function"] if alpha is None else f"Quantile:alpha={alpha[0]}"
    rows = catboost.Pool(x, y.get(task, x[:, 0]), group_id=numpy.arange(60) // 10 if task == "ranking" else None)
    try:
        catboost.CatBoost({**native, "loss_function": loss}).fit(rows)
    except catboost.CatBoostError as error:
        said = str(error)
        assert "CUDA error" in said or "State == nullptr" in said, (task, native, said)
"""


@pytest.mark.slow
def test_catboost_objects_to_nothing_but_the_missing_device():
    """It checks its options before it looks for the device, so that much of the table can be tried without one."""
    if RUNNERS["catboost"].missing() or cuda_devices().names:
        pytest.skip("needs CatBoost and no device")
    changes = [
        *({"growth_strategy": growth} for growth in GrowthStrategy),
        {"subsample": 0.5, "colsample": 0.5, "max_bins": 1000, "min_samples_leaf": 5},
    ]
    cases = [
        (task.value, translate(MAPPING["catboost"][-1], on("cuda", task, profile=profile, **change)).native)
        for task in Task
        for profile in Profile
        for change in changes
    ]
    subprocess.run([sys.executable, "-c", VALIDATED, json.dumps(cases)], check=True, capture_output=True)
