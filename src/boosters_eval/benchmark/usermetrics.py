"""Metrics from a user's file: `path/to/file.py:function:higher`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.files import read_text, resolved
from boosters_eval.core.model import Model
from boosters_eval.core.modules import named_in
from boosters_eval.metrics import register_metric

_DIRECTIONS = {"higher": True, "lower": False}


class UserMetric(Model):
    """Where a metric comes from, and a digest of its source, which is part of the plan."""

    name: str
    file: str
    higher_is_better: bool
    digest: str

    def load(self) -> None:
        """Register the function under its name, in this process."""
        function = named_in(Path(self.file), self.name, "function")
        register_metric(self.name, function, higher_is_better=self.higher_is_better, replace=True)


def from_spec(spec: str) -> UserMetric | None:
    """The metric named by a spec of the form FILE.py:FUNCTION[:higher|lower]; None for any other spec."""
    file, found, rest = spec.partition(".py:")
    if not found:
        return None
    name, _, direction = rest.partition(":")
    path = resolved(Path(f"{file}.py"))
    source = read_text(path)
    function = named_in(path, name, "function")
    higher = _DIRECTIONS.get(direction) if direction else getattr(function, "higher_is_better", None)
    if not isinstance(higher, bool):
        raise ConfigError(
            f"The metric '{name}' must say which way is better: write '{spec.removesuffix(':' + direction)}:higher' or"
            f" ':lower', or set {name}.higher_is_better in the file."
        )
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    return UserMetric(name=name, file=str(path), higher_is_better=higher, digest=digest)
