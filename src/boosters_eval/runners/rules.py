"""The machinery under the parameter tables: rules, their small expressions, and what the tables have in common.

A value that starts with "=" is an expression over the canonical parameters, as in a spreadsheet; anything else
is passed as it is. So a table stays data: the same text is evaluated, printed and documented. `c` is the factor between
a library's multiclass hessian and p(1-p). Each library's table stands with its runner; `mapping.py` has all of them.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from boosters_eval.core.errors import ConfigError
from boosters_eval.metrics.task import Task
from boosters_eval.runners.base import Runner, Translation
from boosters_eval.runners.parameters import Mark, MarkKind, Profile, TrainingConfig

if TYPE_CHECKING:
    from boosters_eval.runners.base import FitRequest, TrainData

Native = Mapping[str, Any]

# Canonical concepts that are not fields of TrainingConfig but decide a comparison all the same.
CONCEPTS = ("objective", "base_score", "missing", "categorical", "weights", "linear_leaves")
CANONICAL = (*TrainingConfig.model_fields, *CONCEPTS)
ALWAYS = ("objective", "n_threads", "seed", "device")  # passed even to a library that runs with its own defaults


@dataclass(frozen=True)
class Rule:
    """How a library honors one canonical parameter, in the cases where `where` holds.

    `exact_if` names the values at which nothing is lost although the rule is not exact in general.
    """

    parameter: str
    native: Native = field(default_factory=dict)
    kind: MarkKind = "exact"
    reason: str = ""
    where: str = ""
    exact_if: str = ""


def approximated(parameter: str, native: Native, reason: str, where: str = "", exact_if: str = "") -> Rule:
    return Rule(parameter, native, "approximated", reason, where, exact_if)


def own_categories(what: str, native: Native | None = None, where: str = "categorical") -> Rule:
    """Categories have no common meaning, so each library keeps its own defaults; `what` says what they do."""
    return Rule("categorical", native or {}, "own", what, where)


def unsupported(parameter: str, native: Native, reason: str, where: str = "", exact_if: str = "") -> Rule:
    return Rule(parameter, native, "unsupported", reason, where, exact_if)


@dataclass(frozen=True)
class Pin:
    """Native settings that no canonical parameter asks for but a fair comparison needs."""

    native: Native
    reason: str
    where: str = ""


@dataclass(frozen=True)
class Refusal:
    """What a library cannot do at all."""

    where: str
    reason: str


@dataclass(frozen=True)
class Edition:
    """One library's table for the versions from `since` up to but not including `until`."""

    library: str
    since: str
    until: str
    rules: tuple[Rule, ...]
    pins: tuple[Pin, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    defaults: tuple[Pin, ...] = ()  # all that is passed when the library runs with its own defaults
    hessian: str = "=1"  # the factor c between the library's hessian and the canonical one
    nondeterministic: tuple[Refusal, ...] = ()

    def covers(self, version: str) -> bool:
        """Whether this table was verified for a version."""
        return _numbers(self.since) <= _numbers(version) < _numbers(self.until)


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
}
_CALLS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "list": list}


@lru_cache(maxsize=1024)
def _parse(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of a table's expression; only arithmetic, comparison, choice, min, max and list are known."""
    return _value(_parse(expression), names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911 (one case a kind of node)
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, names) for part in parts)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, names) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, names) for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, names), _value(right, names))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _CALLS[name](*(_value(arg, names) for arg in args))
        case _:
            raise ValueError(f"The table's expressions have no {type(node).__name__}.")


def holds(condition: str, names: Mapping[str, Any]) -> bool:
    """Whether a condition is met; an empty one always is."""
    return not condition or bool(evaluate(condition, names))


def resolve_native(native: Native, names: Mapping[str, Any]) -> dict[str, Any]:
    """A rule's native settings with their expressions evaluated."""
    return {
        name: evaluate(value[1:], names) if isinstance(value, str) and value.startswith("=") else value
        for name, value in native.items()
    }


def list_names(request: FitRequest, edition: Edition) -> dict[str, Any]:
    """The names that an expression may use."""
    names: dict[str, Any] = {name: getattr(request.training, name) for name in TrainingConfig.model_fields}
    names |= vars(request) | {
        "growth": request.training.growth_strategy.value,
        "device": request.training.device.value,
        "task": request.task.value,
        "booster": request.booster_type.value,
        "profile": request.profile.value,
        "n_classes": request.n_classes or 2,
        "n_quantiles": len(request.quantiles),
    }
    return names | {"c": evaluate(edition.hessian[1:], names)}


def choose_edition(editions: tuple[Edition, ...], version: str | None) -> tuple[Edition, Mark | None]:
    """The table for a version, with a mark when that version was never verified."""
    for edition in editions:
        if version is not None and edition.covers(version):
            return edition, None
    if version is None:
        return editions[-1], None
    nearest = editions[0] if _numbers(version) < _numbers(editions[0].since) else editions[-1]
    reason = (
        f"version {version} is outside the range {editions[0].since} to {editions[-1].until} "
        f"for which the mapping was verified"
    )
    return nearest, Mark(parameter="version", kind="approximated", reason=reason)


def find_refusal(edition: Edition, request: FitRequest) -> str | None:
    names = list_names(request, edition)
    return next((entry.reason for entry in edition.refusals if holds(entry.where, names)), None)


def translate(edition: Edition, request: FitRequest, unverified: Mark | None = None) -> Translation:
    """Canonical parameters to native ones, with a mark for each that applies."""
    if request.task is Task.MULTICLASS and request.n_classes is None:
        raise ConfigError("The 'n_classes' parameter of FitRequest must be known for multiclass. Got None instead.")
    if request.task is Task.QUANTILE and not request.quantiles:
        raise ConfigError("The 'quantiles' parameter of FitRequest must name quantiles. Got none instead.")
    names = list_names(request, edition)
    as_it_comes = request.profile is Profile.DEFAULTS
    rules = select_rules(edition, names)
    if as_it_comes:
        rules = [rule for rule in rules if rule.parameter in ALWAYS]
    native: dict[str, Any] = {}
    origins: dict[str, str] = {}
    pins = edition.defaults if as_it_comes else edition.pins
    entries: list[Rule | Pin] = [*rules, *pins]
    for entry in entries:
        if holds(entry.where, names):
            native |= resolve_native(entry.native, names)
            origin = entry.parameter if isinstance(entry, Rule) else entry.reason
            origins |= dict.fromkeys(entry.native, origin)
    marks = [unverified] if unverified else []
    if not as_it_comes:
        marks += [make_mark(rule, names) for rule in rules]
    why = next((entry.reason for entry in edition.nondeterministic if holds(entry.where, names)), None)
    return Translation(request, native, tuple(marks), why, origins)


def override(translation: Translation, native: Mapping[str, Any], who: str) -> Translation:
    """With a library's own parameters, which win; None takes one away. A mark says where the mapping is left."""
    marks, mapped = list(translation.marks), translation.request.profile is not Profile.DEFAULTS
    for name, value in native.items():
        before = translation.native.get(name)
        if mapped and value != before:
            what = "leaves it to the library" if value is None else f"sets {value}"
            instead = "" if before is None else f" instead of {before}"
            marks.append(Mark(parameter=name, kind="approximated", reason=f"{who} {what}{instead}"))
    merged = {**translation.native, **native}
    return replace(
        translation,
        native={name: value for name, value in merged.items() if value is not None},
        marks=tuple(marks),
        origins={**translation.origins, **dict.fromkeys(native, who)},
    )


def select_rules(edition: Edition, names: Mapping[str, Any]) -> list[Rule]:
    """The first rule that applies for each parameter; a parameter without one is not used."""
    chosen: dict[str, Rule] = {}
    for rule in edition.rules:
        if rule.parameter not in chosen and holds(rule.where, names):
            chosen[rule.parameter] = rule
    return list(chosen.values())


def make_mark(rule: Rule, names: Mapping[str, Any]) -> Mark:
    """A rule's mark at these values."""
    exact = rule.kind == "exact" or (rule.exact_if and holds(rule.exact_if, names))
    return Mark(parameter=rule.parameter, kind="exact" if exact else rule.kind, reason="" if exact else rule.reason)


def _numbers(version: str) -> tuple[int, ...]:
    parts = ("".join(takewhile(str.isdigit, part)) for part in version.split("."))
    return tuple(int(part) for part in takewhile(bool, parts))


class TableRunner(Runner):
    """A runner that reads its refusals and its translation from the table."""

    editions: ClassVar[tuple[Edition, ...]]

    @classmethod
    def unsupported(cls, request: FitRequest) -> str | None:
        return find_refusal(choose_edition(cls.editions, cls.version())[0], request)

    @classmethod
    def translate(cls, request: FitRequest) -> Translation:
        edition, unverified = choose_edition(cls.editions, cls.version())
        found = translate(edition, request, unverified)
        return found if not request.native else override(found, request.native, "the variant")


def find_stopping_rows(translation: Translation, data: TrainData) -> TrainData | None:
    """The rows to stop early on: there when, and only when, the library will use them."""
    wanted = translation.request.training.early_stopping_rounds
    if wanted is None or translation.request.profile is Profile.DEFAULTS:
        return None
    if data.valid is None:
        raise ConfigError("The 'early_stopping_rounds' parameter needs validation rows. Got None instead.")
    return data.valid


# What the tables have in common: conditions, reasons, and the parameters that mean the same everywhere.
TREES = "booster != 'gblinear'"
DEPTHWISE = "booster != 'gblinear' and growth == 'depthwise'"
LEAFWISE = "booster != 'gblinear' and growth == 'leafwise'"
STOPPING = "early_stopping_rounds is not None"
# Where the hessian of every row is 1, a minimal sum of hessians is a minimal number of rows.
UNIT_HESSIAN = "booster != 'gblinear' and task in ('regression', 'quantile') and not weighted"

CUDA = "device == 'cuda'"

SILENT = "nothing is printed"
OWN_LAMBDAS = "the pairs of the ranking loss, their weights and their number are the library's own"
OWN_LINES = "which features enter a leaf's linear model is the library's own"
OWN_QUANTILE = (
    "the quantile of the rows of a leaf is one of them in boosters and CatBoost, lies between two of them in "
    "LightGBM and scikit-learn"
)
OWN_RANK_STOP = "the ranking metric that is watched is the library's own"
KEEPS_ROUNDS = "it stops like the others but keeps the rounds after the best one"
NO_ROWS_IN_LEAF = "the library cannot count the rows of a leaf, and a row's hessian is not 1 here"

ON_CPU = Rule("device", where="device == 'cpu'")  # every library's default
NO_DEVICE = Refusal("device != 'cpu'", "the library trains on CPUs only")
NO_GBLINEAR = Refusal("booster == 'gblinear'", "the library boosts no linear models")
NO_LINEAR_TREES = Refusal("booster == 'linear_trees'", "the library has no linear models in leaves")
NO_RANKING = Refusal("task == 'ranking'", "the library has no ranking objective")
# A linear model's rounds go over all rows and all columns.
NO_SAMPLING = tuple(
    unsupported(name, {}, "linear models are trained on all rows and all columns", exact_if=f"{name} == 1")
    for name in ("subsample", "colsample")
)


def common_rules(n_estimators: str, learning_rate: str, seed: str) -> tuple[Rule, ...]:
    """Three parameters that differ in name alone, and in the hessian that a step is divided by."""
    return (
        Rule("n_estimators", {n_estimators: "=n_estimators"}),
        Rule("learning_rate", {learning_rate: "=learning_rate * c"}),
        Rule("seed", {seed: "=seed"}),
    )


def stopping_rules(native: str, *, joint: bool) -> tuple[Rule, ...]:
    """Early stopping on rows that the engine holds out, the same for every library.

    All watch their loss; where a library has one model for all quantiles, these stop together.
    """
    name, settings = "early_stopping_rounds", {native: "=early_stopping_rounds"}
    together = approximated(
        name,
        settings,
        "all quantiles stop at the same round; in other libraries each stops on its own",
        f"{STOPPING} and task == 'quantile'",
        "n_quantiles == 1",
    )
    ranking = approximated(name, settings, OWN_RANK_STOP, f"{STOPPING} and task == 'ranking'")
    return (*((together,) if joint else ()), ranking, Rule(name, settings, where=STOPPING))
