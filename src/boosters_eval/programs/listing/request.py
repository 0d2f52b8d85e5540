"""What there is: data sets, libraries, suites and metrics."""

from __future__ import annotations

from typing import ClassVar

from boosters_eval.core.request import FLAG, InHome, JsonOption, Request, parameter


class LibrariesRequest(JsonOption, Request):
    """The libraries."""

    command: ClassVar = "list libraries"
    help: ClassVar = "Libraries: version, boosters and tasks, or why unavailable."
    program: ClassVar = "boosters_eval.programs.listing.known:libraries"
    formats: ClassVar = ("json",)


class DatasetsRequest(JsonOption, Request):
    """The data sets."""

    command: ClassVar = "list datasets"
    help: ClassVar = "Data sets: task, size, classes, source and availability."
    program: ClassVar = "boosters_eval.programs.listing.known:datasets"
    formats: ClassVar = ("json",)

    every: bool = parameter(False, option="--all", kind=FLAG, help="Also the generated problems of the gate suite.")


class SuitesRequest(InHome, JsonOption, Request):
    """The suites."""

    command: ClassVar = "list suites"
    help: ClassVar = """\
Suites: what each would run, and the estimated time.

The estimate comes from the history of this machine."""
    program: ClassVar = "boosters_eval.programs.listing.known:suites"
    formats: ClassVar = ("json",)


class MetricsRequest(JsonOption, Request):
    """The metrics."""

    command: ClassVar = "list metrics"
    help: ClassVar = "Metrics: their tasks, and which direction is better."
    program: ClassVar = "boosters_eval.programs.listing.known:metrics"
    formats: ClassVar = ("json",)
