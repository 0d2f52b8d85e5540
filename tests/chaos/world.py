"""A place with one file of every kind that the program reads, and one command line per command, which works there."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

import toys
from processes import PLUGINS, environment

TOY = "toy_runner.py:ToyRunner"
ONE = ("-d", "diabetes", "-l", "faulty", "-s", "1", "-q", "-p", "max_depth=1")
SUITE = """
from boosters_eval import DATASETS, BenchmarkConfig, BenchmarkSuite, Task, TrainingConfig
SUITE = BenchmarkSuite(name="small", configs=[BenchmarkConfig(
    name="diabetes/gbdt", dataset=DATASETS["diabetes"], task=Task.REGRESSION, libraries=["faulty", "sklearn"],
    training=TrainingConfig(max_depth=1, n_estimators=2))])
"""
PAPER = """\
# A Paper

Table 1: Accuracy on Iris.

| Model | Iris |
|---|---|
| Good | 0.90 |
| Fair | 0.85 |
"""
SPECIFICATION = """\
paper: A Paper
seeds: 2
tables:
  - id: T
    datasets: [{name: Iris}]
    models: [{name: Good, run: {callable: "mine:good"}}]
    results:
      - {model: Good, dataset: Iris, metrics: {accuracy: 0.9}}
reproduction_targets:
  primary: [{table: T}]
"""
ARFF = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute t numeric\n@data\n"
PARITY = ("--registry", str(PLUGINS / "noting_backends.py"), "--methods", "my-sum", "--max-runs", "2")
SCORES = ("--threshold", "0.5", "--json", "-o", "d.json")

# One of each command. The exit code of all but a few is 0; those few are what they say: a check, a verdict, a doubt.
LINES = {
    "baseline record": ("baseline", "record", "recorded.json", "--suite", "suite.py:SUITE", "-s", "2", "-q"),
    "baseline check": ("baseline", "check", "base.json", "--run", "again"),
    "baseline update": ("baseline", "update", "updated.json", "--run", "again", "--accept", "it is the same"),
    "baseline diff": ("baseline", "diff", "base.json", "same.json"),
    "compare": ("compare", *ONE[:4], "sklearn", *ONE[4:], "trees=2", "-f", "csv"),
    "run": ("run", "--suite", "suite.py:SUITE", "-s", "2", "-q", "-f", "csv"),
    "where": ("where", "two", "-l", "faulty", "sklearn", "-q"),
    "rescore": ("rescore", "main", "--metric", "mae", "-q"),
    "builds add": ("builds", "add", f"{TOY}@wheels/toybooster-3.0-py3-none-any.whl"),
    "builds list": ("builds", "list", "--json"),
    "builds show": ("builds", "show", f"{TOY}@wheels/toybooster-1.0-py3-none-any.whl"),
    "builds remove": ("builds", "remove", f"{TOY}@wheels/toybooster-2.0-py3-none-any.whl", "--dry-run"),
    "builds prune": ("builds", "prune", "--older-than", "0h", "--dry-run"),
    "datasets fetch": ("datasets", "fetch", "iris"),
    "datasets show": ("datasets", "show", "data.csv:t"),
    "datasets init": ("datasets", "init", "other.csv:t", "--force"),
    "explain": ("explain", "-l", "sklearn"),
    "gate": ("gate", "--run", "main", "--baseline", "base.json", "-l", "faulty", "--threshold", "0.9", "--json"),
    "bisect": (
        *("bisect", "-l", TOY, "--wheels", *(f"wheels/toybooster-{n}.0-py3-none-any.whl" for n in (1, 2, 3))),
        *("-d", "diabetes", "--max-seeds", "4", "-q", "-f", "json"),
    ),
    "importances": (
        *("importances", "-d", "diabetes", "-l", "sklearn", "-s", "1", "-p", "trees=2"),
        *("--kinds", "permutation", "--permutations", "1", "-q", "-f", "csv"),
    ),
    "verify": ("verify", "main"),
    "paper extract": ("paper", "extract", "paper.md"),
    "paper run": ("paper", "run", "--spec", "benchmarks.yaml", "--output", "run-results", "-q"),
    "paper list": ("paper", "list", "benchmarks.yaml", "--json"),
    "paper compare": ("paper", "compare", "--results", "paper/results.json", "--paper", "benchmarks.yaml"),
    "paper results init": ("paper", "results", "init", "benchmarks.yaml", "--out", "own-results.csv", "--force"),
    "paper report": ("paper", "report", "--comparison", "comparison.yaml"),
    "paper validate": ("paper", "validate", "--spec", "benchmarks.yaml", "--output", "validated", "-q"),
    "parity run": ("parity", "run", *PARITY, "-q", "--out-csv", "other-parity.csv"),
    "parity gate": ("parity", "gate", "--csv", "parity.csv", "--own", "b0"),
    "parity render": ("parity", "render", "--csv", "parity.csv", "--registry", PARITY[1], "--out", "parity.md"),
    "parity init": ("parity", "init", "own-parity"),
    "parity list": ("parity", "list", "--registry", PARITY[1]),
    "parity oracles list": ("parity", "oracles", "list"),
    "parity oracles verify": ("parity", "oracles", "verify"),
    "parity oracles refresh": ("parity", "oracles", "refresh", *PARITY[:4]),
    "runs list": ("runs", "list", "--json"),
    "runs show": ("runs", "show", "main"),
    "runs open": ("runs", "open", "main", "--no-browser"),
    "runs remove": ("runs", "remove", "main", "--dry-run"),
    "runs prune": ("runs", "prune", "--predictions", "--dry-run"),
    "history": ("history",),
    "history show": ("history", "show", "main"),
    "history import": ("history", "import", "export.json"),
    "history export": ("history", "export"),
    "history reindex": ("history", "reindex"),
    "history diff": ("history", "diff", "main", "main"),
    "history report": ("history", "report"),
    "list libraries": ("list", "libraries"),
    "list datasets": ("list", "datasets"),
    "list suites": ("list", "suites"),
    "list metrics": ("list", "metrics"),
    "report": ("report", "--run", "main", "--dry-run", "-f", "md"),
    "figures": ("figures", "main", "-o", "figures", "-f", "svg"),
    "track": ("track", "main", "--to", "noting", "--dry-run"),
}
ALIKE = {  # what takes too long here
    **dict.fromkeys(("quick", "full", "check"), "baseline check"),
    **dict.fromkeys(("determinism", "upgrade-check", "check-export", "tune"), "importances"),
}
# What is run to make the files of a place.
SETTING_UP = (
    ("compare", *ONE[:4], "-s", "3", *ONE[6:], "--name", "main"),
    ("baseline", "record", "base.json", "--run", "main"),
    ("compare", *ONE[:4], "-s", "3", *ONE[6:], "-f", "json", "-o", "results.json", "--name", "again"),
    ("compare", *ONE[:4], "sklearn", "-s", "3", *ONE[6:], "trees=2", "--name", "two"),
    ("report", "--run", "main", "-f", "json", "-o", "report.json"),
    ("gate", "--scores", "scores.json", "--threshold", "0.5", "-o", "decision.json", "-q"),
    ("baseline", "record", "suite-base.json", "--suite", "suite.py:SUITE", "-s", "2", "-q"),
    ("history", "export", "-o", "export.json"),
    ("history", "export", "-o", "export.csv"),
    ("paper", "run", "--spec", "benchmarks.yaml", "--output", "paper", "-q"),
    ("paper", "compare", "--results", "paper/results.json", "--paper", "benchmarks.yaml", "-o", "comparison.yaml"),
    ("parity", "run", *PARITY, "-q", "--out-csv", "parity.csv"),
    *(("builds", "add", f"{TOY}@wheels/toybooster-{n}.0-py3-none-any.whl") for n in (1, 2)),
)


class Server:
    """The program in a process that runs command lines in forks of itself."""

    def __init__(self, folder, place):
        self.place = place
        script = Path(__file__).with_name("server.py")
        env = environment(
            PLUGINS,
            BOOSTERS_EVAL_CACHE=str(place / "cache"),
            BOOSTERS_EVAL_HOME=str(place / "home"),
            NOTES=str(place / "notes"),
            TMPDIR=str(folder),
            OPENBLAS_NUM_THREADS="1",  # a process with threads had better not be forked
            PIP_NO_INDEX="1",
            PIP_CONFIG_FILE=os.devnull,
            GITHUB_ACTIONS=None,
        )
        self.process = subprocess.Popen(
            [sys.executable, "-P", script, folder], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *command, timeout=120, **more):
        request = {"command": command, "place": str(self.place), "timeout": timeout, **more}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def write_files(place):
    """What a user brings along."""
    frame = pd.DataFrame({"a": range(60), "b": [i % 7 / 3 for i in range(60)], "t": [i % 5 / 4 for i in range(60)]})
    for name in ("data.csv", "other.csv", "sidecar.csv"):
        frame.to_csv(place / name, index=False)
    (place / "sidecar.csv.yaml").write_text("target: t\nnumeric: [a, b]\n")
    (place / "data.csv.gz").write_bytes(gzip.compress((place / "data.csv").read_bytes()))
    (place / "data.arff").write_text(ARFF + frame.to_csv(index=False, header=False))
    frame.to_parquet(place / "data.parquet")
    frame.to_feather(place / "data.feather")
    cases = [{"case_id": f"c{i}", "score": 1.0, "class": "held_out" if i % 3 == 0 else "dev"} for i in range(40)]
    (place / "scores.json").write_text(json.dumps(cases, indent=1))
    lines = [f"{case['case_id']},{case['score']},{case['class']}" for case in cases]
    (place / "scores.csv").write_text("\n".join(["case_id,score,class", *lines, ""]))
    (place / "policy.json").write_text('{"tier": "bronze", "threshold": 0.9, "held_out": ["diabetes"]}\n')
    (place / "full.md").symlink_to("/dev/full")
    (place / "suite.py").write_text(SUITE)
    (place / "mine.py").write_text("def good(): return {'accuracy': 0.9}\n")
    (place / "benchmarks.yaml").write_text(SPECIFICATION)
    (place / "paper.md").write_text(PAPER)
    rows = "".join(f"<tr><td>{model}</td><td>{value}</td></tr>" for model, value in (("Good", 0.9), ("Fair", 0.85)))
    (place / "paper.html").write_text(
        f"<h1>A</h1><table><caption>Table 1: Accuracy</caption><tr><th>Model</th><th>Iris</th></tr>{rows}</table>"
    )
    (place / "paper.tex").write_text(
        "\\begin{table}\\caption{Accuracy}\\begin{tabular}{lr}Model & Iris \\\\ Good & 0.9 \\\\ Fair & 0.85 \\\\"
        "\\end{tabular}\\end{table}\n"
    )
    toys.write_runner(place)
    for number in (1, 2, 3):
        toys.write_wheel(place / "wheels", f"{number}.0", shift=float(number > 1))


def prepare(call, place, commands=SETTING_UP):
    """A place in which every command works, with one file of each kind, all of them sound."""
    write_files(place)
    for command in commands:
        done = call(*command)
        assert done["code"] == 0, (command, done)
    for name in ("same.json", "updated.json"):
        shutil.copy(place / "base.json", place / name)
    (run,) = {path.parent for path in (place / "home" / "runs").glob("*/journal-2.jsonl")}
    (place / "main").symlink_to(run)
