"""Documents of several files, archives, and reStructuredText: the same values whatever they are written in."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from boosters_eval import extract_paper
from boosters_eval.core.errors import FileFormatError

pytestmark = pytest.mark.usefixtures("forked_reader")

MAIN = r"""
\documentclass{article}
\input{macros}
\begin{document}
\section{Results}
% \input{left_out}
\input{tables/first.tex}
\include{tables/second}
\end{document}
"""
MACROS = r"\newcommand{\ours}{\textsc{Ours}}"
FIRST = r"""
\begin{table}\caption{RMSE on test rows.}
\begin{tabular}{lrr}
Model & Adult & Bank \\ \midrule
\ours & 0.51 & 0.55 \\
XGBoost & 0.52 & 0.56 \\
\end{tabular}\end{table}
"""
SECOND = r"""
\begin{table}\caption{Accuracy on test rows.}
\begin{tabular}{lr}
Model & Adult \\ \midrule
\ours & 0.87 \\
\end{tabular}\end{table}
\input{lost}
"""
FILES = {"main.tex": MAIN, "macros.tex": MACROS, "tables/first.tex": FIRST, "tables/second.tex": SECOND}


def values(paper):
    return [
        (entry.model_name, entry.dataset, name, str(value))
        for table in paper.tables
        for entry in table.entries
        for name, value in entry.metrics.items()
    ]


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / next(iter(files))


def pack(folder, how):
    path = folder / f"paper.{how}"
    if how == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in FILES.items():
                archive.writestr(name, text)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, text in FILES.items():
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("how", ["folder", "zip", "tar.gz"])
def test_tables_that_a_document_takes_in_are_read(tmp_path, how):
    path = write(tmp_path, FILES) if how == "folder" else pack(tmp_path, how)
    paper = extract_paper(path)
    assert [table.table_id for table in paper.tables] == ["Table 1", "Table 2"]
    found = values(paper)
    assert len(found) == 5
    assert found[0][0] == "Ours"
    assert [value for *_, value in found] == ["0.51", "0.55", "0.52", "0.56", "0.87"]
    (unread,) = paper.unread
    assert "lost" in unread.why
    assert "there is no such file" in unread.why


def test_a_file_outside_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.tex").write_text(FIRST)
    inner = tmp_path / "paper"
    inner.mkdir()
    path = write(inner, {"main.tex": MAIN.replace("macros", "../secret"), "tables/first.tex": FIRST})
    paper = extract_paper(path)
    assert len(paper.tables) == 1
    assert any("../secret" in each.why for each in paper.unread)


def test_a_file_that_takes_in_itself_is_read_once(tmp_path):
    path = write(tmp_path, {"a.tex": r"\begin{document}\input{b}\end{document}", "b.tex": FIRST + r"\input{b}"})
    paper = extract_paper(path)
    assert len(paper.tables) == 1
    assert any("takes in itself" in each.why for each in paper.unread)


def test_one_file_alone_may_be_packed(tmp_path):
    path = tmp_path / "2101.00001.gz"
    path.write_bytes(gzip.compress(rf"\begin{{document}}{FIRST}\end{{document}}".encode()))
    assert len(values(extract_paper(path))) == 4


def test_a_broken_archive_is_refused(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(FileFormatError, match="cannot be read as an archive"):
        extract_paper(tmp_path / "a.zip")


SIMPLE = """
Comparison
==========

Table 3: RMSE on test rows.

=========  =======  ========
Model      Adult    Bank
=========  =======  ========
XGBoost    0.52     **0.55**
LightGBM   0.51     0.56
=========  =======  ========

And text.
"""
GRID = """
Table 3: RMSE on test rows.

+----------+--------+----------+
| Model    | Adult  | Bank     |
+==========+========+==========+
| XGBoost  | 0.52   | **0.55** |
+----------+--------+----------+
| LightGBM | 0.51   | 0.56     |
+----------+--------+----------+
"""
LIST = """
.. list-table:: Table 3: RMSE on test rows.
   :header-rows: 1
   :widths: 10 10 10

   * - Model
     - Adult
     - Bank
   * - XGBoost
     - 0.52
     - **0.55**
   * - `LightGBM <https://example.org>`__
     - 0.51
     - 0.56
"""
CSV = """
.. csv-table:: Table 3: RMSE on test rows.
   :header: "Model", "Adult", "Bank"

   "XGBoost", 0.52, **0.55**
   "LightGBM", 0.51, 0.56
"""


@pytest.mark.parametrize("text", [SIMPLE, GRID, LIST, CSV], ids=["simple", "grid", "list", "csv"])
def test_every_kind_of_table_in_rst_gives_the_same(tmp_path, text):
    path = tmp_path / "paper.rst"
    path.write_text(text)
    paper = extract_paper(path)
    assert [table.table_id for table in paper.tables] == ["Table 3"]
    assert [(model, dataset, value) for model, dataset, _, value in values(paper)] == [
        ("XGBoost", "Adult", "0.52"),
        ("XGBoost", "Bank", "0.55"),
        ("LightGBM", "Adult", "0.51"),
        ("LightGBM", "Bank", "0.56"),
    ]
    assert {name for _, _, name, _ in values(paper)} == {"rmse"}


def test_spans_in_rst(tmp_path):
    path = tmp_path / "paper.rst"
    path.write_text("""
=======  =====  =====  =====  =====
Model        Adult         Bank
-------  ------------  ------------
\\        AUC    RMSE   AUC    RMSE
=======  =====  =====  =====  =====
XGBoost  0.91   0.31   0.92   0.32
=======  =====  =====  =====  =====

+---------+---------------+
| Model   | Adult         |
|         +-------+-------+
|         | AUC   | RMSE  |
+=========+=======+=======+
| XGBoost | 0.81  | 0.41  |
+---------+-------+-------+
""")
    found = [(dataset, metric, value) for _, dataset, metric, value in values(extract_paper(path))]
    assert found == [
        ("Adult", "auc_roc", "0.91"),
        ("Adult", "rmse", "0.31"),
        ("Bank", "auc_roc", "0.92"),
        ("Bank", "rmse", "0.32"),
        ("Adult", "auc_roc", "0.81"),
        ("Adult", "rmse", "0.41"),
    ]


def test_a_table_in_another_file_is_said(tmp_path):
    path = tmp_path / "paper.rst"
    path.write_text(f".. csv-table:: Other\n   :file: other.csv\n\n{SIMPLE}")
    assert any("other.csv" in each.why for each in extract_paper(path).unread)
