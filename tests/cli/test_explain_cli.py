"""`boosters-eval explain`, as a user types it."""

import json

import pytest

from boosters_eval.cli.app import run
from boosters_eval.core.errors import ExitCode
from boosters_eval.runners import RUNNERS

LIBRARIES = ("boosters", "xgboost", "lightgbm", "catboost", "sklearn")


@pytest.fixture
def explain(capsys):
    def call(*arguments, code=ExitCode.SUCCESS):
        assert run(["explain", *arguments]) == code
        return capsys.readouterr()

    return call


def test_the_native_parameters_marks_and_reasons_of_one_library_are_shown(explain):
    out = explain("--library", "xgboost", "--booster", "gbdt", "--task", "multiclass", "--growth", "leafwise").out
    for part in ("multi:softprob", "eta", "0.2", "lossguide", "max_leaves", "not used", "exact", "multiclass"):
        assert part in out
    out = explain("--library", "lightgbm", "--param", "l1=2").out
    assert "approximated" in out
    assert "not tried again below" in out


def test_json_holds_what_a_translation_would_pass(explain, trainer_request):
    record = json.loads(explain("--library", "catboost", "--task", "binary", "-p", "depth=4", "--json").out)
    assert record["native"] == RUNNERS["catboost"].translate(trainer_request(max_depth=4)).native
    assert record["marks"]["objective"]["mark"] == "approximated"
    assert record["marks"]["n_leaves"]["mark"] == "not used"
    assert record["origins"]["random_strength"] == "no random term in the scores of splits"


@pytest.fixture
def trainer_request():
    from boosters_eval.metrics.task import Task
    from boosters_eval.runners import FitRequest
    from boosters_eval.runners.parameters import TrainingConfig

    return lambda **changes: FitRequest(Task.BINARY, TrainingConfig(**changes), n_classes=2)


def test_all_libraries_share_one_table(explain):
    out = explain("--all", "--task", "multiclass", "--param", "subsample=0.5", "--param", "colsample=0.5").out
    header = next(line for line in out.splitlines() if "canonical parameter" in line)
    assert all(name in header for name in LIBRARIES)
    assert "there is no row sampling" in out
    assert "column sampling ignores the seed" in out


def test_all_as_json_is_a_list_of_every_library(explain):
    records = json.loads(explain("--all", "--booster", "gblinear", "--json").out)
    assert {record["library"] for record in records} >= set(LIBRARIES)
    refused = {record["library"]: record["unsupported"] for record in records}
    assert refused["boosters"] is None
    assert refused["catboost"] == "the library boosts no linear models"


def test_what_a_library_cannot_do_is_reported(explain):
    out = explain("--library", "sklearn", "--task", "ranking").out
    assert "Unsupported: the library has no ranking objective." in out
    assert "no linear models in leaves" in explain("--all", "--booster", "linear_trees").out


def test_a_library_with_its_own_defaults_gets_almost_no_parameters(explain):
    out = explain("-l", "lightgbm", "--profile", "defaults").out
    assert "runs with its own defaults" in out
    assert "chooses by timing" in out
    assert "num_leaves" not in out


def test_everything_that_decides_a_mark_can_be_said(explain):
    out = explain("-l", "catboost", "--weighted", "--missing", "--categorical", "1", "--threads", "3", "--json").out
    record = json.loads(out)
    assert record["native"]["thread_count"] == 3
    assert record["native"]["border_count"] == 255
    assert record["marks"]["l2"]["mark"] == "approximated"
    assert record["marks"]["categorical"]["mark"] == "own"
    quantiles = ("--task", "quantile", "--quantile", "0.1", "--quantile", "0.9", "--json")
    assert json.loads(explain("-l", "lightgbm", *quantiles).out)["native"]["alpha"] == [0.1, 0.9]
    assert (
        json.loads(explain("-l", "xgboost", "--task", "multiclass", "--classes", "7", "--json").out)["native"][
            "num_class"
        ]
        == 7
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--library", "xgbost"], "Unknown library 'xgbost'. Did you mean 'xgboost'?"),
        (["-l", "xgboost", "--task", "multi"], "Got 'multi' instead. Did you mean 'multiclass'?"),
        (["-l", "xgboost", "--booster", "gbd"], "Unknown booster 'gbd'. Did you mean 'gbdt'?"),
        (
            ["-l", "xgboost", "--growth", "leaf"],
            "The '--growth' option must be depthwise or leafwise. Got 'leaf' instead.",
        ),
        (["-l", "xgboost", "--profile", "x"], "Unknown profile 'x'."),
        (["-l", "xgboost", "--param", "max_dept=3"], "unknown parameter 'max_dept'. Did you mean 'max_depth'?"),
        (["-l", "xgboost", "--param", "subsample=7"], "'subsample' in the '--param' option must be"),
        (["-l", "xgboost", "--param", "max_depth"], "'--param' option must give 'max_depth' one value"),
        (["-l", "xgboost", "--task", "quantile", "--quantile", "1.5"], "'--quantile' option must be between 0 and 1"),
        (["-l", "xgboost", "--categorical", "-3"], "--categorical"),
        ([], "Use either --library or --all"),
        (["--all", "-l", "xgboost"], "Use either --library or --all"),
    ],
)
def test_a_mistake_is_one_sentence(explain, arguments, sentence):
    err = explain(*arguments, code=ExitCode.CONFIGURATION_ERROR).err
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("way", [("--device", "cuda"), ("--param", "device=cuda")])
def test_mapping_of_a_device_is_shown_even_where_there_is_none(explain, monkeypatch, way):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    out = explain("-l", "lightgbm", *way).out
    assert "profile parity, device cuda" in out
    assert "device_type" in out
    assert "the order of sums is not fixed" in out
    assert "Not here: there is no CUDA device here: the variable CUDA_VISIBLE_DEVICES hides every device." in out
    assert "not here" in explain("--all", *way).out
    record = json.loads(explain("-l", "xgboost", *way, "--json").out)
    assert (record["device"], record["native"]["device"]) == ("cuda", "cuda")
    assert record["unsupported"] is None
    assert record["not_here"].startswith("there is no CUDA device here")


def test_library_without_devices_is_unsupported_and_the_cpu_needs_no_word(explain):
    assert "Unsupported: the library trains on CPUs only." in explain("-l", "sklearn", "--device", "cuda").out
    out = explain("-l", "xgboost", "--device", "cpu").out
    assert "Not here" not in out
    assert "device cuda" not in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--device", "gpu"], "The '--device' option must be cpu or cuda. Got 'gpu' instead."),
        (["--device", "cuda", "-p", "device=cpu"], "Use either --device or --param device=..., not both."),
        (["--device", "cpu", "-p", "lr=1,device=cpu"], "Use either --device or --param device=..., not both."),
        (["-p", "device=tpu"], "'device' in the '--param' option must be 'cpu' or 'cuda'. Got 'tpu' instead."),
    ],
)
def test_wrong_device_is_one_sentence(explain, arguments, sentence):
    assert sentence in explain("-l", "xgboost", *arguments, code=ExitCode.CONFIGURATION_ERROR).err
