"""The evaluators that a specification may bind a row to: perplexity, passkey, needle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BeforeValidator

from boosters_eval.core.errors import ConfigError, MissingLibraryError, RunError, UnknownNameError
from boosters_eval.core.files import read_text
from boosters_eval.core.model import Model
from boosters_eval.programs.paper.lm import (
    EVALUATORS,
    SEPARATOR,
    TextSource,
    check_source,
    find_missing,
    find_texts,
    locate,
    prepare_hub,
    retrieval,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from boosters_eval.programs.paper.lm.models import LanguageModel
    from boosters_eval.programs.paper.specification import PaperDataset

_GENERATED = ("passkey-retrieval", "needle-in-haystack")
TextUnit = Literal["token", "word", "byte"]


def _several(given: Any) -> Any:
    """One number is a list of one."""
    return (given,) if isinstance(given, (int, float)) else given


_Lengths = Annotated[tuple[Annotated[int, Gt(0)], ...], MinLen(1), BeforeValidator(_several)]
_Depths = Annotated[tuple[Annotated[float, Ge(0), Le(100)], ...], MinLen(1), BeforeValidator(_several)]


class ModelArguments(Model):
    """How a language model is run, as a specification says it under `arguments`."""

    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    device: str = "auto"  # cuda where there is one, else cpu
    extrapolate: bool = False  # go beyond the number of positions that the model declares


class PerplexityArguments(ModelArguments):
    """How the text is cut into windows, and what `perplexity` is per."""

    context_length: Annotated[int, Ge(2)] | None = None  # tokens that the model sees at once; None: all it can
    stride: Annotated[int, Ge(1)] | None = None  # new tokens per window; None: windows do not overlap
    batch_size: Annotated[int, Ge(1)] = 1  # windows at a time; the result does not depend on it
    unit: TextUnit = "token"
    joined: bool | None = None  # all documents as one text; None: as is usual for the data set
    max_documents: Annotated[int, Ge(1)] | None = None


class RetrievalArguments(ModelArguments):
    """How long the prompts are, where the answer is hidden, and how often."""

    lengths: _Lengths = (4096,)  # with the room for the answer
    depths: _Depths | None = None  # in percent of the filler; None: at random
    trials: Annotated[int, Ge(1)] = 10  # per length and depth
    tokenizer: str | None = None  # what lengths are counted by: a name, a folder, or "characters"; None: the model's
    max_new_tokens: Annotated[int, Ge(1)] | None = None  # None: 10 for a pass key, 128 for a needle


def evaluate(
    name: str,
    model: str,
    dataset: PaperDataset,
    arguments: Mapping[str, Any],
    seed: int,
    *,
    root: Path | None = None,
    allow_pickle: bool = False,
) -> dict[str, float]:
    """The metrics of a language model. The prompts depend on the seed; a perplexity is the same for all.

    With a `root`, the texts and tokenizers that a specification names are relative to it, and within it.
    """
    checked = check(name, dataset, arguments, root)
    local = check_source(model, allow_pickle=allow_pickle) is not None
    if reason := find_missing(name, model, dataset, root=root, allow_pickle=allow_pickle):
        raise MissingLibraryError(reason)
    if not local or _needs_hub(checked, dataset, root):
        prepare_hub()
    from boosters_eval.programs.paper.lm.models import load  # noqa: PLC0415 (imports torch)

    loaded = load(model, checked, allow_pickle=allow_pickle)
    if isinstance(checked, PerplexityArguments):
        return measure_perplexity(loaded, find_texts(dataset, root), checked)
    return retrieve(name, loaded, checked, seed, filler=_read_filler(name, dataset, root))


def check(
    name: str, dataset: PaperDataset, arguments: Mapping[str, Any], root: Path | None = None
) -> PerplexityArguments | RetrievalArguments:
    """The arguments of an evaluator, or a sentence about what is wrong with them. Nothing large is imported."""
    if name not in EVALUATORS:
        raise UnknownNameError("evaluator", name, EVALUATORS)
    if name != "perplexity":
        _read_filler(name, dataset, root)
        wanted = RetrievalArguments.model_validate(dict(arguments))
        folder = wanted.tokenizer and locate(wanted.tokenizer, root)
        return wanted.replace(tokenizer=str(folder)) if folder and folder.exists() else wanted
    checked = PerplexityArguments.model_validate(dict(arguments))
    source = find_texts(dataset, root)
    if source.hub and source.hub.streaming and checked.max_documents is None:
        raise ConfigError(f"The data set '{source.name}' is endless here: say how much of it with 'max_documents'.")
    return checked


def _needs_hub(checked: PerplexityArguments | RetrievalArguments, dataset: PaperDataset, root: Path | None) -> bool:
    if isinstance(checked, PerplexityArguments):
        return find_texts(dataset, root).hub is not None
    named = checked.tokenizer
    return named not in {None, "characters"} and check_source(str(named), weights=False) is None


def _read_filler(name: str, dataset: PaperDataset, root: Path | None) -> str:
    """The text that a number is hidden in: the usual sentences, or, for a needle, a file of the user's."""
    if dataset.use in {None, *_GENERATED}:
        return retrieval.FILLER
    if name == "passkey":
        raise ConfigError(
            f"The data set of a pass key is generated: 'use' must be {_GENERATED[0]}. Got '{dataset.use}'."
        )
    text = read_text(locate(str(dataset.use), root)).strip()
    if not text:
        raise ConfigError(f"The haystack {dataset.use} is empty.")
    return text


def measure_perplexity(model: LanguageModel, source: TextSource, arguments: PerplexityArguments) -> dict[str, float]:
    """How surprised the model is by the texts. Every token is scored once; each document begins with the same token."""
    context = arguments.context_length or model.positions
    if context is None:
        raise ConfigError("The 'context_length' is required: the model does not say how much it can see.")
    model.check_length("context_length", context)
    documents = source.documents(arguments.max_documents)
    usual = source.hub is not None and source.hub.joined
    if usual if arguments.joined is None else arguments.joined:
        documents = iter([SEPARATOR.join(documents)])
    sizes = {"tokens": 0, "words": 0, "bytes": 0, "documents": 0}

    def windows() -> Iterator[TokenWindow]:
        for text in documents:
            tokens = model.encode(text)
            sizes["tokens"] += len(tokens)
            sizes["words"] += len(text.split())
            sizes["bytes"] += len(text.encode())
            sizes["documents"] += 1
            yield from cut_windows(tokens, model.prefix, context, arguments.stride or context)

    nats = model.nats(windows(), arguments.batch_size)
    return compute_perplexities(nats, sizes, arguments.unit)


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """What the model is given, and the tokens that come next; only the last `scored` of them count."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    scored: int


def cut_windows(tokens: Sequence[int], prefix: int, context_length: int, stride: int) -> Iterator[TokenWindow]:
    """Windows over a document that begins with a token which is given and not scored.

    The first window scores as many tokens as fit, each further one the next `stride`, all with as much context as fits.
    """
    if stride > context_length:
        raise ConfigError(f"The 'stride' must be at most the context length {context_length}. Got {stride} instead.")
    line = (prefix, *tokens)
    done = 0
    while done < len(tokens):
        end = min(done + (stride if done else context_length), len(tokens))
        start = max(0, end - context_length)
        yield TokenWindow(line[start:end], line[start + 1 : end + 1], end - done)
        done = end


def compute_perplexities(nats: float, sizes: Mapping[str, int], unit: TextUnit) -> dict[str, float]:
    """The metrics of a negative log-likelihood: `perplexity` is per the unit asked for.

    The others are always there, unless they overflow.
    """
    if not sizes["tokens"]:
        raise RunError("The data set has no text to score.")
    if not math.isfinite(nats):
        raise RunError("The model gives the text no finite probability.")
    values = {}
    for name in ("token", "word", "byte"):
        try:
            values[f"{name}_perplexity"] = math.exp(nats / sizes[f"{name}s"])
        except (OverflowError, ZeroDivisionError):
            continue
    if f"{unit}_perplexity" not in values:
        raise RunError(f"The perplexity per {unit} is too large for a number: {nats:.6g} nats.")
    return {
        "perplexity": values[f"{unit}_perplexity"],
        **values,
        "bits_per_byte": nats / math.log(2) / sizes["bytes"],
        "nats_per_token": nats / sizes["tokens"],
        **{name: float(size) for name, size in sizes.items()},
    }


def retrieve(
    kind: str, model: LanguageModel, arguments: RetrievalArguments, seed: int, *, filler: str = retrieval.FILLER
) -> dict[str, float]:
    """The share of prompts whose answer is right: in all, and for each length and depth that was asked for."""
    room = arguments.max_new_tokens or retrieval.NEW_TOKENS[kind]
    count = _choose_counter(model, arguments.tokenizer)
    hits: dict[str, list[bool]] = {"accuracy": []}
    for length in arguments.lengths:
        size = length if count is len else length - room
        prompts = retrieval.generate(
            kind, size, seed=seed, depths=arguments.depths, trials=arguments.trials, count=count, filler=filler
        )
        for prompt in prompts:
            model.check_length("lengths", model.count(prompt.text) + room)
            right = retrieval.has_answer(kind, model.answer(prompt.text, room), prompt.answer)
            groups = ["accuracy", f"accuracy_{length}"]
            if arguments.depths:
                groups += [f"accuracy_depth_{prompt.depth:g}", f"accuracy_{length}_depth_{prompt.depth:g}"]
            for group in groups:
                hits.setdefault(group, []).append(right)
    return {name: sum(right) / len(right) for name, right in hits.items()} | {"prompts": float(len(hits["accuracy"]))}


def _choose_counter(model: LanguageModel, tokenizer: str | None) -> Callable[[str], int]:
    if tokenizer is None:
        return model.count
    if tokenizer == "characters":
        return len
    from boosters_eval.programs.paper.lm.models import load_tokenizer  # noqa: PLC0415 (imports torch)

    other = load_tokenizer(tokenizer)
    return lambda text: len(other(text, verbose=False)["input_ids"])
