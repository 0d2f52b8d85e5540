"""What `importances` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.request import OutputOptions, Request, anything, count, parameter, text
from boosters_eval.core.terms import given, named, the
from boosters_eval.programs.benchmark.request import (
    DEFAULT_SEEDS,
    BenchmarkParameters,
    Settings,
    Tolerant,
    check_splits,
    seeds_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KINDS = ("permutation", "gain", "split", "shap")


class ImportancesRequest(Settings, Tolerant, OutputOptions, BenchmarkParameters, Request):
    command: ClassVar = "importances"
    help: ClassVar = "Compare what the models of libraries rely on: importances, attributions and predictions."
    program: ClassVar = "boosters_eval.programs.importances.results:explain"
    formats: ClassVar = ("markdown", "json", "csv", "html", "latex", "table")

    seeds: int | None = seeds_parameter(f"Number of splits. {DEFAULT_SEEDS}")
    kinds: str | Sequence[str] = parameter(
        KINDS,
        kind=anything("names of importances", metavar="KIND"),
        several=True,
        raw=True,
        help=f"Kinds of importances. Default: {', '.join(KINDS)}.",
    )
    permutations: int = parameter(5, kind=count(1), help="How often a column is shuffled.")
    max_rows: int = parameter(10_000, kind=count(1), help="The most validation rows that are measured.")
    groups: Mapping[str, Sequence[str | int]] | None = parameter(
        None, kind=anything("a dict of names and columns"), door="python", help="Columns that are shuffled together."
    )
    group: Sequence[str] = parameter(
        (),
        kind=text("a new NAME=COLUMN,COLUMN", "NAME=COLUMN,..."),
        separator=None,
        door="options",
        help="Columns that are shuffled and ranked together: --group place=lat,lon size=a,b.",
    )
    top: int = parameter(10, kind=count(1), door="options", help="How many columns are shown.")

    def check(self) -> None:
        """Refuse what contradicts itself."""
        super().check()
        check_splits(self)
        if self.format == "table" and self.output is not None:
            raise ConfigError(
                f"Use either {given('format', 'table')}, which is for a terminal, or {named('output')}, not both."
            )

    @property
    def units(self) -> Mapping[str, Sequence[str | int]]:
        """The columns that belong together, however they were given."""
        if self.groups is not None:
            return self.groups
        found: dict[str, Sequence[str | int]] = {}
        for words in self.group:
            name, _, columns = words.partition("=")
            members = [column.strip() for column in columns.split(",") if column.strip()]
            if not (name.strip() and members) or name.strip() in found:
                raise ConfigError(f"{the('group')} must be a new NAME=COLUMN,COLUMN. Got '{words}' instead.")
            found[name.strip()] = members
        return found
