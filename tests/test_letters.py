"""Every command and snippet of RFC-0015, letter by letter, in an empty folder on 1, 2 and 4 processors.

`make test-letters` runs this with the checkout, and with a wheel on several versions of Python.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import boosters_eval

pytestmark = pytest.mark.letters

BASELINES = Path(__file__).parent / "baselines"
SHIPPED = """
boosters-eval quick
boosters-eval baseline check --suite quick --baseline tests/baselines/quick.json
boosters-eval baseline check \\
  --baseline tests/baselines/quick.json \\
  --suite quick \\
  --tolerance 0.02 \\
  --continue-on-error
"""
COMMANDS = """
boosters-eval baseline record --suite full tests/baselines/full.json  # which the RFC has in its repository
boosters-eval full
boosters-eval compare --dataset california --seeds 3
boosters-eval compare --dataset california --timing-mode --measure-memory

boosters-eval baseline record --output baselines/v0.1.0.json
boosters-eval baseline check --baseline baselines/v0.1.0.json
boosters-eval baseline record  # -> tests/baselines/baseline.json
boosters-eval baseline check \\
  --baseline baselines/main.json \\
  --tolerance 0.02 \\
  --fail-on-regression \\
  --output results.json

boosters-eval baseline check --suite full --baseline tests/baselines/full.json
boosters-eval compare \\
  --dataset california breast_cancer \\
  --library boosters xgboost lightgbm \\
  --booster gbdt \\
  --seeds 5 \\
  --output report.md \\
  --format markdown
boosters-eval run \\
  --suite full \\
  --output results.json \\
  --format json
boosters-eval compare \\
  --dataset california \\
  --timing-mode \\
  --warmup 2 \\
  --measure-memory
boosters-eval run --suite ablation-growth
boosters-eval run --suite ablation-threading
boosters-eval compare \\
  --dataset california \\
  --library boosters \\
  --variants "depthwise:growth=depthwise" "leafwise:growth=leafwise"
boosters-eval report --suite full --type quality
boosters-eval report --suite full --type comparison
boosters-eval report --suite full --type quality --dry-run
boosters-eval report --suite full --type quality --open
boosters-eval report --suite full --output ./custom-reports/
boosters-eval baseline record \\
  --suite full \\
  --seeds 5 \\
  --output baselines/v0.2.0.json
boosters-eval baseline check \\
  --baseline baselines/v0.1.0.json \\
  --tolerance 0.02 \\
  --fail-on-regression
boosters-eval list datasets
boosters-eval list libraries
boosters-eval list suites
boosters-eval run --suite quick --library boosters
boosters-eval run --suite quick --quiet      # Minimal output (CI)
boosters-eval run --suite quick --verbose    # Detailed progress
boosters-eval run --suite quick --seeds 3
"""
SNIPPETS = {
    "quick start": """
from boosters_eval import compare

results = compare(
    datasets=["california", "breast_cancer"],
    libraries=["boosters", "xgboost", "lightgbm"],
    seeds=5,
)
print(results.to_markdown())
""",
    "growth": """
from boosters_eval import BenchmarkConfig, TrainingConfig, GrowthStrategy
from boosters_eval import DATASETS, BenchmarkSuite, BoosterType, Task, run_suite  # which the RFC leaves out

ABLATION_GROWTH_SUITE = BenchmarkSuite(
    name="ablation-growth",
    configs=[
        BenchmarkConfig(
            name="california/boosters-depthwise",
            dataset=DATASETS["california"],
            task=Task.REGRESSION,
            booster_type=BoosterType.GBDT,
            training=TrainingConfig(
                n_estimators=100,
                growth_strategy=GrowthStrategy.DEPTHWISE,
            ),
            libraries=["boosters"],  # Single library for ablation
        ),
        BenchmarkConfig(
            name="california/boosters-leafwise",
            dataset=DATASETS["california"],
            task=Task.REGRESSION,
            booster_type=BoosterType.GBDT,
            training=TrainingConfig(
                n_estimators=100,
                growth_strategy=GrowthStrategy.LEAFWISE,
            ),
            libraries=["boosters"],
        ),
    ],
)
report = run_suite(ABLATION_GROWTH_SUITE).to_markdown()
assert "boosters depthwise" in report and "boosters leafwise" in report, report
""",
    "threading": """
from boosters_eval import TrainingConfig, create_ablation_suite, run_suite

ABLATION_THREADING = create_ablation_suite(
    name="ablation-threading",
    dataset="california",
    library="boosters",
    variants={
        "single": TrainingConfig(n_threads=1),
        "multi-4": TrainingConfig(n_threads=4),
        "multi-auto": TrainingConfig(n_threads=-1),  # All cores
    },
)
print(run_suite(ABLATION_THREADING).to_markdown())
""",
    "data set": """
from boosters_eval import register_dataset, DatasetConfig, Task

def load_my_dataset():
    \"\"\"Load custom dataset.\"\"\"
    df = pd.read_parquet("my_dataset.parquet")
    X = df.drop("target", axis=1).values
    y = df["target"].values
    return X.astype(np.float32), y.astype(np.float32)

register_dataset(
    DatasetConfig(
        name="my_dataset",
        task=Task.BINARY,
        loader=load_my_dataset,
        description="Custom binary classification dataset",
    )
)
""",
    "api": """
from boosters_eval import run_suite, compare, ResultCollection
from boosters_eval import Task  # which the RFC leaves out

# Run a predefined suite
results = run_suite("quick", seeds=3, verbose=True)
print(results.to_markdown())

# Custom comparison
results = compare(
    datasets=["california", "breast_cancer"],
    libraries=["boosters", "xgboost"],
    booster="gbdt",
    seeds=5,
)

# Explore results
df = results.to_dataframe()
print(df.head())

# Filter and analyze
boosters_results = results.filter(library="boosters")
regression_results = results.filter(task=Task.REGRESSION)

# Find best library per dataset
print(results.best(metric="rmse"))

# Export
results.to_csv("results.csv")
results.to_json("results.json")
""",
    "notebook": """
from boosters_eval import compare
from rich.jupyter import print as rprint

# Rich progress bars work in Jupyter
results = compare(
    datasets=["california"],
    libraries=["boosters", "xgboost"],
    verbose=True,  # Shows progress bar
)

# Display formatted results
rprint(results.summary())
""",
}
# Fewer processors are taken away; more of them are stood in for by naming those that there are several times.
PROCESSORS = """
import os, sys
cpus = sorted(os.sched_getaffinity(0))
if {cpus} <= len(cpus):
    os.sched_setaffinity(0, cpus[:{cpus}])
else:
    os.sched_getaffinity = lambda pid: (cpus * {cpus})[:{cpus}]
"""
# The same shape in seconds: rows and trees are few, so that what a baseline holds is recorded anew.
SMALL = """
from boosters_eval import DATASETS, SUITES
DATASETS.register("california", DATASETS["california"].replace(subsample=1000), replace=True)
full = SUITES["full"]
configs = [
    config.replace(training=config.training.replace(n_estimators=5), dataset=config.dataset.replace(subsample=300))
    for config in full.configs
    if config.dataset.name == "breast_cancer"
]
SUITES.register("full", full.replace(configs=configs, default_seeds=2), replace=True)
"""
MAIN = "from boosters_eval.__main__ import main; main()"
WITHOUT_BOOSTERS = find_spec("boosters") is None  # as on Python 3.11: what needs it says so


@pytest.fixture(params=[1, 2, 4], ids="on_{}".format)
def program(request, tmp_path, monkeypatch):
    """Run code, then the command line with these words, in an empty folder."""
    for name in [name for name in os.environ if name.startswith(("BOOSTERS_EVAL_", "PYTHON", "GITHUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BROWSER", "true")

    def run(code, *words):
        return subprocess.run(
            [sys.executable, "-P", "-c", PROCESSORS.format(cpus=request.param) + code, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    run.folder = tmp_path
    return run


def split(block):
    """The commands of a block, without the name of the program."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words[1:] for line in lines if (words := shlex.split(line, comments=True))]


def is_fine(done):
    without = WITHOUT_BOOSTERS and re.search(r"boosters\b.*(not installed|unavailable)", done.stdout + done.stderr)
    return done.returncode == 0 or bool(without)


def tell(done):
    return f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_every_command_of_the_rfc_runs(program):
    baselines = program.folder / "tests" / "baselines"
    if not Path(boosters_eval.__file__).with_name("baselines").exists():  # as in a wheel
        shutil.copytree(BASELINES, baselines, ignore=shutil.ignore_patterns("full*"))
    failed = []
    for code, block in ((MAIN, SHIPPED), (SMALL + MAIN, COMMANDS)):
        for words in split(block):
            if "tests/baselines/quick.json" in words and not baselines.exists():
                shutil.copytree(BASELINES, baselines, ignore=shutil.ignore_patterns("full*"))
            if "baselines/main.json" in words:
                shutil.copy(program.folder / "baselines/v0.1.0.json", program.folder / "baselines/main.json")
            done = program(code, *words)
            if not is_fine(done) or "Traceback" in done.stderr:
                failed.append(f"boosters-eval {shlex.join(words)}: {tell(done)}")
    assert failed == [], "\n\n".join(failed)
    assert (program.folder / "tests/baselines/baseline.json").exists()
    assert len(list((program.folder / "docs/benchmarks").glob("*.md"))) == 2  # quality and comparison
    assert {".md", ".json"} <= {path.suffix for path in (program.folder / "custom-reports").iterdir()}


@pytest.mark.parametrize("name", SNIPPETS)
def test_every_snippet_of_the_rfc_runs(program, name):
    done = program(SMALL + SNIPPETS[name])
    assert is_fine(done), tell(done)
