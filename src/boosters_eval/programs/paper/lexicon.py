"""Names that tables of results use: which are metrics, models or data sets, and what a label says beside its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from boosters_eval.metrics.catalog import METRICS
from boosters_eval.programs.paper.values import UNIT, spell

if TYPE_CHECKING:
    from boosters_eval.programs.paper.request import Parentheses, Role
    from boosters_eval.programs.paper.specification import StdOver

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
