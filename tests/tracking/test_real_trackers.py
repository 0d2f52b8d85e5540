"""The real MLflow, with a server on loopback and its SQLite store, and the real W&B, offline: make test-tracking."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from offline_wandb import offline_runs

from processes import PLUGINS, PROGRAM, environment

pytestmark = [pytest.mark.tracking, pytest.mark.filterwarnings("ignore")]

QUICK = ("-d", "diabetes", "-l", "boosters", "lightgbm", "-p", "n_estimators=3")
TABLES = ("experiments", "runs", "tags", "params", "metrics", "latest_metrics")


class Server:
    """An MLflow server of the tests' own."""

    def __init__(self, place):
        self.place, self.store = place, place / "mlflow.db"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.uri = f"http://127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--host", "127.0.0.1"]
        command += ["--port", self.uri.rpartition(":")[2], "--backend-store-uri", f"sqlite:///{self.store}"]
        command += ["--artifacts-destination", str(place / "artifacts")]
        changes = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (place / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=place, env={**os.environ, **changes}, stdout=log, stderr=log, start_new_session=True
            )
        for _ in range(1200):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
            assert self.process.poll() is None, (place / "server.log").read_text(encoding="utf-8")
            time.sleep(0.25)
        raise AssertionError((place / "server.log").read_text(encoding="utf-8"))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def content(self):
        """All that the store holds, but not in which order it came."""
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store:
            return {table: sorted(map(repr, store.execute(f"select * from {table}"))) for table in TABLES}

    def forget(self, tag):
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store:
            store.execute("delete from tags where key = ?", [tag])
            store.commit()

    def client(self):
        from mlflow import MlflowClient

        return MlflowClient(self.uri)

    def family(self, run_id):
        """The parents of that run, of which there should be one, and their children by name."""
        client = self.client()
        experiment = client.get_experiment_by_name("boosters-eval")
        found = client.search_runs([experiment.experiment_id], f"tags.`boosters_eval.run_id` = '{run_id}'")
        children = [run for run in found if "mlflow.parentRunId" in run.data.tags]
        parents = [run for run in found if run not in children]
        return parents, {child.info.run_name: child for child in children}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    found = Server(tmp_path_factory.mktemp("mlflow"))
    yield found
    found.close()


@pytest.fixture
def place(tmp_path, monkeypatch, server):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOOSTERS_EVAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BOOSTERS_EVAL_TRACKING_WAIT", "600")  # the machine of the tests may be busy
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("WANDB_MODE", "offline")
    return tmp_path


def call(*arguments, code=0, **changes):
    done = subprocess.run(
        [*PROGRAM, *arguments], env=environment(PLUGINS, **changes), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def start(*arguments, **changes):
    return subprocess.Popen(
        [*PROGRAM, *arguments], env=environment(PLUGINS, **changes), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )


def results_of_last():
    from boosters_eval import load_run

    return load_run("last")


def processes_of(home):
    """The processes with this home in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                f"BOOSTERS_EVAL_HOME={home}".encode() in (entry / "environ").read_bytes()
                and int(entry.name) != os.getpid()
            ):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def test_live_run_is_in_both_and_sending_it_again_changes_nothing(place, server):
    done = call("compare", *QUICK, "-s", "3", "--name", "nightly", "--track", "mlflow", "wandb")
    results = results_of_last()
    (parent,), children = server.family(results.run_id)
    assert (parent.info.run_name, parent.info.status) == ("nightly", "FINISHED")
    assert f"mlflow: {server.uri}/#/experiments/" in done.stderr
    assert parent.data.tags["boosters_eval.version.lightgbm"] == results.metadata.facts.targets["lightgbm"].version
    assert children.keys() == {"diabetes/gbdt boosters", "diabetes/gbdt lightgbm"}
    client = server.client()
    assert [file.path for file in client.list_artifacts(parent.info.run_id)] == [
        "journal.jsonl",
        "report.html",
        "results.json",
    ]
    page = Path(client.download_artifacts(parent.info.run_id, "report.html", str(place)))
    assert "<!doctype html>" in page.read_text(encoding="utf-8")[:100].lower()
    for library in ("boosters", "lightgbm"):
        child = children[f"diabetes/gbdt {library}"]
        mine = [result for result in results.results if result.library == library]
        assert child.info.status == "FINISHED"
        assert child.data.params["n_estimators"] == "3"
        assert child.data.params["native.learning_rate"] == "0.1"
        for name in ("rmse", "train_time_s"):
            history = {metric.step: metric.value for metric in client.get_metric_history(child.info.run_id, name)}
            assert history == {r.seed: (r.metrics | {"train_time_s": r.train_time_s})[name] for r in mine}
        assert child.data.metrics["mean.rmse"] == pytest.approx(sum(r.metrics["rmse"] for r in mine) / 3)
    assert children["diabetes/gbdt lightgbm"].data.params["mark.max_bins"].startswith("approximated: ")

    runs = list(offline_runs(place).values())
    assert [run.job_type for run in runs].count("plan") == 1
    (plan,) = [run for run in runs if run.job_type == "plan"]
    assert (plan.name, plan.files, plan.exit_code) == ("nightly", ["journal.jsonl", "report.html", "results.json"], 0)
    for run in runs:
        assert (run.group, run.host, run.git) == (plan.id, "", "")
        assert run.kinds <= {"header", "run", "telemetry", "config", "metric", "history", "summary", "artifact", "exit"}
    by_library = {run.config["competitor"]: run for run in runs if run.job_type == "benchmark"}
    for library, run in by_library.items():
        mine = {r.seed: r.metrics["rmse"] for r in results.results if r.library == library}
        assert {row["repeat"]: row["rmse"] for row in run.rows} == mine
        assert len(run.rows) == 3
        assert run.summary["mean.rmse"] == pytest.approx(sum(mine.values()) / 3)
    assert by_library["lightgbm"].config["mark.max_bins"].startswith("approximated: ")

    before, files = server.content(), sorted(place.glob("wandb/offline-run-*"))
    told = call("track", "nightly", "--to", "mlflow", "wandb").stderr
    assert told.count("nothing was sent: it has all of it already") == 2
    assert server.content() == before
    assert sorted(place.glob("wandb/offline-run-*")) == files
    server.forget("boosters_eval.content")  # as if the end had never arrived: everything is told again
    call("track", "last", "--to", "mlflow")
    assert server.content() == before


def test_interrupted_run_is_marked_and_continued_not_doubled(place, server):
    command = ("compare", "-d", "diabetes", "-l", "faulty", "-p", "max_depth=13", "-s", "20", "-j", "1")
    command += ("--track", "mlflow", "wandb")
    (place / "turnstile").mkdir()
    process = start(
        *command, FAULTY_TURNSTILE=str(place / "turnstile")
    )  # the trackers may be slower than all its cells
    journal = None
    for _ in range(2400):
        journal = next(place.glob("home/runs/*/journal.jsonl"), None)
        if journal and journal.read_bytes().count(b"\n") > 4 and list(place.glob("wandb/offline-run-*-*-*-*")):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130, process.stderr.read()
    process.stderr.close()
    run_id = journal.parent.name
    (parent,), children = server.family(run_id)
    assert (parent.info.status, [c.info.status for c in children.values()]) == ("KILLED", ["KILLED"])
    assert not server.client().list_artifacts(parent.info.run_id)
    call(*command, "--resume")
    (again,), children = server.family(run_id)
    assert again.info.run_id == parent.info.run_id
    (child,) = children.values()
    assert (again.info.status, child.info.status) == ("FINISHED", "FINISHED")
    results = results_of_last().results
    steps = [metric.step for metric in server.client().get_metric_history(child.info.run_id, "rmse")]
    assert sorted(steps) == sorted(result.seed for result in results)
    runs = [run for run in offline_runs(place).values() if run.job_type == "benchmark"]
    assert len({run.id for run in runs}) == 1
    assert sorted(row["seed"] for run in runs for row in run.rows) == sorted(result.seed for result in results)


def test_failed_cells_that_are_run_again_mend_the_same_run(place, server):
    broken = place / "broken"
    broken.touch()
    command = ("compare", "-d", "diabetes", "-l", "faulty", "-p", "max_depth=13", "-s", "2", "--track", "mlflow")
    call(*command, code=2, FAULTY_BROKEN=str(broken))
    run_id = results_of_last().run_id
    (parent,), children = server.family(run_id)
    (child,) = children.values()
    assert (parent.info.status, child.info.status) == ("FAILED", "FAILED")
    assert "SIGSEGV" in child.data.tags["boosters_eval.failures"]
    broken.unlink()
    call(*command, "--rerun-failed")
    (again,), children = server.family(run_id)
    (child,) = children.values()
    assert (again.info.run_id, again.info.status, child.info.status) == (parent.info.run_id, "FINISHED", "FINISHED")
    assert child.data.tags["boosters_eval.failures"] == ""
    assert child.data.params["native.fault"] == "slow"
    assert {metric.value for metric in server.client().get_metric_history(child.info.run_id, "failed_before")} == {1}


def test_looks_of_seeds_auto_are_one_run(place, server):
    pair = ("-d", "diabetes", "-l", "boosters", "lightgbm", "-p", "n_estimators=20")  # too alike for five seeds
    call("compare", *pair, "-s", "auto", "--max-seeds", "10", "--track", "mlflow", "wandb")
    results = results_of_last()
    assert results.metadata.facts.extends  # there was more than one look
    (parent,), children = server.family(results.run_id)
    experiment = parent.info.experiment_id
    key = parent.data.tags["boosters_eval.key"]
    assert len(server.client().search_runs([experiment], f"tags.`boosters_eval.key` = '{key}'")) == 1
    assert server.family(results.metadata.facts.extends) == ([], {})
    seeds = {lib: sorted(r.seed for r in results.results if r.library == lib) for lib in ("boosters", "lightgbm")}
    for name, child in children.items():
        history = server.client().get_metric_history(child.info.run_id, "rmse")
        assert sorted(metric.step for metric in history) == seeds[name.split()[-1]]
        assert child.data.tags["boosters_eval.cells"] == "10"
    runs = list(offline_runs(place).values())
    assert sorted(run.job_type for run in runs) == ["benchmark", "benchmark", "plan"]
    for run in runs:
        assert run.exit_code == 0
        assert sorted(row["seed"] for row in run.rows) == seeds.get(run.config.get("competitor"), [])
    before, files = server.content(), sorted(place.glob("wandb/offline-run-*"))
    assert call("track", "last", "--to", "mlflow", "wandb").stderr.count("nothing was sent") == 2
    assert (server.content(), sorted(place.glob("wandb/offline-run-*"))) == (before, files)


def test_server_that_is_gone_costs_a_warning_that_names_the_way_to_repair_it(place, server):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{closed.getsockname()[1]}"
        done = call("compare", *QUICK, "-s", "2", "-f", "json", "--track", "mlflow", MLFLOW_TRACKING_URI=uri)
        assert len(json.loads(done.stdout)["results"]) == 4
        run_id = json.loads(done.stdout)["run_id"]
        (way,) = re.findall(r"Send the rest with 'boosters-eval (track \w+ --to mlflow)'", done.stderr)
        failed = call(*way.split(), code=2, MLFLOW_TRACKING_URI=uri)
        assert f"Error: The tracker 'mlflow' does not have all of run {run_id}: " in failed.stderr
    call(*way.split())
    (parent,), children = server.family(run_id)
    assert (parent.info.status, len(children)) == ("FINISHED", 2)


def test_server_that_never_answers_is_given_up_and_nothing_stays_behind(place):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = call(
            "compare", *QUICK, "-s", "2", "--track", "mlflow", MLFLOW_TRACKING_URI=uri, BOOSTERS_EVAL_TRACKING_WAIT="5"
        )
    assert re.search(
        r"Warning: The tracker 'mlflow' does not have all of run \w+: it did not answer in time", done.stderr
    )
    assert processes_of(place / "home") == []


def test_missing_credentials_of_wandb_are_a_warning(place):
    (place / "nobody").mkdir()
    nobody = {"HOME": str(place / "nobody"), "WANDB_MODE": "online", "WANDB_API_KEY": None}
    done = call("compare", *QUICK, "-s", "2", "--track", "wandb", **nobody)
    assert re.search(r"Warning: The tracker 'wandb' does not have all of run \w+: .*API key", done.stderr)
    assert processes_of(place / "home") == []


def test_times_are_measured_before_anything_is_sent(place, server):
    call("compare", *QUICK, "-s", "2", "--timing-mode", "--threads", "1", "--track", "mlflow")
    results = results_of_last()
    (parent,), children = server.family(results.run_id)
    assert (parent.info.status, len(children)) == ("FINISHED", 2)
    written = next(place.glob("home/runs/*/journal.jsonl")).stat().st_mtime
    assert parent.info.end_time == round(written * 1000)


def test_baseline_is_tracked_too(place, server):
    call("baseline", "record", "base.json", "--suite", "quick", "-l", "boosters", "-s", "2", "--track", "mlflow")
    (parent,), _ = server.family(results_of_last().run_id)
    assert (parent.info.status, parent.data.tags["boosters_eval.suite"]) == ("FINISHED", "quick")
