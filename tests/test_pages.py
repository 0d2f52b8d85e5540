"""Every page in the browser: each program writes one, and axe-core finds nothing serious in any of them."""

import os
from pathlib import Path

import pytest

import boosters_eval
from boosters_eval.programs.bisect.answer import Bisection, BisectionStep, NumberShift
from boosters_eval.programs.paper.comparison import PaperComparison, read_stored
from boosters_eval.programs.parity.findings import build_parity_report
from parity_rows import parity_row

pytestmark = pytest.mark.axe
GOLDEN = Path(__file__).parent / "golden"
AXE = Path(os.environ.get("AXE", ".axe")) / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("comparison", "importances", "history", "difference", "check", "gate", "parity", "paper", "bisection")


def bisection():
    step = BisectionStep(
        earlier="4.3.0", candidate="4.5.0", later="4.7.0", answer="earlier", reason="as before", values={"4.5.0": 0.45}
    )
    return Bisection(
        answer="rmse of lightgbm on diabetes changed from 0.45 to 0.46.",
        state="found",
        library="lightgbm",
        dataset="diabetes",
        metric="rmse",
        tolerance=0.01,
        alpha=0.05,
        max_seeds=50,
        versions=("4.3.0", "4.5.0", "4.7.0"),
        earlier="4.5.0",
        later="4.7.0",
        shift=NumberShift(before=0.45, after=0.46, percent=2.0),
        steps=(step,),
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    home = folder / "home"
    few = boosters_eval.TrainingConfig(n_estimators=5)
    libraries = ["sklearn", "lightgbm"]
    first, second = (
        boosters_eval.compare(["iris", "breast_cancer"], libraries, seeds=seeds, training=few, home=home)
        for seeds in (3, 4)
    )
    explained = boosters_eval.importances("iris", libraries, seeds=3, training=few, home=home)
    baseline = folder / "baseline.json"
    boosters_eval.record_baseline(baseline, run=first.run_id, home=home)
    found = {
        "comparison": boosters_eval.open_run(first.run_id, browser=False, home=home).path.read_text(encoding="utf-8"),
        "importances": explained.report("html"),
        "history": boosters_eval.report_history(home=home).to_html(),
        "difference": boosters_eval.diff_runs(first.run_id, second.run_id, home=home).to_html(),
        "check": boosters_eval.check_baseline(baseline, run=second.run_id, home=home).to_html(),
        "gate": boosters_eval.decide_gate(
            second.run_id, baseline, library="lightgbm", threshold=0.4, home=home
        ).to_html(),
        "paper": read_stored(GOLDEN / "paper-validation.yaml", PaperComparison).to_html(),
        "bisection": bisection().to_html(),
        "parity": build_parity_report([parity_row(), parity_row("other", verdict="divergent")], {}).to_html(),
    }
    for name, text in found.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_serious(pages, open_page, name, scheme, width):
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "bypass_csp": True}
    page = open_page(pages / f"{name}.html", **options).page
    page.evaluate("() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
