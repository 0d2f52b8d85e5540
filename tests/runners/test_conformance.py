"""The conformance suite: the runners pass it, and every way to break the contract is found."""

import importlib
import os
import random
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.runners import RUNNERS, FitRequest, ModelFacts, TrainData, conformance
from boosters_eval.runners.conformance import Conformance, ConformanceError, check_runner
from boosters_eval.runners.parameters import BoosterType, Mark, TrainingConfig
from processes import environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party_runner"


@pytest.mark.parametrize("library", ["boosters", "xgboost", "lightgbm", "catboost", "sklearn"])
def test_a_runner_of_the_package_keeps_the_contract(library):
    runner = RUNNERS[library]
    if runner.missing():
        with pytest.raises(ConformanceError, match="cannot be checked"):
            check_runner(runner)
        return
    found = check_runner(runner)
    assert found.runner == library
    assert "gbdt multiclass weighted" in found.passed
    assert all(found.refused.values())
    trees = {case for case in found.passed if not case.startswith("gblinear")}
    # What the installed versions get wrong by their own definition; one that is repaired fails here, and its line goes.
    unsound = {
        "boosters": lambda: set(found.unsound) == trees,
        "catboost": lambda: "gbdt regression plain" in found.unsound and set(found.unsound) <= trees,  # unequal depths
        "xgboost": lambda: (
            set(found.unsound) == {case for case in found.passed if case.startswith("gblinear") and "plain" in case}
        ),  # a linear model's column counts even where it is constant
    }
    assert unsound.get(library, lambda: not found.unsound)(), found.unsound


@pytest.fixture
def ridge(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    yield importlib.import_module("ridge_runner").RidgeRunner
    sys.modules.pop("ridge_runner", None)


def test_the_worked_example_outside_the_package_keeps_the_contract(ridge):
    found = check_runner(ridge)
    assert isinstance(found, Conformance)
    assert "gblinear regression weighted" in found.passed
    assert found.refused["gbdt binary plain"] == "it is a linear model"


@pytest.mark.parametrize("weighted", [False, True])
def test_the_penalty_of_the_example_is_that_of_the_other_linear_models(ridge, weighted):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)).astype(np.float32)
    weights = rng.uniform(0.2, 3, 500) if weighted else None
    data = TrainData(x=x, y=2 + x @ np.array([1.0, -2.0, 3.0]), weights=weights)
    request = FitRequest(
        Task.REGRESSION,
        TrainingConfig(n_estimators=200, learning_rate=0.5, l2=0.5),
        booster_type=BoosterType.GBLINEAR,
        weighted=weighted,
    )
    found = []
    for runner in (ridge, RUNNERS["xgboost"]):
        translation = runner.translate(request)
        found.append(runner.predict(translation, runner.fit(translation, runner.build(translation, data)), x))
    assert np.abs(found[0] - found[1]).max() < 1e-3
    assert np.abs(found[0] - data.y).max() > 0.5


def test_the_entry_point_of_the_example_is_found_by_a_fresh_process(tmp_path):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "ridge_runner-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["boosters_eval.runners"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[boosters_eval.runners]\n{lines}")
    code = (
        "import sys; from boosters_eval.runners import RUNNERS; r = RUNNERS['ridge'];"
        "print(r.name, r.missing(), 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path, EXAMPLE / "src"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["ridge", "None", "False"], done.stderr


def broken(ridge, **methods):
    """The example with some methods replaced. It stays importable under its own module for fresh processes."""
    return type("Broken", (ridge,), {name: classmethod(method) for name, method in methods.items()})


def loud(cls, translation, model, x):
    os.write(1, b"hello")
    return cls.__base__.predict(translation, model, x)


def chatty(cls, translation, model, x):
    sys.stdout.write("hello")
    return cls.__base__.predict(translation, model, x)


def warning(cls, translation, model, x):
    warnings.warn("careful", stacklevel=1)
    return cls.__base__.predict(translation, model, x)


def littering(cls, translation, dataset):
    Path("model.txt").write_text("left")
    return cls.__base__.fit(translation, dataset)


def seeding(cls, translation, dataset):
    random.random()
    np.random.random(1_000)  # noqa: NPY002 (the fault)
    return cls.__base__.fit(translation, dataset)


def exporting(cls, translation, dataset):
    os.environ["RIDGE"] = str(random.random())
    return cls.__base__.fit(translation, dataset)


def writing(cls, translation, data):
    data.y[:] = 0
    return cls.__base__.build(translation, data)


def unweighted(cls, translation, data):
    return cls.__base__.build(translation, type(data)(x=data.x, y=data.y))


def constant(cls, translation, model, x):
    return np.full(len(x), model[-1])


def column(cls, translation, model, x):
    return cls.__base__.predict(translation, model, x)[:, None]


def infinite(cls, translation, model, x):
    return np.full(len(x), np.inf)


def batchwise(cls, translation, model, x):
    return cls.__base__.predict(translation, model, x) + 1e-9 * len(x)


def lying(cls, request):
    return None


def mute(cls, request):
    return "" if cls.__base__.unsupported(request) else None


def failing(cls, request):
    raise RuntimeError("no answer")


def refusing(cls, request):
    return "no"


def arrays(cls, request):
    given = cls.__base__.translate(request)
    return type(given)(request, {"alpha": np.float64(1), "x": np.ones(2)}, given.marks)


def fickle(cls, request):
    given = cls.__base__.translate(request)
    return type(given)(request, {"alpha": random.random()}, given.marks)


def unreasoned(cls, request):
    given = cls.__base__.translate(request)
    return type(given)(request, given.native, (Mark(parameter="l1", kind="unsupported"),))


def unmarked(cls, request):
    given = cls.__base__.translate(request)
    return type(given)(request, given.native)


def forgetful(cls, request):
    given = cls.__base__.translate(request)
    return type(given)(None, given.native, given.marks)


def miscounting(cls, model):
    return ModelFacts(n_trees=10_000, n_leaves=-1)


def empty(cls, model):
    return ModelFacts(n_bytes=0)


LAST = {}


def remembering(cls, translation, dataset):
    LAST["model"] = cls.__base__.fit(translation, dataset)
    return LAST


def recalling(cls, translation, model, x):
    return cls.__base__.predict(translation, model["model"], x)


def deaf(cls, translation, dataset):
    columns = dataset[0]
    return cls.__base__.fit(translation, (columns, columns[:, 1] * 2))


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"predict": loud}, "something is printed"),
        ({"predict": chatty}, "something is printed"),
        ({"predict": warning}, "a warning is given: careful"),
        ({"fit": littering}, "model.txt is left behind"),
        ({"fit": seeding}, "numpy's random state is changed"),
        ({"fit": seeding}, "Python's random state is changed"),
        ({"fit": exporting}, "the environment is changed"),
        ({"build": writing}, "raised ValueError"),
        ({"build": unweighted}, "weights have no effect"),
        ({"predict": constant}, "nothing is learnt"),
        ({"predict": column}, "must have shape"),
        ({"predict": infinite}, "finite"),
        ({"predict": batchwise}, "depends on the other rows"),
        ({"unsupported": lying}, "gbdt regression missing: predictions must be finite"),
        ({"unsupported": mute}, "refused without a reason"),
        ({"unsupported": failing}, "unsupported() raised"),
        ({"unsupported": refusing}, "nothing at all is supported"),
        ({"translate": arrays}, "plain JSON values"),
        ({"translate": fickle}, "two answers to one request"),
        ({"translate": unreasoned}, "'l1' is unsupported without a reason"),
        ({"translate": unmarked}, "sampled: 'colsample' is asked for and has no mark"),
        ({"translate": unmarked}, "weighted: 'weights' is asked for and has no mark"),
        ({"translate": forgetful}, "must carry the request"),
        ({"inspect": miscounting}, "more than were asked for"),
        ({"inspect": miscounting}, "n_leaves as a whole number"),
        ({"inspect": empty}, "as more than 0"),
        (
            {"fit": remembering, "predict": recalling, "inspect": lambda cls, model: ModelFacts()},
            "when another one is trained",
        ),
        ({"fit": deaf}, "the labels have no effect"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_runner_that_breaks_the_contract_is_found_out(ridge, monkeypatch, methods, words):
    monkeypatch.setattr(conformance, "_check_import", lambda runner: iter(()))  # it has a test of its own below
    state = np.random.get_state()  # noqa: NPY002 (put back what the fault changes)
    environment = dict(os.environ)
    try:
        with pytest.raises(ConformanceError) as error:
            check_runner(broken(ridge, **methods))
    finally:
        np.random.set_state(state)  # noqa: NPY002
        os.environ.clear()
        os.environ.update(environment)
    assert words in str(error.value)


def test_a_runner_that_cannot_be_imported_again_is_found_out(ridge):
    local = type("Local", (ridge,), {"__module__": "nowhere"})
    with pytest.raises(ConformanceError, match="'nowhere' cannot be imported"):
        check_runner(local)


def test_a_runner_without_a_name_is_found_out(ridge):
    with pytest.raises(ConformanceError, match="'install' must be a str"):
        check_runner(type("Nameless", (ridge,), {"install": None}))


@pytest.fixture
def of_module(tmp_path, monkeypatch):
    """A runner like the example but for its fit, in a module of its own that fresh processes can import."""

    def make(name, *body):
        lines = ["from ridge_runner import RidgeRunner", "class Other(RidgeRunner):", "    @classmethod"]
        lines += ["    def fit(cls, translation, dataset):", *(f"        {line}" for line in body)]
        (tmp_path / f"{name}.py").write_text("\n".join(lines))
        made.append(name)
        return importlib.import_module(name).Other

    made = ["ridge_runner"]
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_two_processes_that_disagree_are_found_out(of_module):
    noise = "return super().fit(translation, dataset) + hash('a string') / 2**63"
    with pytest.raises(ConformanceError, match="two fits disagree"):
        check_runner(of_module("ridge_by_chance", noise))


def test_an_import_inside_the_clock_is_found_out_though_this_process_has_done_it(of_module):
    importlib.import_module("colorsys")
    lazy = of_module("ridge_lazy", "import colorsys", "return super().fit(translation, dataset)")
    with pytest.raises(ConformanceError, match="imports colorsys inside the clock: name them in 'dependencies'"):
        check_runner(lazy)


@pytest.mark.parametrize("given", [3, "ridge", object, None], ids=str)
def test_what_is_no_runner_is_told_in_a_sentence(given):
    with pytest.raises(ConfigError, match="'runner' parameter must be a subclass of Runner"):
        check_runner(given)
