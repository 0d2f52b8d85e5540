"""What `check-export` is asked for."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (a dataclass keeps its annotations)
from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import OutputOptions, Request, number, parameter, path, text
from boosters_eval.core.terms import the
from boosters_eval.engine.settings import RunSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = {
    ".ubj": "xgboost",
    ".xgb": "xgboost",
    ".txt": "lightgbm",
    ".lgb": "lightgbm",
    ".cbm": "catboost",
    ".bstr": "boosters",
    ".skops": "sklearn",
    ".json": "",  # of whom, its content tells
}
PICKLES = (".pkl", ".pickle", ".joblib")


class ExportRequest(RunSettings, OutputOptions, Request):
    command: ClassVar = "check-export"
    help: ClassVar = """Check whether a saved model predicts the same in its other formats and runtimes.

    Asked are the rows of a sample, a row for each threshold of the model and its two neighbors, and rows with missing
    and infinite values and unseen categories. Exit 1 if a class is decided otherwise or a value is off by more than
    --tolerance, 2 if that could not be answered.
    """
    program: ClassVar = "boosters_eval.programs.export.judge:check_export"
    formats: ClassVar = ("markdown", "json", "html")

    model: Path = parameter(
        kind=path("a saved model", "MODEL"),
        argument=True,
        help="A saved model: .json or .ubj of XGBoost, .txt of LightGBM, .cbm or .json of CatBoost, .bstr or .json of"
        " boosters, .skops of scikit-learn.",
    )
    rows: Path = parameter(
        kind=path("a CSV file"), help="A sample of the rows that the model is asked about: a CSV file."
    )
    exports: Sequence[str] = parameter(
        (),
        option="--export",
        separator=None,
        kind=text("files of exports, or FILE.py:FUNCTION", "EXPORT"),
        help="Exports of your own: files of these formats, .onnx, or a Python function that predicts an array of rows,"
        " as FILE.py:FUNCTION.",
    )
    runtimes: Sequence[str] = parameter(
        (),
        kind=text("names of runtimes", "NAME"),
        help="Runtimes. Default: all that are installed, or none with --export.",
    )
    tolerance: float | None = parameter(
        None,
        kind=number("standard deviations of the predictions, 0 or more", least=0),
        help="How far a value may be off, in standard deviations of the predictions. Default: 0.00001; of a classifier,"
        " only its decisions are judged unless this is given.",
    )

    def check(self) -> None:
        """Refuse what could run code, and what is no model."""
        super().check()
        ending = self.model.suffix.lower()
        if ending in PICKLES:
            raise ConfigError(
                f"{the('model')} must not be a pickle, which can run any code: save it by skops. Got '{self.model}'"
                " instead."
            )
        if ending not in FORMATS:
            raise ConfigError(f"{the('model')} must end in one of {', '.join(FORMATS)}. Got '{self.model}' instead.")
        for name in ("model", "rows"):
            if not getattr(self, name).is_file():
                raise ConfigError(f"{the(name)} must be a file. Got '{getattr(self, name)}' instead.")
