"""What the documentation shows works: every command is run or parsed, every snippet is run, every name exists.

Training takes too long here, so cells are not run: an executor makes up their outcomes. Everything else is real.
"""

import re
import shlex
import shutil
import time
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import factories
import parity_rows
from boosters_eval import BenchmarkResult, Executor
from boosters_eval.cli.app import parser, run
from boosters_eval.datasets import DATASETS, open_stored
from boosters_eval.engine.artifacts import save_array
from boosters_eval.engine.execute import EXECUTORS
from boosters_eval.metrics import METRICS
from boosters_eval.metrics.metric import task_metrics
from boosters_eval.programs.benchmark.spec import identity_of, model_seed
from boosters_eval.programs.importances.records import Explanation, MeasuredKind, Probe
from boosters_eval.programs.importances.workload import ImportancesSpec, list_units, name_columns
from boosters_eval.programs.parity.rows import write_rows
from boosters_eval.runners import RUNNERS

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "third_party_runner"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "programs.md"),  # has a test of its own
    EXAMPLE / "README.md",
]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
COMMAND = re.compile(r"(?:^    |^ *- |`)(boosters-eval (?:\\\n|[^`\n])*)", re.MULTILINE)
SNIPPET = re.compile(r"(?<!-->\n)```python\n(.*?)```", re.DOTALL)  # marked examples are run by test_architecture.py

# Of entry points.
GROUPS = {
    *("backends", "datasets", "executors", "generators", "methods", "observers", "preprocessing", "runners", "suites"),
    *("kinds", "trackers", "workloads"),
}
# Placeholders, and what is put in their place.
STANDS_FOR = {"NAME": "minimal", "RUN": "last", "RUN_ID": "last", "FILE": "scores.csv"}
# Commands that need a network or a file of their own, only print help, or take long for what they show.
ONLY_PARSED = {
    "boosters-eval --help",
    "boosters-eval bisect --library lightgbm --versions 4.3..4.7 --dataset california",
    "boosters-eval tune -d sales.csv:revenue",
    "boosters-eval tune -d sales.csv:revenue -l xgboost lightgbm --trials 50 -o tuned.html",
    # These need versions, models or files; the tests of the room have them.
    "boosters-eval check-export model.txt --rows sample.csv",
    "boosters-eval check-export model.json --rows sample.csv --export served.onnx client.py:predict",
    "boosters-eval determinism lightgbm",
    "boosters-eval determinism lightgbm xgboost==3.1.3 -o determinism.html",
    "boosters-eval upgrade-check xgboost 3.1.3 3.4.1",
    "boosters-eval upgrade-check xgboost 1.7.6 3.1.3",
    "boosters-eval upgrade-check lightgbm 4.3.0 4.7.0",
    "boosters-eval upgrade-check sklearn 1.8.0 1.9.1",
    "boosters-eval upgrade-check catboost 1.2.5 1.2.10",
    "boosters-eval upgrade-check xgboost installed dist/xgboost-4.0.0-py3-none-any.whl -o upgrade.md",
    "boosters-eval upgrade-check lightgbm 4.3.0 4.7.0 -d sales.csv:revenue --params params.json",
    "boosters-eval upgrade-check catboost 1.2.5 1.2.10 --models models --rows sales.csv:revenue",
    "boosters-eval baseline record --suite gate released.json",  # the README's is run, with fewer seeds
    # These need versions, wheels or a repository; the tests of the room have them.
    "boosters-eval bisect -l boosters --folder ../boosters-python --commits v0.1.0..main",
    "boosters-eval bisect -l boosters --wheels dist/a.whl dist/b.whl dist/c.whl --metric memory",
    "boosters-eval bisect -l lightgbm --versions 4.3..4.7 -d california --metric train_time_s --tolerance 0.1",
    "boosters-eval paper compare --results results.csv --paper published.yaml",  # once its values are filled in
    "boosters-eval parity run --registry mine/registry.py --methods line --out-csv mine/parity.csv",
    "boosters-eval parity gate --registry mine/registry.py --csv mine/parity.csv",
    "boosters-eval datasets fetch covertype",
    "boosters-eval datasets fetch --suite real24",
    "boosters-eval run --suite real24 --subset 8",
    "boosters-eval datasets show NAME",
    "boosters-eval explain",
    # These need a CUDA device.
    "boosters-eval compare -d synthetic_bin_large -l xgboost catboost --device cuda",
    "boosters-eval compare -d synthetic_bin_large -l xgboost --variants 'cpu:n_threads=-1' 'gpu:device=cuda'",
    # These of trackers need their packages, and a server.
    "boosters-eval compare -d california -l xgboost lightgbm --track mlflow",
    "boosters-eval run --suite quick --track mlflow wandb",
    "boosters-eval track RUN --to mlflow",
    # These need a cluster; the tests of the room have one.
    "boosters-eval compare -d california -l xgboost lightgbm --executor dask --address tcp://host:8786",
    "boosters-eval compare -d california -l xgboost lightgbm --executor dask --workers 4",
    "boosters-eval run --suite full --executor dask --scheduler-file scheduler.json",
    # These need a policy, or a run of the baseline's own suite; the tests of each command run them.
    "boosters-eval run --suite gate --policy policy.json",
    'boosters-eval baseline update tests/baselines/quick.json --run last -l boosters --accept "a new default for bins"',
    "boosters-eval paper validate --spec benchmarks.yaml --executor dask --workers 2",
    "boosters-eval parity run --methods pls --registry-cells --executor dask --workers 2",
    # These of parity run cells; the tests of the room run them.
    "boosters-eval parity gate --csv mine.csv",
    "boosters-eval parity gate --csv parity.csv",
    "boosters-eval parity oracles refresh --methods pls",
    "boosters-eval parity oracles verify",  # nothing is stored where nothing ran
    "boosters-eval parity run --methods pls,pls2 --registry-cells --out-csv parity.csv",
    "boosters-eval parity run --registry mine.py --methods least-squares --out-csv mine.csv",
    # These install builds; the tests of each command run them on small ones.
    "boosters-eval builds add xgboost==2.1.4 --isolated",
    "boosters-eval builds remove xgboost==3.0.5",
    "boosters-eval builds show xgboost==3.0.5",
    "boosters-eval compare -d california -l boosters boosters@dist/boosters-0.2.0-cp312-abi3-linux_x86_64.whl",
    "boosters-eval compare -d california -l xgboost xgboost==3.0.5",
    "boosters-eval run --suite quick -l boosters main=boosters@../boosters-python --timing-mode",
    # These of the paper need its specification; the tests of each command run them.
    "boosters-eval paper compare --results results/results.json --paper benchmarks.yaml -o results/comparison.yaml",
    "boosters-eval paper report --comparison results/comparison.yaml --output results/report.html",
    "boosters-eval paper run --spec benchmarks.yaml",
    "boosters-eval paper validate --spec benchmarks.yaml",
    "boosters-eval paper validate --spec examples/papers/catboost-benchmarks.yaml --only Adult:XGBoost",  # real scores
    "boosters-eval report --suite full --type comparison --format md,json,html",  # docs/reports.md has it too
    "boosters-eval rescore last --metric mae",  # real predictions
    "boosters-eval where last -l boosters xgboost",  # as above
    "boosters-eval run --suite gate",
    "boosters-eval verify FILE",
}
BUILD = re.compile(r"[a-z]==\d|[a-z]@\S")  # a command that names one is only parsed, too: it would install it
# Commands that compare with recorded results, which only real training gives.
PREVIEWED = (["quick"], ["check"], ["full"], ["baseline", "check"])


def explained_fields(spec, inputs):
    """What a cell explains of a model that adds up the columns, with arrays as a true cell stores them."""
    table = open_stored(Path(inputs["data"]))
    names = name_columns(table)
    rows, x = np.arange(20), np.nan_to_num(table.x[:20]).astype(np.float32)
    shap = np.hstack([x, np.ones((20, 1))])[:, :, None].astype(np.float64)
    units = list_units(names, spec.groups)

    def saved(array):
        return save_array(Path(inputs["artifacts"]), array)

    made = {"permutation": np.ones((spec.permutations, len(units))), "shap": shap}
    kinds = {kind: saved(made.get(kind, np.arange(float(len(names))))) for kind in spec.kinds}
    return {
        "kinds": {kind: MeasuredKind(array=digest) for kind, digest in kinds.items()},
        "rows": saved(rows),
        "x": saved(x),
        "y": saved(np.asarray(table.y[:20], dtype=np.float64)),
        "predictions": saved(shap.sum(axis=(1, 2))),
        "raw": saved(shap.sum(axis=1)),
        "n_rows": 20,
        "feature_names": names,
        "units": units,
        "permutations": spec.permutations,
        "higher_is_better": False,
        "probe": Probe(n_rows=64, n_rounds=2, constant=dict.fromkeys(spec.kinds, 0.0)),
    }


class MadeUp(Executor):
    """Gives every library the same plausible scores, without running anything."""

    def run(self, works, started):
        for work in works:
            cell, spec = work.cell, work.cell.spec
            started(cell, "done")
            names = [metric.spec for metric in task_metrics(spec.task, spec.metrics)]
            score = 0.5 + (sum(map(ord, spec.name)) + cell.repeat.seed) % 97 / 1000
            fields = {
                **identity_of(spec),
                "library": cell.target.name,
                "seed": cell.repeat.seed,
                "fold": cell.repeat.fold,
                "metrics": {**dict.fromkeys(names, score), spec.primary_metric: score},
                "primary_metric": spec.primary_metric,
                "train_time_s": time.perf_counter(),  # no two runs take the same time
                "predict_time_s": 0.01,
                "peak_memory_mb": 10.0 if spec.timing.memory else None,
                "native_params": RUNNERS[cell.target.name].translate(spec.request(0)).native,
                "library_version": cell.target.build.version,
                "n_train": 800,
                "n_valid": 200,
                "split_digest": factories.digest(spec.dataset, cell.repeat),
                "data_digest": spec.data_digest,
                "model_seed": model_seed(cell),
                "n_threads": spec.n_threads,
                "timing_mode": spec.timing.timed,
            }
            if isinstance(spec, ImportancesSpec):
                yield Explanation(**fields, **explained_fields(spec, work.inputs))
            else:
                yield BenchmarkResult(**fields)

    def close(self):
        """Nothing was started."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project as the pages assume it: data files, baselines, a suite, the example's runner."""
    place = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "tests" / "baselines", place / "tests" / "baselines")
    shutil.copytree(ROOT / "examples" / "papers", place / "examples" / "papers")
    numbers = np.random.default_rng(0).random((60, 3))
    frame = pd.DataFrame(numbers, columns=["a", "b", "price"])
    frame.to_parquet(place / "prices.parquet")
    frame.rename(columns={"price": "revenue"}).to_csv(place / "sales.csv", index=False)
    frame.assign(left=numbers[:, 2] > 0.5).drop(columns="price").to_csv(place / "churn.csv", index=False)
    frame.rename(columns={"a": "height", "b": "weight"}).to_csv(place / "sizes.csv", index=False)
    cases = [f"c{i},1.0,{'held_out' if i < 6 else 'dev'}\n" for i in range(40)]
    (place / "scores.csv").write_text("case_id,score,class\n" + "".join(cases))
    for name in ("parity.csv", "refresh.csv"):
        write_rows(place / name, parity_rows.story())
    (suite,) = [code for code in SNIPPET.findall(TEXTS["docs/suites.md"]) if code.startswith("# my_suite.py")]
    (place / "my_suite.py").write_text(suite)
    runner = "from boosters_eval.runners.sklearn_runner import SklearnRunner\n\n\nclass MyRunner(SklearnRunner):\n"
    (place / "my_runner.py").write_text(f'{runner}    name = "mine"\n')
    (paper,) = re.findall(r"```markdown\n(<!-- paper.md -->\n.*?)```", "".join(TEXTS.values()), re.DOTALL)
    (place / "paper.md").write_text(paper)
    return place


@pytest.fixture
def project(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(folder / "home"))
    for name in ("BOOSTERS_EVAL_SEEDS", "BOOSTERS_EVAL_BASELINE_DIR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    monkeypatch.syspath_prepend(str(EXAMPLE / "src" if (EXAMPLE / "src").is_dir() else EXAMPLE))
    local, known = EXECUTORS["local"], (set(DATASETS), set(METRICS), set(RUNNERS))
    EXECUTORS.register("local", MadeUp, replace=True)
    if "ridge" not in RUNNERS:
        RUNNERS.register("ridge", import_module("ridge_runner").RidgeRunner)
    yield folder
    EXECUTORS.register("local", local, replace=True)
    for registry, names in zip((DATASETS, METRICS, RUNNERS), known, strict=True):
        for name in set(registry) - names:
            registry.unregister(name) if hasattr(registry, "unregister") else registry.pop(name)


def commands(page):
    """Every command line of a page, as typed."""
    found = (re.sub(r"\\\n *", " ", text) for text in COMMAND.findall(TEXTS[page]))
    return list(dict.fromkeys(re.sub(r" +# .*", "", text).strip() for text in found))


def words(command):
    return [STANDS_FOR.get(word, word) for word in shlex.split(command)[1:]]


def parse(arguments):
    """Let the real command line read the arguments without running anything."""
    command, context, rest = parser(), None, arguments
    while True:
        context = command.make_context(command.name, list(rest), parent=context)
        if not hasattr(command, "resolve_command") or not context._protected_args:
            return
        rest = [*context._protected_args, *context.args]
        _, command, rest = command.resolve_command(context, rest)


def test_the_pages_have_commands_and_snippets():
    assert all(commands(page) for page in ("README.md", "docs/gate.md", "docs/baselines.md"))
    assert sum(len(commands(page)) for page in TEXTS) > 30
    assert sum(len(SNIPPET.findall(text)) for text in TEXTS.values()) > 7


def test_every_command_works_in_the_order_of_the_pages(project, capsys):
    """Together, because a command may use what an earlier one left behind; the same command is run once."""
    again = ["compare", "-d", "iris", "-l", "sklearn", "-s", "2", "-q"]
    for command in (
        [*again, "-o", "results.json"],
        ["baseline", "record", "--results", "results.json", "-q", "before.json"],
        again,
        ["baseline", "record", "--run", "last", "-q", "after.json"],
        *(
            {
                text: words(text)
                for page in TEXTS
                for text in commands(page)
                if text not in ONLY_PARSED and not BUILD.search(text)
            }
        ).values(),
    ):
        capsys.readouterr()
        code = run([*command, *(["--dry-run"] if command[:2] in PREVIEWED or command[:1] in PREVIEWED else [])])
        assert code == 0, f"{shlex.join(command)}: {capsys.readouterr()}"
        if command[:2] == ["baseline", "record"]:
            time.sleep(1 - time.time() % 1)  # a run that begins in the same second could be the recorded one


def test_a_shortcut_without_a_baseline_tells_how_to_record_what_it_ran(project, monkeypatch, capsys):
    monkeypatch.setenv("BOOSTERS_EVAL_BASELINE_DIR", "none")
    assert run(["quick", "--library", "sklearn", "-q"]) == 3
    told = capsys.readouterr().err
    (recording,) = re.findall(r"'boosters-eval (baseline record --run \w+ none/quick.json)'", told)
    assert run(recording.split()) == 0


def test_commands_that_are_not_run_are_parsed():
    named = {command for page in TEXTS for command in commands(page)}
    assert named > ONLY_PARSED
    for command in ONLY_PARSED - {"boosters-eval --help"}:
        parse(words(command))


class TestSnippets:
    given: ClassVar = {
        "np": np,
        "df": pd.DataFrame(np.random.default_rng(2).random((60, 3)), columns=["a", "b", "price"]),
        "x": np.random.default_rng(1).random((60, 2)),
        "y": np.arange(60) % 2,
        "predictions": np.array([0.2, 0.8, 0.6]),
        "labels": np.array([0, 1, 1]),
        "weights": np.ones(3),
        "scores": np.array([0.3, 0.2, 0.9]),
        "relevance": np.array([0, 1, 2]),
        "query_ids": np.array([1, 1, 1]),
        "y_true": np.array([0, 1, 1]),
        "y_pred": np.array([0.2, 0.8, 0.6]),
    }

    @pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if SNIPPET.search(text)])
    def test_every_snippet_runs(self, page, project):
        names = {**self.given, "__name__": "snippet"}
        for code in SNIPPET.findall(TEXTS[page]):
            exec(compile(code, page, "exec"), names)


def test_every_dotted_name_exists():
    for page, text in TEXTS.items():
        for name in set(re.findall(r"\bboosters_eval(?:\.[a-z]\w*)*(?:\.[A-Za-z]\w*)?", text)):
            if name.removeprefix("boosters_eval.") in GROUPS:
                continue
            place, parts = import_module("boosters_eval"), name.split(".")[1:]
            for depth, part in enumerate(parts):
                if not hasattr(place, part):
                    import_module("boosters_eval." + ".".join(parts[: depth + 1]))
                place = getattr(place, part)
            assert place is not None, (page, name)


def options_of(command):
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    below = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return own.union(*(options_of(command.get_command(None, name)) for name in below))


def test_every_option_exists():
    plugin = (ROOT / "src" / "boosters_eval" / "pytest_plugin.py").read_text(encoding="utf-8")
    foreign = {"--no-deps", "--nthreads", "--update-golden", "--help"}
    methodology = {
        "--algorithms",
        "--csvs",
        "--libn",
        "--n-runs",
        "--only-pls",
        "--resume-existing",
    }  # told beside ours
    others = foreign | methodology | set(re.findall(r'"(--boosters-eval-[a-z-]+)"', plugin))
    known = options_of(parser()) | others
    for page, text in TEXTS.items():
        spans = re.findall(r"`([^`\n]+)`", text)
        named = {word for span in spans for word in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span)}
        assert named - known == set(), page


def test_every_target_of_make_exists():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page, text in TEXTS.items():
        assert set(re.findall(r"(?:^    |`)make ([a-z0-9-]+)", text, re.MULTILINE)) <= targets, page


def test_what_a_newcomer_reads_is_short():
    """Minutes, not an hour: details are in docs/."""
    assert len(TEXTS["README.md"].splitlines()) <= 120
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_to_one(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
