"""What the labels of a printed table say: metrics, models, data sets, conditions, directions and units."""

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
    "accuracy": "acc, accuracy, top-1, top1, top-1 acc, top-1 accuracy, acc top1, test accuracy, acc@1",
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
    mse, mean squared error, nll, negative log likelihood, precision, prec, recall, specificity, sensitivity, ndcg, mrr,
    crps, ece, brier, bleu, rouge, em, exact match, wer, word error rate, cer, iou, miou, mean iou, dice, psnr, ssim,
    lpips, fid, kappa, rmsle, mape, smape, wape, mase, bpc, bpb, bpd, hit, hits, hit rate, hr, pass, map, ap, ar, mota,
    qps, fps, top-5, top5, top-5 acc, acc top5, top-5 accuracy, spearman, pearson, silhouette, win rate, bertscore,
    meteor, cider, chrf, comet, mcc, gini, ks, regret, elo, error rate
"""
# What a thing costs, and words that any caption may have: metrics only where they are in a label.
_COSTS = """
    time, duration, runtime, run time, wall time, elapsed, speed, speedup, speed-up, throughput, latency, memory, ram,
    vram, rss, flops, macs, madds, cost, error, err, loss, score, params, parameters, param,
    number of parameters, # params, #params, # parameters, tokens/sec, tokens/s, tok/s, rows/s, queries/s, second,
    samples/s, images/s, img/s, iterations/s,
    rank, ops, operations, ops/sec, wins, p-value, disk size, model size, file size,
    std, energy, power, carbon, memory usage, memory consumption, time cost
"""
# What says how a metric was taken, not which one it is.
_QUALIFIERS = """
    train training fit fitting test testing val valid validation dev cv mean avg avg. average median best worst final
    total peak max min wall clock wall-clock cpu gpu infer inference inferring predict prediction predicting decode
    decoding prefill eval evaluation build indexing index query search load loading zero-shot zero few-shot shot micro
    macro weighted overall median usage used consumption per tree epoch iteration step machine of the in box mask pose
    seg model file disk relative normalized norm
"""
_NEUTRAL = frozenset({"test", "testing", "the", "of", "in"})
_CONDITIONS = {
    "batchsize": "batch_size",
    "contextlength": "sequence_length",
    "sequencelength": "sequence_length",
    "seqlen": "sequence_length",
}
_CONDITION_NAMES = """
    batch size, bs, batch, context length, sequence length, seq len, context, prefill length, decode length, max length,
    learning rate, learning_rate, lr, eta, depth, max depth, max_depth, max_bin, bins, n_bins, border_count, leaves,
    num leaves, num_leaves, max_leaves, n_estimators, estimators, num_trees, trees, #trees, rounds, num_round,
    num_rounds,
    n_iterations, iterations, epochs, #epochs, steps, seed, seeds, folds, runs, budget, beam, beam size, beams, dropout,
    weight decay, weight_decay, warmup, temperature, top_k, top_p, k, alpha, lambda, gamma, l2, l2_leaf_reg, reg_lambda,
    reg_alpha, subsample, colsample, colsample_bytree, min_child_weight, min_data_in_leaf, min_samples_leaf,
    bagging_temperature, random_strength, rsm, size, layers, #layers, n_layers, num layers, heads, #heads, hidden
    size, hidden,
    width, dim, dims, dimension, dimensions, embedding size, embedding dim, img size, image size, input size,
    resolution,
    crop, image scaling, patch size, input, size (pixels), pixels, # of samples seen, samples seen, samples, #samples,
    # samples, rows, #rows, n, #train, #test, #train_set, #data, #feature, #features, features, # features, classes,
    #classes, # classes, instances, #machine, machines, #machines, #gpus, gpus, #cpus, threads, #threads, cores,
    workers,
    nodes, precision bits, bits, #bits, wbits, group size, version, year, release, date, quantization, dtype, rank #, #,
    no., position, shots, n-shot, tokens, training tokens, # tokens, num_threads, best iteration, best_iteration,
    vocab size, vocabulary size, number of rows, number of features, number of trees, number of samples,
    number of classes, number of epochs, number of layers, number of iterations, number of threads, max_tokens, stride,
    best tree count, tree count, count, support
"""
_MODELS = re.compile(
    r"""boost|gbm|gbdt|gbrt|forest|\bmlp|resnet|former\b|former[-\s+]|transformer|tabnet|tabpfn|\bnode\b|\bsvm|\bsvr|\bknn|k-nn
    |regress|\btree|\bnn\b|\bcnn|\brnn|lstm|\bgru\b|\bvit\b|bert|\bgpt|llama|mamba|mistral|qwen|\bmodel|\bours\b|baseline|bayes
    |\bridge\b|lasso|linear|logistic|\bada|autoint|\bdcn|\bsnn\b|grownet|\bft-t|\bsaint\b|automl|autogluon|sklearn|scikit|\bh2o\b
    |ensemble|titans|\bgan\b|diffusion|retnet|rwkv|net\b|\bdt\b|\brf\b|bm25|elastic|perpetual|whisper|yolo|efficientnet""",
    re.IGNORECASE | re.VERBOSE,
)
_DATASETS = re.compile(
    r"""\badult|california|\bhiggs|covertype|covtype|\bepsilon|\byear|yahoo|microsoft|mslr|helena|jannis|\baloi|amazon|\bappet
    |\bclick\b|internet|\bkdd|kick\b|upsel|airline|boston|\bwine|\biris\b|diabetes|breast|titanic|churn|\bbank|credit|mnist|cifar
    |imagenet|\bimdb|\bsst|wikitext|\bpg-?19|\bc4\b|squad|\bglue|\bmnli|\bqnli|\bqqp|\bmrpc|\bcola\b|lambada|hellaswag|piqa|\bmmlu
    |gsm8k|\bcoco\b|\buci\b|data\s?set|passkey|needle|synthetic|openml|\bsusy\b|bosch|allstate|criteo|msmarco|ms\s?marco|hotpotqa
    |\bfever|\bnfcorpus|\bfiqa|\bbeir\b|\bmteb\b|movielens|netflix|cityscapes|\bade20k|pascal|\bvoc\b|kitti|\bnyu\b|dota\w*|librispeech
    |common\s?voice|wmt|humaneval|\bmbpp|truthfulqa|\barc-|winogrande|\bboolq|openwebtext|\bthe pile\b|protein|concrete
    |\byacht|power plant|\bnaval|kin8nm|\bmsd\b|\bval2017|\btest-dev|yt commons|pumpkin""",
    re.IGNORECASE | re.VERBOSE,
)
_WORDS: dict[Role, str] = {
    "models": r"models?|methods?|algorithms?|librar(?:y|ies)|approach(?:es)?|systems?|classifiers?|learners?"
    r"|estimators?|variants?|implementations?|detectors?|architectures?|networks?|backbones?|frameworks?|tools?|packages?|engines?",
    "datasets": r"data\s?-?sets?|(?<!training )(?<!train )data|tasks?|benchmarks?|corpus|corpora|problems?|domains?"
    r"|scenes?|lang|languages?",
    "metrics": r"metrics?|measures?|criteri(?:on|a)",
}
_HARDWARE = re.compile(r"\b(?:hardware|gpu|cpu|device|accelerator|machine)s?\b", re.IGNORECASE)
_ARROWS: dict[str, Better] = {"↑": "higher", "⇑": "higher", "▲": "higher", "↓": "lower", "⇓": "lower", "▼": "lower"}
_ARROW = re.compile(rf"\(?\s*([{''.join(_ARROWS)}])\s*\)?")
_BETTER = re.compile(
    r"\(?\s*(?:the )?(lower|smaller|less|higher|larger|more)(?: values?)?(?: is| are|=|,)?(?: the)? better\s*\)?",
    re.IGNORECASE,
)
_UNIT_IN_LABEL = re.compile(
    rf"\s*(?:[\[(]\s*(?:in )?({UNIT}|million|billion|thousand)\s*[\])]|[,\s]\s*in ({UNIT})$|(?<=\S)\s*(%)$"
    rf"|/\s?({UNIT})$|,\s*(seconds|minutes|hours|milliseconds|sec|ms|GB|MB)$)"
)
_REFERENCE = re.compile(r"\[\^?\w{1,3}\]|[†‡§¶]+|\^\{\s*[*†‡§¶]+\s*\}")  # to a footnote
_RATE = re.compile(
    r"(?:^|\s)((?:tokens?|tok|samples?|images?|img|it|rows?|queries|requests)/(?:s|sec|second))$", re.IGNORECASE
)
_DEVIATION = r"std\.?|stdev|s\.\s?d\.|sd|standard[ -]deviations?|deviations?|σ"
_NOT_DEVIATION = r"standard[ -]errors?|s\.e\.m\.?|\bsem\b|confidence intervals?|\bci\b|interquartile"
_COUNT = r"counts?|number of [a-z ]{3,30}|no\. of [a-z ]{3,30}|trees|iterations|rounds|wins|ranks?|n\b"
_BRACKETS = r"parenthes[ie]s|brackets|parens"
_TOKEN = re.compile(r"[A-Za-z@#]+(?:[-/][A-Za-z]+)*\d*(?:@\d+)?|\d[\d.:-]*|\S")


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    direction: Better | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a label is made of: the metric or the condition that it ends or begins with, and the rest."""

    rest: str = ""
    metric: str = ""
    condition: str = ""

    @property
    def kind(self) -> str:
        return self.metric or self.condition


@cache
def _known() -> dict[str, str]:
    """Metrics by their squeezed spelling; those that the program computes get its own name."""
    found = {_squeeze(name): name for name in _split(_OTHERS)}
    found |= {_squeeze(name): info.name for info in METRICS.values() for name in (info.name, *info.aliases)}
    return found | {_squeeze(name): canonical for canonical, names in _METRICS.items() for name in _split(names)}


@cache
def _costs() -> frozenset[str]:
    return frozenset(map(_squeeze, _split(_COSTS)))


@cache
def _conditions() -> dict[str, str]:
    return {_squeeze(name): name for name in _split(_CONDITION_NAMES)} | _CONDITIONS


def _split(names: str) -> list[str]:
    return [" ".join(name.split()) for name in names.split(",") if name.strip()]


def _squeeze(name: str) -> str:
    return re.sub(r"[\s_.\-{}^]+", "", name.lower())


@lru_cache(maxsize=20_000)
def read_label(text: str) -> Label:
    """The name without arrows, units in brackets and remarks on what is better."""
    spelled = spell(text)
    name = _BETTER.sub(" ", _ARROW.sub(" ", spelled))
    name = re.sub(r"[_^]\{\s*([^{}]*[\s()][^{}]*?)\s*\}", r" \1", _REFERENCE.sub("", name)).strip()
    match = None if _RATE.search(name) else _UNIT_IN_LABEL.search(name)
    unit = ""
    if match and (shorter := _UNIT_IN_LABEL.sub("", name, count=1).strip()):
        name, unit = shorter, next(group for group in match.groups() if group)
    elif rate := _RATE.search(name):
        unit = rate[1]
    name = re.sub(r"([_^])\{([^{}]*)\}", r"\1\2", name).strip(" ,;:")
    return Label(" ".join(name.split()), find_direction(spelled), unit)


def find_direction(text: str) -> Better | None:
    """Which way is better, if the text says it and does not contradict itself."""
    said = {_ARROWS[mark] for mark in re.findall(f"[{''.join(_ARROWS)}]", text)}
    for word in _BETTER.findall(text):
        said.add("lower" if word.lower() in {"lower", "smaller", "less"} else "higher")
    return said.pop() if len(said) == 1 else None


@lru_cache(maxsize=20_000)
def find_metric(name: str) -> str | None:
    """The name under which a metric is known here. One that is qualified, of the training rows say, keeps its own."""
    base = re.sub(rf"\(\s*(?:{_DEVIATION})\s*\)", "", name, flags=re.IGNORECASE).strip()
    squeezed = _squeeze(base)
    if squeezed in _known():
        return _known()[squeezed]
    if squeezed in _costs():
        return base.lower()
    words = [word for word in _TOKEN.findall(base.replace("^", " ").replace("_", " ")) if word not in "()[]{},:"]
    lowered = [word.lower() for word in words]
    left = [
        i for i, word in enumerate(lowered) if word not in _qualifiers() and not re.fullmatch(r"[@\d][\d@.:-]*|k", word)
    ]
    if not left or left != list(range(left[0], left[-1] + 1)):
        parts = {_squeeze(lowered[i]) for i in left}
        return base if parts and parts <= _costs() else None
    noun = _squeeze("".join(lowered[left[0] : left[-1] + 1]))
    single = re.sub(r"@?\d+$", "", noun)
    if noun in _known() or single in _known():
        others = {word for i, word in enumerate(lowered) if i not in left}
        return _known()[noun] if noun in _known() and others <= _NEUTRAL else base
    return base if noun in _costs() or all(_squeeze(lowered[i]) in _costs() for i in left) else None


@cache
def _qualifiers() -> frozenset[str]:
    return frozenset(_QUALIFIERS.split())


def is_cost(metric: str) -> bool:
    """Whether a metric is what a model costs, or a number of it, and not how good it is."""
    squeezed = _squeeze(metric)
    return squeezed in _costs() or (
        find_metric(metric) is not None and any(squeezed.endswith(each) for each in _costs())
    )


@lru_cache(maxsize=20_000)
def find_condition(name: str) -> str | None:
    """The name of a hyper-parameter, a count or a size that a result depends on."""
    bare = re.sub(r"\s*\((?:px|pixels|M|K|B)\)$", "", name)
    return _conditions().get(_squeeze(bare)) and (_CONDITIONS.get(_squeeze(bare)) or name)


@lru_cache(maxsize=20_000)
def split_label(name: str) -> Parts:
    """The metric or the condition of a label, and what else it names: `Adult (Acc)`, `XGBoost RMSE`, `mAP (COCO)`."""
    if condition := find_condition(name):
        return Parts(condition=condition)
    if metric := find_metric(name):
        return Parts(metric=metric)
    for pattern, rest, kind in (
        (r"(.+?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]", 1, 2),
        (r"(.+?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]", 2, 1),  # only of a known data set or model
        (r"(.+?)\s+(?:on|of|for)\s+(.+)", 2, 1),
        (r"(.+?)\s*\^(\S+)", 2, 1),
    ):
        match = re.fullmatch(pattern, name)
        if match and (found := _name_kind(match[kind])).kind:
            if kind == 1 and not (is_dataset(match[2]) or is_model(match[2])):
                return Parts(metric=name)
            return Parts(match[rest].strip(), found.metric, found.condition)
    return _split_words(name)


def _split_words(name: str) -> Parts:
    """The longest metric or condition at the end of a label, or the longest metric at its beginning."""
    places = [match for match in re.finditer(r"[\s/:,_-]+", name) if match.start()]
    for place in places:
        found = _name_kind(name[place.end() :])
        if found.kind:
            return Parts(name[: place.start()].strip(" -:/,"), found.metric, found.condition)
    for place in reversed([place for place in places if place[0].isspace()]):
        metric = find_metric(name[: place.start()])
        if metric:
            rest = name[place.end() :].strip(" -:/,")
            return Parts(metric=name) if is_cost(metric) and not is_dataset(rest) else Parts(rest, metric)
    return Parts(rest=name)


def _name_kind(text: str) -> Parts:
    condition = find_condition(text) if len(_squeeze(text)) > 2 else ""
    return Parts(condition=condition) if condition else Parts(metric=find_metric(text) or "")


def split_alternatives(name: str) -> tuple[str, ...]:
    """The parts of a label that names several things in the way that its cells have them: `P / R / F1`, `CPU (GPU)`."""
    parts = [part.strip() for part in re.split(r"\s*(?:/|\||;)\s*|,\s+|\s+&\s+|\s+and\s+", name) if part.strip()]
    if len(parts) > 1:
        return tuple(parts)
    match = re.fullmatch(r"(.+?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]", name)
    return (match[1], match[2]) if match else (name,)


def is_metric(text: str) -> bool:
    """Whether a label names a metric, or several: `AUC/ACC`."""
    name = read_label(text).name
    return find_metric(name) is not None or all(find_metric(part) for part in split_alternatives(name))


def is_model(name: str) -> bool:
    return _MODELS.search(name) is not None


def is_dataset(name: str) -> bool:
    return _DATASETS.search(name) is not None


def is_hardware(name: str) -> bool:
    return _HARDWARE.search(name) is not None


def find_role(name: str) -> Role | None:
    """What a column is said to hold by its header; nothing where it says two of them."""
    said = [role for role, words in _WORDS.items() if re.search(rf"\b(?:{words})\b", name, re.IGNORECASE)]
    return said[0] if len(said) == 1 else None


def find_metrics(text: str) -> list[str]:
    """The metrics that a caption names, each once. Words that any caption may have are not among them."""
    words = re.findall(r"[A-Za-z][\w^²@-]*", text)
    generic = {
        _squeeze(name)
        for name in ("map", "em", "precision", "recall", "hit", "hits", "pass", "ar", "hr", "ap", "ks", "gini")
    }
    names = []
    position = 0
    while position < len(words):
        for size in (5, 4, 3, 2, 1):
            run = words[position : position + size]
            name = _squeeze("".join(run))
            if len(run) == size and name in _known() and (name not in generic or (size == 1 and run[0][0].isupper())):
                names.append(_known()[name])
                position += size - 1
                break
        position += 1
    return list(dict.fromkeys(names))


_KINDS = {
    "time": (
        r"time|times|speed|duration|runtime|latency|seconds|minutes|hours",
        r"(?:s|ms|min|h|sec|m|us|µs|ns|seconds?|minutes?|hours?)",
    ),
    "memory": (r"memory|ram|vram|rss", r"[KMGT]i?B"),
    "throughput": (r"throughput|queries per second|qps|tokens per second", r"(?:qps|\w+/s(?:ec)?)?"),
}


def find_cost(text: str, unit: str) -> str | None:
    """The cost that a text speaks of, if it is one only and the unit of the values does not contradict it."""
    said = [
        name
        for name, (words, units) in _KINDS.items()
        if re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) and (not unit or re.fullmatch(units, unit))
    ]
    return said[0] if len(said) == 1 else None


def find_unit(text: str) -> str:
    """The unit that a text above a table states for its values: "CPU time per iteration, seconds"."""
    said = set(
        re.findall(r"(?:,|\bin|\()\s*(seconds|milliseconds|minutes|hours|ms|GB|MB|percent|%)\b", text, re.IGNORECASE)
    )
    return _UNITS.get(unit := said.pop().lower(), unit) if len(said) == 1 else ""


_UNITS = {"seconds": "s", "milliseconds": "ms", "minutes": "min", "hours": "h", "gb": "GB", "mb": "MB", "percent": "%"}


_PLACED = re.compile(
    r"\b(?:the|on|of|for|using|used)\s+((?:[A-Z][\w.+-]*)(?:\s+(?:[A-Z][\w.+-]*|\d[\w.+-]*)){0,3})\s+"
    r"(?:data\s?sets?|benchmarks?|corpus|test set|val images|validation set)\b"
)


def find_datasets(text: str) -> list[str]:
    """The data sets that a text names: what it calls one, or names that are known."""
    found = [re.sub(r"^(?:The|We|For|In|On)\s+", "", name) for name in _PLACED.findall(text)]
    if not found:
        for match in _DATASETS.finditer(text):
            start = (
                max(
                    text.rfind(" ", 0, match.start()),
                    text.rfind("(", 0, match.start()),
                    text.rfind("/", 0, match.start()),
                )
                + 1
            )
            end = re.compile(r"[\s),;:./]|$").search(text, match.end())
            name = text[start : end.start() if end else len(text)]
            if name[:1].isupper() or any(char.isdigit() for char in name):
                found.append(name)
    return list(dict.fromkeys(found))


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
