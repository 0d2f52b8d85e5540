"""Findings that are shown as a document: one terminal, Markdown, HTML, LaTeX and CSV rendering for all programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import UnknownNameError
from boosters_eval.core.findings import Findings, Screen
from boosters_eval.core.text import dump_json, escape_json

if TYPE_CHECKING:
    from boosters_eval.core.model import Model
    from boosters_eval.reports.document import Document


_FORMATS = ("markdown", "html", "latex", "csv", "json")


class Reported:
    """What has a document, and so every rendering of it. What renders is loaded when it is used."""

    __slots__ = ()

    def document(self) -> Document:
        """What is told of it, laid out."""
        raise NotImplementedError

    def to_model(self) -> Model | Any:
        """The same for programs: itself if it is a strict model, or plain data."""
        return self

    def to_markdown(self) -> str:
        """The document as Markdown."""
        from boosters_eval.reports.markdown import render_markdown  # noqa: PLC0415

        return render_markdown(self.document())

    def to_html(self) -> str:
        """The document as a page of one file."""
        from boosters_eval.reports.html.page import render_page  # noqa: PLC0415

        return render_page(self.document())

    def to_latex(self) -> str:
        """The tables, to be included in a paper."""
        from boosters_eval.reports.latex import render_latex  # noqa: PLC0415

        return render_latex(self.document())

    def to_csv(self) -> str:
        """The tables of measurements, one line per cell."""
        from boosters_eval.reports.tables import render_csv  # noqa: PLC0415

        return render_csv(self.document().tables())

    def to_json(self) -> str:
        """The data; a number that JSON cannot hold is null."""
        data = self.to_model()
        return (
            f"{escape_json(data.model_dump_json(indent=1))}\n" if hasattr(data, "model_dump_json") else dump_json(data)
        )

    def render(self, form: str) -> str:
        """The document in one of these formats, by name."""
        if form not in _FORMATS:
            raise UnknownNameError("format", form, _FORMATS)
        return str(getattr(self, f"to_{form}")())

    def _repr_html_(self) -> str:
        """A notebook shows the answer, the tables and a chart."""
        from boosters_eval.reports.html.page import render_fragment  # noqa: PLC0415

        return render_fragment(self.document())


class ReportedFindings(Reported, Findings):
    """Findings of a program that are shown, written and displayed by their document."""

    plain: ClassVar[bool] = False  # whether they are lines of text in a pipe too, where others are Markdown

    def show(self, screen: Screen) -> None:
        """The document as it fits the terminal; elsewhere as Markdown, unless it is plain."""
        document = self.document()
        if self.plain:
            document = replace(document, title="")  # the command has just been typed
        elif not screen.is_terminal:
            screen.write(self.to_markdown())
            return
        from boosters_eval.reports.terminal import print_document  # noqa: PLC0415 (loads rich)

        print_document(document, screen.console(), whole=screen.verbose, every_note=screen.verbose)
