"""What a release must meet, stated before anything runs: it is part of the plan, so the run's id depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Gt, Le

from boosters_eval.core.errors import ConfigError, FileFormatError
from boosters_eval.core.files import load_json, read_text
from boosters_eval.core.model import Model

if TYPE_CHECKING:
    from pathlib import Path


class ReleasePolicy(Model):
    """The gate's terms; what is None is chosen later, and marked so."""

    tier: Literal["bronze", "silver", "gold"] | None = None
    threshold: Annotated[float, Gt(0), Le(1)] | None = None
    held_out: tuple[str, ...] | None = None  # data sets or configs


def read_policy(path: Path) -> ReleasePolicy:
    """A policy file: JSON with tier, threshold and held_out."""
    raw = load_json(read_text(path), str(path))
    if not isinstance(raw, dict) or not raw:
        raise FileFormatError(f"{path} is not a policy: it must be an object with tier, threshold or held_out.")
    try:
        return ReleasePolicy.model_validate(raw)
    except ConfigError as error:
        raise FileFormatError(f"{path} is not a policy: {error}") from None
