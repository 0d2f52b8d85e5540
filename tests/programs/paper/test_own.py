"""Results from a file of one's own, beside what a paper prints."""

from __future__ import annotations

import json

import pytest
import yaml

from boosters_eval import compare_paper, extract_paper, init_paper_results
from boosters_eval.core.errors import FileFormatError

pytestmark = pytest.mark.usefixtures("forked_reader")

README = """\
| Task | Zorb RMSE | Quux RMSE | Zorb training time (s) |
|---|---|---|---|
| poker | 0.256 | 0.722 | 38 |
| higgs | 0.420 | 0.421 | 868 |
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "README.md").write_text(README)
    extract_paper(tmp_path / "README.md", out=tmp_path / "b.yaml")
    return tmp_path / "b.yaml"


def write(spec, text, name="mine.csv"):
    path = spec.parent / name
    path.write_text(text)
    return path


LONG = "model,dataset,metric,value,seed\nZorb,poker,RMSE,0.256,0\nZorb,poker,rmse,0.258,1\nquux,Higgs,rmse,0.42,\n"
WIDE = "model;data set;seed;rmse\nZorb;poker;0;0.256\nZorb;poker;1;0.258\nQuux;higgs;;0.42\n"
RECORDS = [
    {"model": "Zorb", "dataset": "poker", "metric": "rmse", "value": 0.256, "seed": 0},
    {"model": "Zorb", "dataset": "poker", "metric": "rmse", "value": 0.258, "seed": 1},
    {"model": "Quux", "dataset": "higgs", "metric": "rmse", "value": 0.42, "seed": None},
]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (LONG, "long.csv"),
        (WIDE, "wide.csv"),
        (json.dumps(RECORDS), "list.json"),
        (json.dumps({"results": RECORDS}), "object.json"),
    ],
)
def test_a_file_of_any_shape_leads_to_a_verdict_without_targets(spec, text, name):
    found = compare_paper(write(spec, text, name), spec)
    assert [(target.row, target.dataset, target.primary) for target in found.targets] == [
        ("Zorb", "poker", True),
        ("Quux", "higgs", True),
    ]
    assert [(metric.metric_name, metric.n) for target in found.targets for metric in target.metrics] == [
        ("rmse", 2),
        ("rmse", 1),
    ]
    assert (found.verdict, found.exit_code) == ("reproduced", 0)


def test_a_mean_comes_with_its_deviation_and_its_number_of_repeats(spec):
    path = write(spec, "model,dataset,metric,value,std,n\nZorb,poker,rmse,0.257,0.001,5\n")
    (metric,) = compare_paper(path, spec).targets[0].metrics
    assert (metric.our_value, metric.our_std, metric.n) == (0.257, 0.001, 5)


def test_the_targets_of_a_specification_decide_and_what_the_file_lacks_is_missing(spec):
    content = yaml.safe_load(spec.read_text())
    table = content["tables"][0]["id"]
    content["reproduction_targets"] = {"primary": [{"table": table, "rows": ["Zorb", "Quux"], "datasets": ["poker"]}]}
    spec.write_text(yaml.safe_dump(content))
    found = compare_paper(write(spec, "model,dataset,metric,value\nZorb,poker,rmse,0.256\n"), spec)
    assert [target.statuses for target in found.targets] == [("match", "missing"), ("missing",)]
    assert found.exit_code == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "model,dataset,metric,value\nZorp,poker,rmse,1\n",
            r"line 2: The specification has no model 'Zorp' .*'Zorb'\?",
        ),
        ("model,dataset,metric,value\nZorb,pokr,rmse,1\n", r"line 2: The specification has no dataset 'pokr'"),
        ("model,dataset,metric,value\nZorb,poker,mae,1\n", r"line 2: The specification has no metric 'mae'"),
        ("model,dataset,metric,value\nZorb,poker,rmse,many\n", r"line 2: The rmse must be a number\. Got 'many'"),
        ("model,dataset,metric,value,seed\nZorb,poker,rmse,1,x\n", r"line 2: The seed must be a whole number"),
        ("model,metric,value\nZorb,rmse,1\n", r"line 2: It fits '.*poker' and '.*higgs': say the dataset"),
        ("model,dataset,metric,value,extra\nZorb,poker,rmse,1,2\n", r"There is no column 'extra' beside 'value'"),
        ("dataset,metric,value\npoker,rmse,1\n", r"A file of results must have the columns model, dataset"),
        ("model,dataset,metric,value\n", r"mine\.csv has no value"),
        ("model,dataset,metric,value\nZorb,poker,rmse\n", r"line 2: A row must have 4 cells\. Got 3"),
        (
            "model,dataset,metric,value,seed\nZorb,poker,rmse,1,3\nZorb,poker,rmse,2,3\n",
            r"line 3: There is already a 'rmse' of 'Zorb' with the seed 3",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_sentence_with_its_place(spec, text, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        compare_paper(write(spec, text), spec)


@pytest.mark.parametrize("wide", [False, True])
def test_a_template_that_is_filled_in_is_compared(spec, wide, tmp_path):
    out = tmp_path / "template.csv"
    written = init_paper_results(spec, out=out, wide=wide)
    assert written.rows == 6
    lines = out.read_text().splitlines()
    filled = [line if not i else line.replace(",0,", ",0,0.5", 1) for i, line in enumerate(lines)]
    out.write_text("\n".join(filled) + "\n")
    assert len(compare_paper(out, spec).targets) == 4
