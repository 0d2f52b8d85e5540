"""Twenty thousand results, every format, within ten seconds of processor time and a gigabyte."""

import json
import subprocess
import sys

from boosters_eval.programs.benchmark.results import ResultCollection
from boosters_eval.programs.benchmark.tables.document import build_document

_CODE = """
import json, resource, sys, time
from pathlib import Path
from rich.console import Console
from boosters_eval.reports.terminal import print_document
from boosters_eval.programs.benchmark.tables.build import build_tables
from boosters_eval.programs.benchmark.tables.document import build_document
from boosters_eval.programs.benchmark.tables.document import render_files
from boosters_eval.programs.benchmark.results import ResultCollection
collection = ResultCollection.load_partial(sys.argv[1])
start = time.process_time()
render_files(build_document(collection, "comparison"), Path(), ("md", "json", "html"))
report = build_tables(collection, times=False)
for render in (report.to_markdown, report.to_csv, report._repr_html_):
    render()
print_document(report.document(), Console(file=open(sys.argv[2], "w"), width=160))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.process_time() - start, peak, len(collection)]))
"""


def test_twenty_thousand_results_in_every_format(many_seeds, tmp_path):
    # In a process of its own, which coverage does not slow down.
    many_seeds.to_json(tmp_path / "results.json")
    command = [sys.executable, "-c", _CODE, str(tmp_path / "results.json"), str(tmp_path / "out.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes, count = json.loads(done.stdout)
    assert count == 20_000
    assert seconds < 10
    assert megabytes < 1024


def test_a_page_as_large_as_the_full_suite_stays_under_two_megabytes(many_seeds):
    seeds = {42 + 1337 * i for i in range(5)}
    some = ResultCollection([result for result in many_seeds.results if result.seed in seeds])
    assert len({result.config_name for result in some.results}) == 40
    assert len(build_document(some, "comparison").to_html().encode()) < 2_000_000
