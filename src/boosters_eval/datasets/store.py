"""Tables on disk in a memory-mappable form, with their audits: written once, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import warnings
import weakref
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boosters_eval.core.errors import BoostersEvalError, BoostersEvalWarning, DatasetError, describe_error
from boosters_eval.core.files import compute_digest, read_text, refuse_wide, write_atomically
from boosters_eval.core.model import Model
from boosters_eval.core.temporary import own_folder
from boosters_eval.datasets.catalog import DATASETS
from boosters_eval.datasets.checks import as_table
from boosters_eval.datasets.config import DataAudit, Table
from boosters_eval.datasets.fetch import VARIABLE, cache_root
from boosters_eval.datasets.resolve import resolve_dataset
from boosters_eval.datasets.splits import subsample_rows
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from boosters_eval.datasets.config import DatasetConfig

SCHEMA_VERSION = 1
_PARTS = ("x", "y", "weights", "groups", "sensitive", "split", "split_by")
_META, _TABLES = "table.json", "tables"
_DECLARED = (
    *("name", "task", "recipe", "subsample", "n_samples", "n_features", "n_classes", "categorical", "feature_names"),
    *("has_missing", "quantiles"),
)


class _Meta(Model):
    """The file that makes a directory a table; it is written last."""

    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval table"] = "boosters-eval table"
    digest: str
    task: Task
    n_samples: int
    n_features: int
    n_classes: int | None
    n_groups: int | None
    has_missing: bool
    categorical: tuple[int, ...]
    max_categories: int  # the most distinct categories of any column, not counting missing values
    feature_names: tuple[str, ...]
    category_names: dict[str, list[str]] | None
    sizes: dict[str, int]  # bytes of each array's file


class Stored(_Meta):
    """A table in the cache: where it is, and all that planning must know about it."""

    name: str
    path: Path

    @property
    def weighted(self) -> bool:
        return "weights" in self.sizes

    @property
    def sensitive(self) -> bool:
        return "sensitive" in self.sizes


# A reference to the loader is beside its result, because its id may be reused by another one. It does not keep it
# alive: the loader of a data frame holds all its rows.
_DONE: dict[tuple[Any, ...], tuple[Callable[[], Any], Stored]] = {}


def materialize(config: DatasetConfig, cache_dir: Path | None = None) -> Stored:
    """The data set in the cache; its loader is called only if it is not there yet."""
    root = cache_dir or cache_root()
    key = (str(root), id(config.loader), _declared(config))
    loader, done = _DONE.get(key, (None, None))
    if done is None or loader is None or loader() is not config.loader or _intact(done.path) is None:
        done = _from_recipe(config, root) or _from_loader(config, root)
        _DONE[key] = (_reference(config.loader, key), done)
    return done


def _reference(loader: Callable[[], Any], key: tuple[Any, ...]) -> Callable[[], Any]:
    """A weak reference, with which the entry of that key goes; some objects allow none, and stay."""
    try:
        return weakref.ref(loader, lambda gone: _DONE.pop(key) if _DONE.get(key, (None,))[0] is gone else None)
    except TypeError:
        return lambda: loader


def open_stored(path: Path) -> Table:
    """The arrays of a stored table, memory-mapped rather than read, once their content has been verified."""
    meta = _intact(path)
    if meta is None:
        raise DatasetError(f"The cached table in {path} is damaged: run again to rebuild it.")
    return Table(
        **_mapped(path, meta),
        categorical=meta.categorical,
        feature_names=meta.feature_names,
        category_names=meta.category_names,
    )


def open_recorded(digest: str, name: str, task: Task) -> Table:
    """The very table that a run was made with: from the cache, or loaded again if the data set is still the same."""
    path = cache_root() / _TABLES / digest[:32]
    if _intact(path) is None:
        if name not in DATASETS:
            raise DatasetError(
                f"The rows of data set '{name}' are no longer in {cache_root()}: run it again to look at them."
            )
        now = materialize(resolve_dataset(name, task))
        if now.digest != digest:
            raise DatasetError(f"The data set '{name}' has changed since the run: run it again to look at its rows.")
        path = now.path
    return open_stored(path)


def _declared(config: DatasetConfig) -> str:
    fields = [*_DECLARED, *(["split_by"] if config.split_by else [])]
    return json.dumps([SCHEMA_VERSION, *(getattr(config, field) for field in fields)], default=lambda task: task.value)


def _recipe_file(config: DatasetConfig, root: Path) -> Path:
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", config.name)[:60]
    return root / "recipes" / f"{safe}-{compute_digest(_declared(config), 16)}"


def _read_recipe(config: DatasetConfig, root: Path) -> str | None:
    """The digest of the table that the cache has for a data set."""
    if config.recipe is None:
        return None
    try:
        digest = read_text(_recipe_file(config, root)).strip()
    except BoostersEvalError:
        return None
    return digest if re.fullmatch("[0-9a-f]{64}", digest) else None


def _from_recipe(config: DatasetConfig, root: Path) -> Stored | None:
    digest = _read_recipe(config, root)
    if digest is None or config.table_digest not in (None, digest):
        return None
    path = root / _TABLES / digest[:32]
    meta = _intact(path)
    if meta is None and path.exists():
        warnings.warn(
            f"The cached table of data set '{config.name}' is damaged: it is discarded and rebuilt.",
            BoostersEvalWarning,
            stacklevel=2,
        )
    return None if meta is None else Stored(name=config.name, path=path, **dict(meta))


def _from_loader(config: DatasetConfig, root: Path) -> Stored:
    reason = config.available() if config.available is not None else None
    if reason is not None:
        raise DatasetError(reason)
    try:
        raw = config.loader()
    except BoostersEvalError:
        raise
    except (Exception, SystemExit) as error:
        text = describe_error(error).rstrip(".")
        raise DatasetError(f"The loader of data set '{config.name}' failed: {text}.") from error
    table = as_table(config, raw)
    if config.subsample is not None and config.subsample < len(table.y):
        rows = subsample_rows(table, config.task, config.subsample)
        table = replace(table, **{part: array[rows] for part, array in _arrays(table).items()})
    meta = _describe(config.task, table)
    if config.table_digest and _read_recipe(config, root) not in (None, meta.digest):
        warnings.warn(
            f"The cached table of data set '{config.name}' is not the data set: it is replaced.",
            BoostersEvalWarning,
            stacklevel=2,
        )
    path = root / _TABLES / meta.digest[:32]
    try:
        meta = _write(path, table, meta)
        if config.recipe is not None:
            write_atomically(_recipe_file(config, root), meta.digest + "\n", own=True)
    except OSError as error:
        raise DatasetError(
            f"Cannot keep data set '{config.name}' in {root}: {error.strerror or error}."
            f" {VARIABLE} names another directory."
        ) from None
    return Stored(name=config.name, path=path, **dict(meta))


def _arrays(table: Table) -> dict[str, Any]:
    return {part: getattr(table, part) for part in _PARTS if getattr(table, part) is not None}


def _digest(head: list[Any], arrays: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for part, array in arrays.items():
        digest.update(f"{part} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _describe(task: Task, table: Table) -> _Meta:
    head = [task.value, table.categorical, table.feature_names, table.category_names]
    columns = (table.x[:, position] for position in table.categorical)
    return _Meta(
        digest=_digest(head, _arrays(table)),
        task=task,
        n_samples=table.x.shape[0],
        n_features=table.x.shape[1],
        n_classes=int(table.y.max()) + 1 if task.is_classification else None,
        n_groups=None if table.groups is None else len(np.unique(table.groups)),
        has_missing=bool(np.isnan(table.x).any()),
        categorical=table.categorical,
        max_categories=max((len(np.unique(codes[~np.isnan(codes)])) for codes in columns), default=0),
        feature_names=table.feature_names,
        category_names=table.category_names,
        sizes={},
    )


def _read_meta(path: Path) -> _Meta | None:
    try:
        text = read_text(path / _META)
        refuse_wide(text, _META)
        meta = _Meta.model_validate_json(text)
        whole = all((path / f"{part}.npy").stat().st_size == size for part, size in meta.sizes.items())
    except (OSError, ValueError, BoostersEvalError):
        return None
    return meta if whole and meta.sizes else None


# The tables whose content this process has verified, by what the system tells of their files.
_VERIFIED: dict[Path, tuple[tuple[int, ...], ...]] = {}


def _intact(path: Path) -> _Meta | None:
    """The description of a table whose content still has the digest that it is named after, or None."""
    meta = _read_meta(path)
    if meta is None or not meta.digest.startswith(path.name):
        return None
    files = [path / _META, *(path / f"{part}.npy" for part in meta.sizes)]
    found = tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in (file.stat() for file in files))
    if _VERIFIED.get(path) != found:
        head = [meta.task.value, meta.categorical, meta.feature_names, meta.category_names]
        try:
            if _digest(head, _mapped(path, meta)) != meta.digest:
                return None
        except Exception:  # noqa: BLE001 (the head of an array is damaged, for which numpy has many words)
            return None
        _VERIFIED[path] = found
    return meta


def _mapped(path: Path, meta: _Meta) -> dict[str, Any]:
    """The arrays in the order in which they are digested."""
    return {part: np.load(path / f"{part}.npy", mmap_mode="r") for part in _PARTS if part in meta.sizes}


def _write(path: Path, table: Table, meta: _Meta) -> _Meta:
    """Into a directory beside it, which then takes the name; a damaged one makes room."""
    there = _intact(path)
    if there is not None:
        return there
    path.parent.mkdir(parents=True, exist_ok=True)
    with own_folder(path.parent) as place:
        (temporary := place / "table").mkdir()
        sizes = {part: _save(temporary / f"{part}.npy", array) for part, array in _arrays(table).items()}
        meta = meta.replace(sizes=sizes)
        write_atomically(temporary / _META, meta.model_dump_json(indent=1))
        temporary.chmod(0o755)
        _take_name(temporary, path)
        return meta


def _save(path: Path, array: Any) -> int:
    with path.open("wb") as file:
        try:
            np.save(file, array, allow_pickle=False)
        except OSError as error:  # numpy counts the bytes that were written, and loses the reason
            raise OSError(error.errno or errno.ENOSPC, os.strerror(error.errno or errno.ENOSPC)) from None
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _take_name(temporary: Path, path: Path) -> None:
    """Rename into place; where another process was first and its table is whole, that one stays."""
    for number in range(3):
        try:
            temporary.rename(path)
        except OSError:
            if _intact(path) is not None:
                return
            with contextlib.suppress(OSError):
                path.rename(temporary.with_name(f"aside-{number}"))
        else:
            return
    temporary.rename(path)


REVISION = 6  # changes whenever the same table would be audited otherwise
_FILE = "audit.json"


class _KeptAudit(Model):
    schema_version: Literal[1] = 1
    kind: Literal["boosters-eval audit"] = "boosters-eval audit"
    revision: int
    digest: str  # of the table
    audit: DataAudit


def load_audit(config: DatasetConfig, stored: Stored) -> DataAudit:
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
