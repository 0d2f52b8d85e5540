"""Every chart of a run as a file of its own."""

import pytest

from boosters_eval import ConfigError, compare, draw_figures
from boosters_eval.core.errors import BoostersEvalError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    compare(["iris", "breast_cancer"], ["sklearn", "lightgbm"], seeds=2, home=home)
    return home


def test_charts_are_written_in_both_formats_with_names_of_their_own(run, tmp_path):
    found = draw_figures("last", tmp_path / "out", home=run)
    names = {path.name for path in found.paths}
    assert {"iris-gbdt-mlogloss-strips.svg", "iris-gbdt-mlogloss-strips.pdf", "iris-gbdt-pareto.pdf"} <= names
    assert len(names) == len(found.paths)
    for path in found.paths:
        assert path.read_bytes().startswith(b"%PDF-1.4" if path.suffix == ".pdf" else b"<svg ")
        assert found.files[path]


def test_one_format_is_enough(run, tmp_path):
    found = draw_figures("last", tmp_path / "out", format="pdf", home=run)
    assert {path.suffix for path in found.paths} == {".pdf"}


def test_the_same_run_gives_the_same_bytes(run, tmp_path):
    first, second = (draw_figures("last", tmp_path / name, home=run) for name in ("a", "b"))
    assert [path.read_bytes() for path in first.paths] == [path.read_bytes() for path in second.paths]


def test_a_wrong_format_or_run_is_refused(run, tmp_path):
    with pytest.raises(ConfigError, match="The 'format' parameter must be svg or pdf"):
        draw_figures("last", tmp_path, format="png", home=run)
    with pytest.raises(BoostersEvalError, match="nope"):
        draw_figures("nope", tmp_path, home=run)
