"""The audit of a data set in the cache: made once for each content, and kept beside it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.errors import BoostersEvalError
from boosters_eval.core.files import read_text, refuse_wide, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.datasets.audit import DataAudit
from boosters_eval.datasets.store import open_stored

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.datasets.config import DatasetConfig
    from boosters_eval.datasets.store import Stored

REVISION = 2  # changes whenever the same table would be audited otherwise
_FILE = "audit.json"


class _KeptAudit(Model):
    """The file with an audit."""

    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval audit"] = "boosters-eval audit"
    revision: int
    digest: str  # of the table
    audit: DataAudit


def audit_of(config: DatasetConfig, stored: Stored) -> DataAudit:
    """What a user's file or frame came with, or the audit of the stored table."""
    if config.audit is not None:
        return config.audit
    audit = _kept(stored.path, stored.digest)
    if audit is None:
        from boosters_eval.datasets.auditing import audit_table  # noqa: PLC0415 (seldom needed)

        audit = audit_table(config, open_stored(stored.path))
        kept = _KeptAudit(revision=REVISION, digest=stored.digest, audit=audit)
        try:
            write_atomically(stored.path / _FILE, kept.model_dump_json(exclude_none=True), own=True)
        except BoostersEvalError:  # a cache that cannot be written to costs only time
            return audit
        _kept.cache_clear()
    return audit if audit.dataset == config.name else audit.replace(dataset=config.name)


@lru_cache(maxsize=256)
def _kept(path: Path, digest: str) -> DataAudit | None:
    """An audit of exactly this table by this version of the auditor."""
    try:
        text = read_text(path / _FILE)
        refuse_wide(text, _FILE)
        found = _KeptAudit.model_validate_json(text)
    except (OSError, ValueError, BoostersEvalError):
        return None
    return found.audit if (found.revision, found.digest) == (REVISION, digest) else None
