"""What cells and labels of a printed table say: values with their digits, metrics, directions, units and roles."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from boosters_eval.core.terms import given
from boosters_eval.metrics.catalog import METRICS
from boosters_eval.programs.paper.documents.latex import MAX_TEXT, is_strong, strip_tex
from boosters_eval.programs.paper.specification import Quantity, StdOver

if TYPE_CHECKING:
    from boosters_eval.programs.paper.request import Decimal, Parentheses, Role


MAX_CELL = 300  # characters, without markup

_NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?"
_UNITS = """
    % ‰ pp s sec secs second seconds ms µs us ns m min mins minute minutes h hr hrs hour hours d day days
    B KB MB GB TB KiB MiB GiB kB k K M G T x × bpc bpb bpd bits nats ppl PPL dB W kW Wh kWh J kJ Hz MHz GHz USD EUR $ €
    px ° °C FLOPs FLOPS MFLOPs GFLOPs TFLOPs GFLOPS TFLOPS fps FPS tokens tokens/s tokens/sec tok/s it/s img/s images/s
    samples/s rows/s MB/s GB/s ms/token s/epoch
"""
UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS.split(), key=len, reverse=True))
_DASHES = "- – — − -- --- n/a na n.a. nan none null tbd ? · ... … * /"
_MISSING = frozenset({"", *_DASHES.split()})
_FAILED = ("oom", "oot", "dnf", "timeout", "time out", "out of memory", "out of time", "diverged", "failed", "div.")
_MARKS = "*†‡§¶#✓⋆★◇♠♣△▲▼"
_AT = re.compile(
    rf"(?P<space>\s+)|±\s*(?P<std>{_NUMBER})(?![\d.,])"
    rf"|(?:[(\[]|[_^]\{{)\s*±\s*(?P<in_std>{_NUMBER})\s*%?\s*[)\]}}]"
    rf"|[(\[]\s*(?:std|sd|s\.d\.|σ)\s*[=:]?\s*(?P<named_std>{_NUMBER})\s*[)\]]"
    r"|\(\s*n\s*=\s*(?P<count>\d+)\s*\)"
    rf"|(?P<interval>[(\[]\s*{_NUMBER}\s*(?:[,;–—]|--|\s-\s|to)\s*{_NUMBER}\s*[)\]])"
    rf"|(?P<difference>[(\[]\s*(?:[↑↓▲▼]\s*[-+]?|[-+])\s*(?:{_NUMBER})\s*(?:{UNIT})?\s*[↑↓]?\s*[)\]]"
    rf"|[↑↓▲▼]\s*{_NUMBER}\s*%?)"
    rf"|[(\[]\s*(?P<unit_in>{UNIT})\s*[)\]]"
    rf"|(?P<bracket>\(\s*(?P<bracketed>{_NUMBER})\s*\)|_\{{\s*\(?\s*(?P<lowered>{_NUMBER})\s*\)?\s*\}})"
    rf"|(?P<marks>(?:[{re.escape(_MARKS)}]|\^\{{[^{{}}\d]{{1,8}}\}}|[↑↓](?=\s|$))+)"
    rf"|(?P<unit>{UNIT})(?![A-Za-z])"
)  # fmt: skip
_TENS = re.compile(r"\s*[×·x*]\s*10\s*(?:\^\{\s*([-+]?\d+)\s*\}|\^([-+]?\d+))")
_REPEATED = re.compile(r"(?<![\d.])([-+]?(?:\d+\.\d+|\.\d+)(?:e[-+]?\d+)?%?)(?:\1)+(?![\d.])")
_REPEATED_BRACKET = re.compile(rf"\(({_NUMBER})\)\1\(\1\)")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# Digits and letters of the mathematical alphabets, and of full width.
_VARIANT = re.compile("[\U0001d400-\U0001d7ff\uff01-\uff5e]+")
_SIGNS = {ord("−"): "-", ord("‐"): "-", ord("‑"): "-", ord("μ"): "µ", ord("∼"): "~", 0xFE0F: None}
_ANSWERS = {"decimals or thousands?": ("decimal", "comma"), "a deviation or a count?": ("parentheses", "std|count")}
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")


@dataclass(frozen=True, slots=True)
class CellReading:
    """What a cell says. `problem` is why it has no value, or what else in it could not be decided."""

    text: str
    value: Quantity | None = None
    std: Quantity | None = None
    unit: str = ""
    count: int | None = None
    emphasis: bool = False
    notes: tuple[str, ...] = ()
    problem: str = ""
    repeats: int = 1  # how often a conversion has written the number

    @property
    def missing(self) -> bool:
        return self.value is None and not self.problem

    @property
    def why(self) -> str:
        """The problem; where it is a question, with what answers it, in the caller's terms."""
        answer = next((given(*told) for question, told in _ANSWERS.items() if self.problem.endswith(question)), "")
        return f"{self.problem} ({answer})" if answer else self.problem


@lru_cache(maxsize=20_000)
def read_cell(
    raw: str, *, emphasis: bool = False, parentheses: Parentheses | None = None, decimal: Decimal = "point"
) -> CellReading:
    """Read a cell. Parentheses after a value are a deviation or a count only if it is said which."""
    emphasis = emphasis or is_strong(raw) or any("\U0001d7ce" <= char <= "\U0001d7d7" for char in raw)
    text = _normalize(raw) if len(raw) <= MAX_TEXT else raw
    if len(text) > MAX_CELL:
        return CellReading(text[:40] + "…", problem=f"it is longer than {MAX_CELL} characters")
    if text.lower() in _MISSING:
        return CellReading(text)
    if text.lower().strip("()") in _FAILED:
        return CellReading(text, notes=(text,))
    shown = text
    if decimal == "comma":
        text = text.translate(str.maketrans(",.", ".,"))
    text, repeats = _once(text)
    found = _Reader(text, parentheses)
    problem = found.read()
    if problem:
        return CellReading(shown, problem=problem)
    return CellReading(
        shown, found.value, found.std, found.unit, found.count, emphasis, tuple(found.notes), found.undecided, repeats
    )


@lru_cache(maxsize=20_000)
def looks_like_result(raw: str) -> bool:
    """Whether a cell begins with a number: enough to tell a row of results from a header."""
    text = _normalize(raw)[:MAX_CELL]
    number = re.match(rf"[$€~≈<>]?\s*(?:{_NUMBER})", text)
    return number is not None and re.match(r"[\d.,+-]+\s*[A-Za-z]{3}", text) is None


@lru_cache(maxsize=20_000)
def spell(raw: str) -> str:
    """A name in one spelling, without TeX."""
    return _respell(strip_tex(raw))


def _respell(text: str) -> str:
    """Without wide spaces and the mathematical alphabets, which only say how it is printed."""
    if not text.isascii():
        text = _VARIANT.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return " ".join(text.split())


def _normalize(raw: str) -> str:
    """A number in one spelling of its signs. Raised digits are never joined to what is before them."""
    text = strip_tex(raw)
    if not text.isascii():
        text = re.sub("(?<=\\d)[\u2009\u202f](?=\\d{3}(?!\\d))", ",", text)
        text = _RAISED.sub(lambda match: f"^{{{match[0].translate(_SUPERSCRIPTS)}}}", text).translate(_SIGNS)
    return re.sub(r"\+\s?/\s?-|\+-", "±", _respell(text))


def _once(text: str) -> tuple[str, int]:
    """The text as printed, where a conversion has written a formula several times: 0.4620.4620.462."""
    before, found, after = text.partition("plus-or-minus")
    if found:
        spoken = before.replace("±", "").replace(" ", "")
        if after.replace(" ", "") in {f"{spoken}{before}".replace(" ", ""), spoken}:
            return before.strip(), 3
    if "%percent" in text.replace(" ", ""):
        percent = re.fullmatch(rf"({_NUMBER})%percent\1\1?%?", text.replace(" ", ""))
        if percent:
            return f"{percent[1]}%", 3
    text = _REPEATED_BRACKET.sub(r"(\1)", text)
    repeats = 1
    for match in _REPEATED.finditer(text):
        repeats = max(repeats, len(match[0]) // len(match[1]))
    return _REPEATED.sub(r"\1", text), repeats


def count_repeats(raw: str) -> int:
    return _once(_normalize(raw))[1] if len(raw) <= MAX_TEXT else 1


class _Reader:
    """Reads the parts of a cell from left to right; the first must be the value."""

    def __init__(self, text: str, parentheses: Parentheses | None) -> None:
        self.text = text
        self.parentheses = parentheses
        self.value: Quantity | None = None
        self.std: Quantity | None = None
        self.unit = ""
        self.count: int | None = None
        self.notes: list[str] = []
        self.undecided = ""

    def read(self) -> str:
        """What is wrong with the cell, or nothing."""
        start = re.match(rf"([$€]?)\s*({_NUMBER})", self.text)
        if start is None:
            bound = re.match(r"[<>≤≥~≈]", self.text)
            return "it is a bound, not a value" if bound else "it does not begin with a number"
        printed, position = start[2], start.end()
        tens = _TENS.match(self.text, position)
        if tens:
            printed, position = f"{printed}e{int(tens[1] or tens[2])}", tens.end()
        if re.match(r"[\d.,]", self.text[position:]):
            comma = re.match(r"[-+]?\d+,\d+(?![\d,.])", self.text)
            return "a comma: decimals or thousands?" if comma else "the digits are not one number"
        self.unit, self.value = start[1], Quantity.read(printed)
        if self.value is None:
            return "the number is too large"
        while position < len(self.text):
            match = _AT.match(self.text, position)
            if match is None:
                return f"'{self.text[position : position + 30]}' after the number is not known"
            if problem := self._read_part(match):
                return problem
            position = match.end()
        return ""

    def _read_part(self, match: re.Match[str]) -> str:
        deviation = match["std"] or match["in_std"] or match["named_std"]
        unit = match["unit"] or match["unit_in"]
        remark = match["interval"] or match["difference"] or match["marks"]
        if deviation:
            return self._set_std(Quantity.read(deviation))
        if unit:
            if self.unit and self.unit != unit:
                return f"it has two units, '{self.unit}' and '{unit}'"
            self.unit = unit
        elif match["count"]:
            self.count = int(match["count"])
        elif match["bracket"]:
            return self._read_bracket(match["bracketed"] or match["lowered"], match["bracket"])
        elif remark:
            self.notes.append(remark.strip())
        return ""

    def _read_bracket(self, number: str, shown: str) -> str:
        """A number in parentheses. Signed, it is a difference, which is never looked at here."""
        if self.parentheses is None:
            self.undecided = f"'{shown}' after the number: a deviation or a count?"
            return ""
        if self.parentheses == "count":
            if not number.replace(",", "").isdecimal():
                return f"'{shown}' is not a whole number, as a count must be"
            self.count = int(number.replace(",", ""))
            return ""
        assert self.value is not None  # noqa: S101 (for the type checker)
        decimals = self.value.decimals
        if number.isdecimal() and decimals > 0:  # 3.41(69) counts in the last digits
            padded = number.rjust(decimals + 1, "0")
            number = f"{padded[:-decimals]}.{padded[-decimals:]}"
        return self._set_std(Quantity.read(number))

    def _set_std(self, std: Quantity | None) -> str:
        if self.std is not None or std is None or std.value < 0:
            return "it has two deviations" if self.std is not None else "its deviation is not a number"
        self.std = std
        return ""


Better = Literal["lower", "higher"]
_METRICS = {  # by the name that the program uses
    "accuracy": "acc, accuracy, top-1, top-1 accuracy, test accuracy, acc@1",
    "auc_roc": "auc, auroc, roc auc, auc roc, area under the roc curve, area under the curve",
    "logloss": "log loss, cross entropy, ce loss, binary cross entropy",
    "rmse": "rmse, root mean squared error, root mean square error",
    "mae": "mae, mean absolute error",
    "r2": "r2, r^2, r², r squared, coefficient of determination",
    "f1": "f1, f1 score, f score, f measure",
    "macro_f1": "macro f1, f1 macro",
    "perplexity": "perplexity, ppl",
    "average_precision": "average precision, auprc, pr auc, auc pr",
    "matthews": "mcc, matthews",
    "balanced_accuracy": "balanced accuracy, balanced acc",
}
_OTHERS = """
    mse, nll, precision, recall, specificity, sensitivity, ndcg, mrr, crps, ece, brier, bleu, rouge, rouge-1, rouge-2,
    rouge-l, em, exact match, wer, cer, iou, miou, psnr, ssim, fid, kappa, rmsle, mape, smape, wape, bpc, bpb, bpd,
    hit@1, hit@10, recall@10, ndcg@5, ndcg@10, map
"""
# Words that any caption may have: metrics only where they are the whole of a label.
_GENERIC = """
    time, train time, training time, fit time, inference time, test time, prediction time, runtime, run time, wall time,
    speed, speedup, throughput, latency, memory, peak memory, ram, params, parameters, num params, # params, #params,
    flops, macs, size, number of parameters, model size, rank, avg rank, average rank, mean rank, error, err,
    error rate, test error, loss, test loss, val loss, score, cost, tokens/sec, tokens/s, samples/s, epochs, steps,
    iterations, trees, depth, leaves, value, mean, win rate, wins, p-value, std
"""
_MODELS = re.compile(
    r"""boost|gbm|gbdt|gbrt|forest|\bmlp|resnet|former\b|former[-\s+]|transformer|tabnet|tabpfn|\bnode\b|\bsvm|\bsvr|\bknn|k-nn
    |regress|\btree|\bnn\b|\bcnn|\brnn|lstm|\bgru\b|\bvit\b|bert|\bgpt|llama|mamba|\bmodel|\bours\b|baseline|bayes|\bridge\b|lasso
    |linear|logistic|\bada|autoint|\bdcn|\bsnn\b|grownet|\bft-t|\bsaint\b|automl|autogluon|sklearn|scikit|\bh2o\b|ensemble|titans
    |\bgan\b|diffusion|retnet|rwkv|net\b|\bdt\b|\brf\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DATASETS = re.compile(
    r"""adult|california|\bhiggs|covertype|covtype|epsilon|\byear|yahoo|microsoft|mslr|helena|jannis|\baloi|amazon|\bappet|\bclick\b
    |internet|\bkdd|kick\b|upsel|airline|boston|wine|iris|diabetes|breast|titanic|churn|bank|credit|mnist|cifar|imagenet|\bimdb|sst
    |wikitext|pg-?19|\bc4\b|squad|glue|\bmnli|\bqnli|\bcola\b|lambada|hellaswag|piqa|\bmmlu|gsm8k|\bcoco\b|\buci\b|data\s?set|passkey
    |needle|synthetic|openml|susy|bosch|allstate""",
    re.IGNORECASE | re.VERBOSE,
)
_WORDS: dict[Role, str] = {
    "models": r"models?|methods?|algorithms?|librar(y|ies)|approach(es)?|systems?|classifiers?|learners?|estimators?",
    "datasets": r"data\s?-?sets?|data|tasks?|benchmarks?|corpus|corpora|problems?|domains?|scenes?",
    "metrics": r"metrics?|measures?|criteri(on|a)",
}
_QUALIFIERS = """
    train training test testing val valid validation dev cv mean avg average median best worst final total peak max min
"""
_ARROWS: dict[str, Better] = {"↑": "higher", "⇑": "higher", "▲": "higher", "↓": "lower", "⇓": "lower", "▼": "lower"}
_ARROW = re.compile(rf"\(?\s*([{''.join(_ARROWS)}])\s*\)?")
_BETTER = re.compile(
    r"\(?\s*(?:the )?(lower|smaller|less|higher|larger|more)(?: values?)?(?: is| are|=|,)?(?: the)? better\s*\)?",
    re.IGNORECASE,
)
_UNIT_IN_LABEL = re.compile(
    rf"\s*(?:[\[(]\s*(?:in )?({UNIT}|million|billion|thousand)\s*[\])]|\bin ({UNIT})$|(?<=\S)\s*(%)$|/\s?({UNIT})$)"
)
_DEVIATION = r"std\.?|stdev|s\.\s?d\.|sd|standard[ -]deviations?|deviations?|σ"
_NOT_DEVIATION = r"standard[ -]errors?|s\.e\.m\.?|\bsem\b|confidence intervals?|\bci\b|interquartile"
_COUNT = r"counts?|number of [a-z ]{3,30}|no\. of [a-z ]{3,30}|trees|iterations|rounds|wins|ranks?|n\b"
_BRACKETS = r"parenthes[ie]s|brackets|parens"


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    direction: Better | None = None
    unit: str = ""


@cache
def _known() -> dict[str, str]:
    """Metrics by their squeezed spelling; those that the program computes get its own name."""
    found = {_squeeze(name): name for name in (*_split(_OTHERS), *_split(_GENERIC))}
    found |= {_squeeze(name): info.name for info in METRICS.values() for name in (info.name, *info.aliases)}
    return found | {_squeeze(name): canonical for canonical, names in _METRICS.items() for name in _split(names)}


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _squeeze(name: str) -> str:
    return re.sub(r"[\s_.\-{}]+", "", name.lower())


@lru_cache(maxsize=20_000)
def read_label(text: str) -> Label:
    """The name without arrows, units in brackets and remarks on what is better."""
    spelled = spell(text)
    name = _BETTER.sub(" ", _ARROW.sub(" ", spelled))
    match = _UNIT_IN_LABEL.search(name)
    unit = ""
    if match and (shorter := _UNIT_IN_LABEL.sub("", name, count=1).strip()):
        name, unit = shorter, next(group for group in match.groups() if group)
    name = re.sub(r"([_^])\{([^{}]*)\}", r"\1\2", name).strip(" ,;")
    return Label(" ".join(name.split()), find_direction(spelled), unit)


def find_direction(text: str) -> Better | None:
    """Which way is better, if the text says it and does not contradict itself."""
    said = {_ARROWS[mark] for mark in re.findall(f"[{''.join(_ARROWS)}]", text)}
    for word in _BETTER.findall(text):
        said.add("lower" if word.lower() in {"lower", "smaller", "less"} else "higher")
    return said.pop() if len(said) == 1 else None


@lru_cache(maxsize=20_000)
def find_metric(name: str) -> str | None:
    """The name under which a metric is known here. One of the training rows, say, keeps its printed name."""
    base = re.sub(rf"\(\s*(?:{_DEVIATION})\s*\)", "", name, flags=re.IGNORECASE).strip()
    part, _, metric = base.partition(" ")
    known = _known().get(_squeeze(base))
    if known is None and part.lower().rstrip(".") in _QUALIFIERS.split() and _squeeze(metric) in _known():
        return _known()[_squeeze(metric)] if part.lower() in {"test", "testing"} else base
    return known


def is_metric(text: str) -> bool:
    """Whether a label names a metric, or several: `AUC/ACC`."""
    name = read_label(text).name
    return find_metric(name) is not None or all(find_metric(part) for part in name.split("/"))


def split_metric(name: str) -> tuple[str, str] | None:
    """The data set and the metric of a label that has both: `Adult (Acc)`, `California RMSE`."""
    match = re.fullmatch(r"(.+?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]", name) or re.fullmatch(r"(.+?)[\s/:,-]+(\S+)", name)
    metric = find_metric(match[2]) if match else None
    if match is None or metric is None or find_metric(match[1]) or find_metric(name):
        return None
    return match[1].strip(), metric


def is_model(name: str) -> bool:
    return _MODELS.search(name) is not None


def is_dataset(name: str) -> bool:
    return _DATASETS.search(name) is not None


def find_role(name: str) -> Role | None:
    """What a column is said to hold by its header; nothing where it says two of them."""
    said = [role for role, words in _WORDS.items() if re.search(rf"\b(?:{words})\b", name, re.IGNORECASE)]
    return said[0] if len(said) == 1 else None


def find_metrics(text: str) -> list[str]:
    """The metrics that a caption names, each once. Words that any caption may have are not among them."""
    words = re.findall(r"[A-Za-z][\w^²@-]*", text)
    generic = {_squeeze(name) for name in (*_split(_GENERIC), "map", "em", "precision", "recall")}
    runs = ("".join(words[i : i + size]) for size in (5, 4, 3, 2, 1) for i in range(len(words) - size + 1))
    names = (name for run in runs if (name := _squeeze(run)) in _known() and name not in generic)
    return list(dict.fromkeys(_known()[name] for name in names))


def find_arrows(text: str) -> dict[Better, str]:
    """The metric that each arrow stands for, where a caption says so: `↓ ~ RMSE, ↑ ~ accuracy`."""
    found: dict[Better, str] = {}
    for arrow, name in re.findall(
        rf"([{''.join(_ARROWS)}])\s*[~≃≈=:∼-]+\s*([A-Za-z][\w ^²-]{{0,30}}?)\s*(?=[,.;)]|and\b|$)", text
    ):
        if metric := find_metric(name):
            found[_ARROWS[arrow]] = metric
    return found


def find_parentheses(text: str) -> Parentheses | None:
    """What a caption or a header says that numbers in parentheses are."""
    lowered = text.lower()

    def said(words: str) -> bool:
        between = r"\b[^.;]{0,60}?\b"
        before, after = rf"\b(?:{words}){between}(?:{_BRACKETS})", rf"(?:{_BRACKETS}){between}(?:{words})"
        near = rf"{before}|{after}|\(\s*±?\s*(?:{words})\s*\)"
        return re.search(near, lowered) is not None

    std, count = said(_DEVIATION), said(_COUNT)
    return None if std == count or said(_NOT_DEVIATION) else "std" if std else "count"


def is_not_deviation(text: str) -> bool:
    """Whether a caption says that what follows ± is something else than a standard deviation."""
    something_else = re.search(_NOT_DEVIATION, text, re.IGNORECASE)
    return something_else is not None and re.search(rf"\b(?:{_DEVIATION})\b", text, re.IGNORECASE) is None


def find_std_over(text: str) -> StdOver | None:
    """What deviations are over, if the caption says it of one thing only."""
    words: dict[str, StdOver] = {"seed": "seeds", "split": "splits", "fold": "folds"}
    near = re.findall(r"\b(?:over|across|from|of|with)\s+(?:[\w-]+\s+){0,3}?(seed|split|fold)s?\b", text.lower())
    said = {words[word] for word in near}
    if re.search(r"-fold\b", text.lower()):
        said.add("folds")
    return said.pop() if len(said) == 1 else None
