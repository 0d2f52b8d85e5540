"""What the axes of a table name, models, data sets or metrics: the assignment for which most evidence speaks."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, get_args

from boosters_eval.core.terms import named
from boosters_eval.programs.paper import labels, values
from boosters_eval.programs.paper.request import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boosters_eval.programs.paper.layout import Axis, Layout

SHOWN: dict[Role, str] = {"datasets": "data sets", "metrics": "metrics", "models": "models"}
_COMPARED = re.compile(r"\b(?:vs|versus|against|compar\w+|than|outperform\w*|baselines?)\b", re.IGNORECASE)
_SUMMED = re.compile(r"\b(?:rank|avg|average|mean|overall)\b", re.IGNORECASE)  # stands beside data sets, too
_CLEAR = 1.0  # by how much the best assignment must be ahead of the next, or it is in doubt


class Clue(NamedTuple):
    weight: float
    why: str


@dataclass(frozen=True, slots=True)
class KnownNames:
    """What a document says of its tables together: the names that stand under a "Model" or a "Data set"."""

    names: Mapping[str, Role] = field(default_factory=dict)

    @classmethod
    def of(cls, layouts: Iterable[tuple[Layout, str]]) -> KnownNames:
        """The names of all axes that are in no doubt. Each layout comes with what the document says of it."""
        roles: dict[str, set[Role]] = {}
        for found, about in layouts:
            assign_roles(found, about, cls())
            for i, role in found.roles.items() if not found.doubts else ():
                for label in found.axes[i].distinct:
                    roles.setdefault(label, set()).add(role)
        return cls({label: next(iter(each)) for label, each in roles.items() if len(each) == 1})


def assign_roles(found: Layout, about: str, known: KnownNames, columns: Role | None = None, nearby: str = "") -> None:
    """Give each role to one axis at most, by the sum of the evidence. A narrow lead is a doubt."""
    names_metric = bool(labels.find_arrows(about)) or len(labels.find_metrics(about)) == 1
    inner = next((i for i in reversed(range(len(found.axes))) if not found.axes[i].is_of_rows), None)
    if columns and columns != "metrics" and inner is not None and found.axes[inner].kind == "kind":
        inner -= 1
    compared = " ".join(each for each in re.split(r"(?<=[.!?])\s+", f"{about} {nearby}") if _COMPARED.search(each))
    evidence = {
        (i, role): [*_weigh(axis, role, known, compared, names_metric=names_metric)]
        for i, axis in enumerate(found.axes)
        for role in get_args(Role)
    }
    if columns is not None and inner is not None:
        evidence[inner, columns].append(Clue(1000.0, named("columns")))
    total = {place: sum(one.weight for one in each) for place, each in evidence.items()}
    usable = [i for i in range(len(found.axes)) if any(total[i, role] > 0 for role in get_args(Role))][:8]
    choices = itertools.product([None, *usable], repeat=len(get_args(Role)))
    ranked = sorted(
        ((sum(total[i, role] for i, role in each.items()), n, each) for n, each in enumerate(_assignments(choices))),
        key=lambda each: (-each[0], each[1]),
    )
    best, _, chosen = ranked[0]
    for i, role in sorted(chosen.items()):
        found.roles[i] = role
        reason = max(evidence[i, role], key=lambda one: one.weight)
        found.why.append(f"{_name_axis(found, found.axes[i])}: {SHOWN[role]} ({reason.why})")
        rivals = [(score, other) for score, _, other in ranked if other.get(i) not in (role, None)]
        if rivals and best - rivals[0][0] < _CLEAR:
            other = SHOWN[rivals[0][1][i]]
            found.doubts.append(
                f"{_name_axis(found, found.axes[i])}: {SHOWN[role]}, or {other}? {reason.why.capitalize()}"
            )


def _assignments(choices: Iterable[tuple[int | None, ...]]) -> Iterator[dict[int, Role]]:
    for choice in choices:
        places = [i for i in choice if i is not None]
        if len(set(places)) == len(places):
            yield {i: role for i, role in zip(choice, get_args(Role), strict=True) if i is not None}


def _weigh(axis: Axis, role: Role, known: KnownNames, compared: str, *, names_metric: bool) -> Iterator[Clue]:
    """What speaks for an axis to have a role, and what against it."""
    names = axis.distinct
    count = len(names) or 1
    if axis.kind == "key" and (said := labels.find_role(axis.name)):
        yield Clue(12.0 if said == role else -6.0, f"headed '{axis.name}'")
    metrics = sum(_is_kind(name) and not _SUMMED.search(name) for name in names) / count
    hits: dict[Role, float] = {
        "metrics": metrics,
        "models": sum(labels.is_model(name) and not labels.is_dataset(name) for name in names) / count,
        "datasets": sum(map(labels.is_dataset, names)) / count,
    }
    for other, share in hits.items():
        weight = (9.0 if other == "metrics" else 6.0) if other == role else -4.0
        if share:
            yield Clue(weight * share, f"{round(share * count)} of {count} names are known as such")
    elsewhere = sum(known.names.get(name) == role for name in names) / count
    if elsewhere:
        yield Clue(5.0 * elsewhere, f"another table names {round(elsewhere * count)} of {count} so")
    mentioned = sum(
        len(name) > 2 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", compared) is not None for name in names
    )
    if mentioned > 1 and role == "models":
        yield Clue(4.0 * mentioned / count, f"the text compares {mentioned} of {count}")
    if axis.kind == "kind":
        yield Clue(6.0 if role == "metrics" else -8.0, "the labels end with it")
        return
    numbers = sum(map(values.looks_like_result, names)) / count
    yield Clue(-2.0 * numbers if role != "metrics" else 0.0, "they are numbers")
    yield Clue(_prior(axis, role, names_metric=names_metric), _explain_prior(axis, role, names_metric=names_metric))


def _prior(axis: Axis, role: Role, *, names_metric: bool) -> float:
    if axis.kind == "group":
        return {"models": -1.0, "datasets": -0.5, "metrics": -1.0}[role]
    if axis.kind == "key":
        other = axis.name and not labels.find_role(axis.name)  # a column of its own meaning
        return {"models": 5.0 if axis.number == 0 else 3.5, "datasets": -1.5 if other else 1.0, "metrics": -1.0}[role]
    if len(axis.distinct) < 2 and axis.kind == "level" and sum(map(bool, axis.labels)) > 1:
        return -0.5
    return {"models": 3.6, "datasets": 1.6 if names_metric else 0.8, "metrics": 0.4 if names_metric else 1.6}[role]


def _explain_prior(axis: Axis, role: Role, *, names_metric: bool) -> str:
    if role == "datasets" and names_metric and not axis.is_of_rows:
        return "the caption names the metric"
    return "nothing says otherwise"


def _is_kind(name: str) -> bool:
    """Whether a label is a metric or a condition, and nothing besides."""
    part = labels.split_label(name)
    return bool(part.kind and not part.rest) or all(
        labels.find_metric(each) for each in labels.split_alternatives(name)
    )


def _name_axis(found: Layout, axis: Axis) -> str:
    if axis.kind == "key":
        return "rows" if len(found.columns("key")) == 1 else f"column {axis.number + 1}"
    if axis.kind == "group":
        return "groups"
    where = "columns" if len(found.headers) == 1 else f"header {axis.number + 1}"
    return {"level": where, "rest": f"{where}, what a metric is of", "kind": f"{where}, their metric"}[axis.kind]
