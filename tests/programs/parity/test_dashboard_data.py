import pytest

import parity_rows
from boosters_eval.programs.parity.dashboard import MEANINGS, compact
from boosters_eval.programs.parity.findings import build_parity_report


@pytest.mark.parametrize("ms", [2.485036, 0.0004449999, 123.4500001])
def test_numbers_that_are_rounded_again_stay_what_others_show(ms: float) -> None:
    row = parity_rows.parity_row("onnx", ms=ms)
    (kept,) = {cell for cell in compact(build_parity_report([row]), MEANINGS)["cells"]["ms"] if cell is not None}
    assert f"{kept:.3g}" == f"{ms:.3g}"
