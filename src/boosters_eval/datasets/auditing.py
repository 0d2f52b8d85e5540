"""The audit of a data set: a frame as it was read, or arrays; nothing is changed, and large tables are sampled."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from boosters_eval.core.text import format_share
from boosters_eval.datasets import audit_columns as columns_alone
from boosters_eval.datasets import audit_fits as fits
from boosters_eval.datasets import audit_relations as relations
from boosters_eval.datasets.audit_columns import (
    MOST_COLUMNS,
    Subject,
    encode_target,
    sample_column,
    sample_table,
)
from boosters_eval.datasets.audit_relations import AuditTarget, score_alone
from boosters_eval.datasets.checks import find_coarse_step, find_unit, is_text
from boosters_eval.datasets.config import (
    KINDS,
    RARE_IN_GENERAL,
    ROW_ORDER,
    AuditedColumn,
    AuditFinding,
    DataAudit,
    parse_split,
)
from boosters_eval.metrics.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from boosters_eval.datasets.audit_columns import RowNumbers, SampledColumn
    from boosters_eval.datasets.config import ColumnRole, DatasetConfig, SplitBy, Table

    ColumnNotes = dict[str, dict[str, tuple[str, str]]]  # by kind and column: what is to be said of it, and the option

LEAK_ROWS = 10_000  # of the sample: the leak detector needs no more
_OF_A_CLASS = 200  # rows of a rare class that the leak detector gets, if there are so many
_FEATURES = ("numeric", "categorical")
_MOST_COLUMNS, _MOST_CLASSES = 500, 100
_MOST_TOLD, _MOST_NAMED = 3, 6  # findings of a kind; of more, one tells the names, up to so many
_LONG_NAME = 80
_MOST_FITS = 2  # columns whose groups are tried by a fit
_MATTERS_AUC, _MATTERS_R2 = 0.6, 0.05  # of a column alone, out of sample
_SPARSE = 0.8  # the share of zeros from which a column may be bundled with others


def audit_frame(
    frame: pd.DataFrame,
    target: str,
    task: Task,
    columns: Iterable[AuditedColumn],
    *,
    name: str = "data",
    reason: str = "",
    asked: Collection[str] = (),
    split: SplitBy | None = None,
    split_by: NDArray[Any] | None = None,
) -> DataAudit:
    """Audit a data frame as it was read. Every row has a target.

    `columns` are the roles that were decided on; only those that are used are looked at. `asked` names columns that
    the user wants as they are, so that nothing is said of how they look. `split` is what rows are split by.
    """
    roles = {column.name: column for column in columns if column.name != target}
    used = [name for name, column in roles.items() if column.used and column.role != "time"][:MOST_COLUMNS]
    left_out = [name for name, column in roles.items() if column.role == "dropped"][:MOST_COLUMNS]
    y, labels = encode_target(frame[target], classes=task.is_classification)
    subject = Subject(
        name=name,
        task=task,
        target=f"'{_short(target)}'",
        y=y,
        labels=labels,
        columns_at=lambda some: tuple(sample_column(each, frame[each], some, roles[each].role) for each in used),
        numbers=lambda name: frame[name].to_numpy(dtype=np.float64, na_value=np.nan),
        numeric=tuple(n for n in used if roles[n].role == "numeric" and frame[n].dtype.kind in "biuf"),
        width=len(used),
        asked=frozenset(asked),
        dates=frozenset(name for name, column in roles.items() if column.role == "date"),
        left_out=lambda: tuple(
            sample_column(each, frame[each], None, "categorical" if is_text(frame[each]) else "numeric")
            for each in left_out
        ),
        split=split,
        split_by=split_by,
    )
    roles = {target: AuditedColumn(name=target, role="target", used=False), **roles}
    return _audit(subject, roles, _target_as_text(subject, frame[target])).replace(reason=reason)


def join_audits(audits: Sequence[DataAudit]) -> DataAudit:
    """One audit of several targets: what is said of all is said once."""
    every = {(finding.kind, finding.text): finding for audit in audits for finding in audit.findings}
    return audits[0].replace(findings=tuple(sorted(every.values(), key=lambda finding: KINDS.index(finding.kind))))


def audit_table(config: DatasetConfig, table: Table) -> DataAudit:
    if table.y.ndim > 1:
        each = zip(config.targets, np.asarray(table.y).T, strict=True)
        return join_audits([_audit_arrays(config, replace(table, y=y), f"'{name}'") for name, y in each])
    return _audit_arrays(config, table, "the target")


def _audit_arrays(config: DatasetConfig, table: Table, target: str) -> DataAudit:
    width = table.x.shape[1]
    names = table.feature_names or tuple(f"column {position}" for position in range(width))
    y = np.asarray(table.y, dtype=np.float64)
    plain = {name: position for position, name in enumerate(names) if position not in table.categorical}
    classes = int(y.max()) + 1 if config.task.is_classification else 0
    subject = Subject(
        name=config.name,
        task=config.task,
        target=target,
        y=y,
        labels=tuple(map(str, range(classes))),
        columns_at=sample_table(table, names[:MOST_COLUMNS]),
        numbers=lambda name: np.asarray(table.x[:, plain[name]]),
        numeric=tuple(plain),
        width=min(width, MOST_COLUMNS),
        by_option=False,
        split=parse_split(config.split_by),
        split_by=table.split_by,
    )
    roles = {
        name: AuditedColumn(name=name, role="categorical" if position in table.categorical else "numeric")
        for position, name in enumerate(names)
    }
    return _audit(subject, roles)


def _audit(subject: Subject, roles: dict[str, AuditedColumn], extra: Iterable[AuditFinding] = ()) -> DataAudit:
    sample = subject.sample()
    columns = subject.columns_at(sample)
    notes = _notes(subject, columns, sample)
    counts = np.bincount(subject.y.astype(np.int64)) if subject.task.is_classification else np.empty(0, dtype=np.int64)
    ids = set(notes.get("id", ()))  # each row has its own, copies too
    _drop_lesser(notes)
    of_classes = _of_classes(subject, counts) if subject.task.is_classification else _repeated_target(subject)
    findings = [
        *extra,
        *_blurred_target(subject),
        *_of_columns(subject, notes),
        *_of_rows(subject, columns, sample, ids),
        *of_classes,
    ]
    audited = [_with_role(column, notes) for column in roles.values()]
    if len(audited) > _MOST_COLUMNS:
        audited.sort(key=lambda column: column.role in _FEATURES and column.used and not column.note)
    frequent = sorted(np.argsort(-counts, kind="stable")[:_MOST_CLASSES].tolist())
    return DataAudit(
        dataset=subject.name,
        task=subject.task,
        rows=len(subject.y),
        classes={_short(subject.labels[code]): int(counts[code]) for code in frequent},
        n_classes=len(counts) or None,
        columns=tuple(column.replace(name=_short(column.name)) for column in audited[:_MOST_COLUMNS]),
        n_columns=sum(column.role != "target" for column in audited),
        findings=tuple(sorted(findings, key=lambda finding: KINDS.index(finding.kind))),
        sampled=None if sample is None else len(sample),
        sampled_columns=subject.width if subject.width < sum(column.used for column in audited) else None,
    )


def _drop_lesser(notes: ColumnNotes) -> None:
    """What groups rows, or orders them in time, is more than an id or a leak."""
    for kind, lesser in (("groups", ("id", "leak")), ("drift", ("id", "leak"))):
        for name in notes.get(kind, ()):
            for each in lesser:
                notes.get(each, {}).pop(name, None)


def name_touched(table: Table, task: Task, parameters: Collection[str]) -> list[str]:
    """The columns that matter among those that these parameters act on.

    One matters that alone explains some of a target, or has categories so rare that they may be learned by heart.
    """
    names = table.feature_names or tuple(f"column {position}" for position in range(table.x.shape[1]))
    rows = np.arange(0, len(table.y), -(-len(table.y) // fits.ROWS))
    values = np.asarray(table.y, dtype=np.float64)[rows]
    targets = [AuditTarget(each, classes=task.is_classification) for each in np.atleast_2d(values.T)]
    bound = _MATTERS_AUC if task.is_classification else _MATTERS_R2
    acts: dict[str, Callable[[SampledColumn], bool]] = {
        "categorical": lambda column: column.categorical,
        "missing": lambda column: column.missing > 0,
        "max_bins": lambda column: not column.categorical and (column.numbers == 0).mean() >= _SPARSE,  # bundled
    }

    def matters(column: SampledColumn) -> bool:
        rare = column.categorical and columns_alone.is_rare(column)
        known = [target for target in targets if target.usable and len(column.counts) > 0]
        return rare or any(
            score_alone(column.numbers, target, bound, categorical=column.categorical) is not None for target in known
        )

    found = sample_table(table, names[: fits.COLUMNS])(rows)
    return [c.name for c in found if any(acts[name](c) for name in parameters if name in acts) and matters(c)]


def _with_role(column: AuditedColumn, notes: ColumnNotes) -> AuditedColumn:
    """An id and a constant are features like others until somebody says --drop, but they are called what they are."""
    roles: dict[str, ColumnRole] = {"missing": "constant", "constant": "constant", "id": "id"}
    for kind, role in roles.items():
        if column.role in _FEATURES and column.name in notes.get(kind, {}):
            note = notes[kind][column.name][0]
            return column.replace(role=column.role if note.startswith("is missing") else role, note=column.note or note)
    return column


def _notes(subject: Subject, columns: Sequence[SampledColumn], sample: RowNumbers | None) -> ColumnNotes:
    found: ColumnNotes = {}

    def tell(kind: str, name: str, note: str, option: str = "") -> None:
        found.setdefault(kind, {})[name] = (note, option or _several("--drop", [name]))

    usual = []
    alone = {column.name: _notes_of_one(subject, column) for column in columns}
    in_time = any("time-order" in told for told in alone.values())
    for column in columns:
        told = alone[column.name]
        if in_time and "id" in told and columns_alone.grows(column):
            del told["id"]
        for kind, (note, option) in told.items():
            tell(kind, column.name, note, option)
        if not {"missing", "constant"} & told.keys() and column.name not in subject.dates:
            usual.append(column)
    categories = {column.name for column in usual if column.categorical}
    for name, score, measure in _leaks(subject, usual, sample):
        note = f"alone predicts {subject.target}: {measure} {score:.4f}, out of sample"
        group = f"; or --split group:{shlex.quote(name)}" if name in categories else ""
        tell("leak", name, note, _several("--drop", [name]) + group)
    ids = found.get("id", {})  # which are to be dropped, rather than what rises with them
    y = subject.y if sample is None else subject.y[sample]
    for name, other, sense in relations.find_same_columns([column for column in usual if column.name not in ids], y):
        tell("duplicate-columns", name, f"says the same as '{_short(other)}': {sense}")
    for kind, name, note, option in _splits(subject, columns, sample, ids, found.get("leak", {})):
        tell(kind, name, note, option)
    return found


def _splits(
    subject: Subject,
    columns: Sequence[SampledColumn],
    sample: RowNumbers | None,
    ids: Collection[str],
    leaks: Collection[str],
) -> Iterator[tuple[str, str, str, str]]:
    """Columns by which rows should be split, since a quick fit loses much of its score if they are.

    Where the user splits by time, that is the question; where by groups, only wider groups are another.
    """
    by_time = subject.split is not None and subject.split.kind == "time"
    if subject.task is Task.RANKING or np.isnan(subject.y).any() or by_time:
        return
    told = [column for column in columns if column.name not in ids]
    dated = ((c, times) for c in told if subject.split is None and (times := _whole_times(c, subject)) is not None)
    timed, times = next(dated, (None, np.empty(0)))
    if timed is not None:
        seen = [replace(c, numbers=times) if c is timed else c for c in told if c is timed or c.name not in leaks]
        loss = fits.measure_time(seen, times, subject, sample)
        if loss is not None and loss.matters:
            yield _drift(timed.name, f"{loss} {fits.LATER}")
    grouped = list(_groups(subject, [c for c in columns if c is not timed], leaks))
    yield from grouped
    known = subject.split is not None or timed is not None or grouped or not subject.by_option
    rows = None if known else fits.choose_stretches(subject.y)
    if rows is not None:
        looked_at = subject.columns_at(rows)
        counters = [c for c in looked_at if c.name in ids and columns_alone.rises(c)][:1]
        found = fits.measure_order([c for c in looked_at if c.name not in ids], counters, subject, rows)
        if found is not None:
            where, loss = found
            yield _drift(counters[0].name if counters and where == fits.LATER else ROW_ORDER, f"{loss} {where}")


def _drift(name: str, loss: str) -> tuple[str, str, str, str]:
    if name == ROW_ORDER:
        which, option = "rows are in an order that matters", "--split time"
    else:
        which, option = "orders rows in time", f"--split time:{shlex.quote(name)}"
    return "drift", name, f"{which}: what a quick fit explains falls {loss}", option


def _groups(
    subject: Subject, columns: Sequence[SampledColumn], leaks: Collection[str]
) -> Iterator[tuple[str, str, str, str]]:
    """Columns that group rows, features or left out, the widest groups first; by what does not give the target away."""
    tried = 0
    candidates = [c for c in columns if c.name not in subject.asked | subject.dates] + [*subject.left_out()]
    for column in sorted(candidates, key=lambda column: len(column.counts)):
        repeats = (column.categorical or column.integers) and len(column.counts) >= fits.FEWEST_GROUPS
        plain = repeats and tried < _MOST_FITS and _is_wider(column, subject)
        rows = fits.choose_group_rows(column, subject.y) if plain else None
        if rows is not None:
            tried += 1
            told = [c for c in subject.columns_at(rows) if c.name not in leaks]
            loss = fits.measure_groups(told, column.whole[rows], subject, rows)
            if loss is not None and loss.matters:
                note = f"groups rows whose targets are alike: what a quick fit explains falls {loss} in new groups"
                yield "groups", column.name, note, f"--split group:{shlex.quote(column.name)}"


def _is_wider(column: SampledColumn, subject: Subject) -> bool:
    """Whether the groups that the user splits by, if any, lie within those of the column."""
    if subject.split_by is None:
        return True
    within = np.unique(np.stack([subject.split_by.astype(np.float64), column.whole.astype(np.float64)]), axis=1)
    return bool(within.shape[1] == len(np.unique(subject.split_by)) > len(np.unique(column.whole)))


def _whole_times(column: SampledColumn, subject: Subject) -> NDArray[np.float64] | None:
    """When each row was, if the column tells it by what it holds, or because rows are in its order."""
    times = None if column.name in subject.asked else _times(column, subject)
    if times is None or np.isnan(times).any():
        return None
    return times if columns_alone.note_dates(column) or columns_alone.in_order(times) else None


def _notes_of_one(subject: Subject, column: SampledColumn) -> dict[str, tuple[str, str]]:
    """By kind, what is to be said of a column by itself; without an option, it is to be dropped."""
    if note := columns_alone.note_missing(column):
        return {"missing": (note, "")}
    asked = column.name in subject.asked
    if note := columns_alone.note_constant(column):
        return {} if asked else {"constant": (note, "")}
    plain = not asked and column.name not in subject.dates
    found = _looks(column) if plain else {}
    if plain and not found and (note := columns_alone.note_many_texts(column)):
        name = shlex.quote(column.name)
        found["many-categories"] = (note, f"{_several('--drop', [column.name])}; or --split group:{name}")
    if note := columns_alone.note_almost_constant(column):
        found["almost-constant"] = (note, "")
    if plain and not found and (note := columns_alone.note_blurred(column)):
        found["float32-feature"] = (note, "")
    times = _times(column, subject)
    by_time = subject.split is not None and subject.split.kind == "time"
    if not by_time and times is not None and not np.isnan(times).any() and columns_alone.in_order(times):
        found["time-order"] = ("rises from row to row", f"--split time:{shlex.quote(column.name)}")
    return found


def _looks(column: SampledColumn) -> dict[str, tuple[str, str]]:
    """What a column looks like, although it is used as something else."""
    if note := columns_alone.note_numbers(column):
        return {"number-as-text": (note, _several("--numeric", [column.name]))}
    if note := columns_alone.note_dates(column):
        return {"date": (note, _several("--date", [column.name]))}
    note = "" if columns_alone.is_named_time(column.name) else columns_alone.note_id(column)
    return {"id": (note, "")} if note else {}


def _times(column: SampledColumn, subject: Subject) -> NDArray[np.float64] | None:
    if column.texts is not None:
        if not columns_alone.note_dates(column):
            return None
        return columns_alone.read_times(column)
    named = column.name in subject.dates or columns_alone.is_named_time(column.name)
    if column.declared or not (named or columns_alone.note_dates(column)) or columns_alone.comes_round(column):
        return None
    return column.numbers


def _leaks(
    subject: Subject, columns: Sequence[SampledColumn], sample: RowNumbers | None
) -> Iterator[tuple[str, float, str]]:
    """Columns that alone predict the target, with the score and what that is."""
    if np.isnan(subject.y).any():
        return
    rows = np.arange(len(subject.y)) if sample is None else sample
    rows = rows[:: -(-len(rows) // LEAK_ROWS)]
    if subject.task.is_classification and len(rows) < len(subject.y):
        rows = np.union1d(rows, _rare_rows(subject.y))
    target = AuditTarget(subject.y[rows], classes=subject.task.is_classification)
    if len(rows) < len(subject.y):
        names = {column.name for column in columns}
        columns = [column for column in subject.columns_at(rows) if column.name in names]
    for name, score in relations.find_leaks(columns, target):
        yield name, score, target.measure


def _rare_rows(y: NDArray[np.float64]) -> RowNumbers:
    """Rows of classes that a sample would hardly meet: all of a rare one, up to a bound."""
    codes = y.astype(np.int64)
    counts = np.bincount(codes)
    rare = np.flatnonzero(counts * (LEAK_ROWS / len(y)) < _OF_A_CLASS)[:_MOST_CLASSES]
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *(np.flatnonzero(codes == code)[:_OF_A_CLASS] for code in rare)])


def _of_columns(subject: Subject, notes: ColumnNotes) -> Iterator[AuditFinding]:
    """A finding for each column, or one for all columns of a kind if they are many."""
    for kind, told in notes.items():
        if len(told) <= _MOST_TOLD:
            for name, (note, option) in told.items():
                of_rows = name == ROW_ORDER and option == "--split time"
                text = note if of_rows else f"'{_short(name)}' {note}"
                yield _finding(subject, kind, text, option, column=None if of_rows else name)
            continue
        names = [f"'{_short(name)}'" for name in list(told)[:_MOST_NAMED]]
        more = f" and {len(told) - len(names)} more" if len(told) > len(names) else ""
        first, (note, option) = next(iter(told.items()))
        action = option.replace("=", " ").split()[0]
        acts_on = action in ("--drop", "--numeric", "--date")
        option = _several(action, told) if acts_on else option
        yield _finding(
            subject, kind, f"{len(told)} columns: {', '.join(names)}{more}; '{_short(first)}' {note}", option
        )


def _of_rows(
    subject: Subject, columns: Sequence[SampledColumn], sample: RowNumbers | None, ids: Collection[str]
) -> Iterator[AuditFinding]:
    if not columns or subject.task is Task.RANKING:  # a document may well be in two queries
        return
    rows = subject.copies_sample(sample, ids)
    looked_at = [c for c in (columns if rows is sample else subject.columns_at(rows)) if c.name not in ids]
    y = subject.y if rows is None else subject.y[rows]
    sides = None if subject.split_by is None else subject.split_by.astype(np.float64)
    found = relations.count_repeated_rows(looked_at, y, sides if sides is None or rows is None else sides[rows])
    if found is None:
        return
    same, alike = found
    enough = same >= relations.COPIES * len(y) or alike >= relations.COPIES_BUT_TARGET * len(y)
    if not enough or alike < relations.FEW_COPIES:
        return
    of = f"{len(y)} rows" + ("" if rows is None else " looked at")
    counted = ((same, "repeat an earlier row"), (alike - same, "differ from an earlier row only in the target"))
    kinds = [(n, f"({format_share(n / len(y), 1)}) {what}") for n, what in counted if n]
    told = [f"{n} {'more' if place else f'of {of}'} {what}" for place, (n, what) in enumerate(kinds)]
    text = f"{', and '.join(told)}: a random split puts copies on both sides"
    whole = [column for column in looked_at if not column.missing] or looked_at
    finest = shlex.quote(max(whole, key=lambda column: len(column.counts)).name)  # copies are equal in any column
    yield _finding(subject, "duplicate-rows", text, f"--split group:{finest} --keep {finest}")


def _of_classes(subject: Subject, counts: NDArray[Any]) -> Iterator[AuditFinding]:
    rare = sorted((int(count), subject.labels[code]) for code, count in enumerate(counts) if count < relations.RARE)
    if rare:
        named = ", ".join(f"'{_short(label)}' {count}" for count, label in rare[:_MOST_NAMED])
        more = f" and {len(rare) - _MOST_NAMED} more" if len(rare) > _MOST_NAMED else ""
        text = f"{len(rare)} of {len(counts)} classes have fewer than {relations.RARE} rows: {named}{more}"
        text += RARE_IN_GENERAL
        yield _finding(subject, "rare-class", text, f"--cv {max(2, rare[0][0])}" if rare[0][0] > 1 else "")
    largest = int(counts.max())
    if largest >= relations.IMBALANCE * counts.sum():
        label = subject.labels[int(np.argmax(counts))]
        text = (
            f"{format_share(largest / counts.sum(), 2)} of the rows are of class '{_short(label)}':"
            " always predicting it has that accuracy"
        )
        option = "--metric average_precision" if subject.task is Task.BINARY else ""
        yield _finding(subject, "imbalance", text, option, always=True)


def _repeated_target(subject: Subject) -> Iterator[AuditFinding]:
    if subject.task is Task.RANKING or len(subject.y) < relations.LEAST_ROWS:
        return
    sample = subject.sample()
    y = subject.y if sample is None else subject.y[sample]
    values, counts = np.unique(y, return_counts=True)
    share = counts.max() / len(y)
    if share >= relations.REPEATED and len(values) > 2:
        text = f"{format_share(share, 0)} of the rows have the target {values[np.argmax(counts)]:g}"
        yield _finding(subject, "repeated-target", text, "")


def _blurred_target(subject: Subject) -> Iterator[AuditFinding]:
    """Most libraries keep targets as float32, and lose what it cannot tell apart; least gains are in fixed units."""
    if subject.task.is_classification or subject.task is Task.RANKING:
        return
    if find_unit(subject.y) != 1:
        text = (
            f"{subject.target} has a standard deviation of {subject.y.std():.3g}, for which some libraries do not"
            " split as they do otherwise"
        )
        yield _finding(subject, "target-scale", text, "--profile parity", always=True)
    step = find_coarse_step(subject.y)
    if step is not None:
        text = (
            f"{subject.target} reaches {np.abs(subject.y).max():.4g}, where float32, which most libraries keep targets"
            f" in, can only step by {step:g}; its standard deviation is {subject.y.std():.3g}"
        )
        yield _finding(subject, "float32-target", text, "--profile parity", always=True)


def _target_as_text(subject: Subject, column: pd.Series[Any]) -> Iterator[AuditFinding]:
    if not is_text(column) or not subject.labels:
        return
    note = columns_alone.note_numbers_as_text(subject.labels[:_MOST_COLUMNS])
    if note:
        text = f"the target {subject.target} {note}, and is taken as {len(subject.labels)} classes"
        yield _finding(subject, "target-as-text", text, _several("--numeric", [str(column.name)]))


def _finding(
    subject: Subject, kind: str, text: str, option: str, *, column: str | None = None, always: bool = False
) -> AuditFinding:
    return AuditFinding(
        kind=kind,
        text=text,
        column=None if column is None else _short(column),
        option=option if subject.by_option or always else "",
    )


def _several(option: str, names: Iterable[str]) -> str:
    """The option as it is typed in a shell, so with whole names; one that looks like an option needs its sign."""
    shown = list(names)[:_MOST_COLUMNS]
    plain = [shlex.quote(name) for name in shown if not name.startswith("-")]
    odd = [f"{option}={shlex.quote(name)}" for name in shown if name.startswith("-")]
    return " ".join([*([option, *plain] if plain else []), *odd])


def _short(name: str) -> str:
    return name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME - 1]}…"
