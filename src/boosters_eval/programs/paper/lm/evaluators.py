"""The evaluators that a specification may bind a row to: perplexity, passkey, needle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, MissingLibraryError, UnknownNameError
from boosters_eval.core.files import read_text
from boosters_eval.programs.paper.lm import EVALUATORS, missing, retrieval, texts
from boosters_eval.programs.paper.lm.arguments import PerplexityArguments, RetrievalArguments
from boosters_eval.programs.paper.lm.sources import check_source, placed, prepare_hub
from boosters_eval.programs.paper.lm.windows import TextTotals, cut, perplexities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from boosters_eval.programs.paper.lm.models import LanguageModel
    from boosters_eval.programs.paper.lm.windows import TokenWindow
    from boosters_eval.programs.paper.specification import PaperDataset

_GENERATED = ("passkey-retrieval", "needle-in-haystack")


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
    if reason := missing(name, model, dataset, root=root, allow_pickle=allow_pickle):
        raise MissingLibraryError(reason)
    if not local or _needs_hub(checked, dataset, root):
        prepare_hub()
    from boosters_eval.programs.paper.lm.models import load  # noqa: PLC0415 (imports torch)

    loaded = load(model, checked, allow_pickle=allow_pickle)
    if isinstance(checked, PerplexityArguments):
        return perplexity(loaded, texts.find(dataset, root), checked)
    return retrieve(name, loaded, checked, seed, filler=_filler(name, dataset, root))


def check(
    name: str, dataset: PaperDataset, arguments: Mapping[str, Any], root: Path | None = None
) -> PerplexityArguments | RetrievalArguments:
    """The arguments of an evaluator, or a sentence about what is wrong with them. Nothing large is imported."""
    if name not in EVALUATORS:
        raise UnknownNameError("evaluator", name, EVALUATORS)
    if name != "perplexity":
        _filler(name, dataset, root)
        wanted = RetrievalArguments.model_validate(dict(arguments))
        return wanted.replace(tokenizer=_tokenizer(wanted.tokenizer, root))
    checked = PerplexityArguments.model_validate(dict(arguments))
    source = texts.find(dataset, root)
    if source.hub and source.hub.streaming and checked.max_documents is None:
        raise ConfigError(f"The data set '{source.name}' is endless here: say how much of it with 'max_documents'.")
    return checked


def perplexity(model: LanguageModel, source: texts.TextSource, arguments: PerplexityArguments) -> dict[str, float]:
    """How surprised the model is by the texts. Every token is scored once; each document begins with the same token."""
    context = arguments.context_length or model.positions
    if context is None:
        raise ConfigError("The 'context_length' is required: the model does not say how much it can see.")
    model.check_length("context_length", context)
    documents = source.documents(arguments.max_documents)
    if source.joined if arguments.joined is None else arguments.joined:
        documents = iter([texts.SEPARATOR.join(documents)])
    sizes = {"tokens": 0, "words": 0, "bytes": 0, "documents": 0}

    def windows() -> Iterator[TokenWindow]:
        for text in documents:
            tokens = model.encode(text)
            sizes["tokens"] += len(tokens)
            sizes["words"] += len(text.split())
            sizes["bytes"] += len(text.encode())
            sizes["documents"] += 1
            yield from cut(tokens, model.prefix, context, arguments.stride or context)

    nats = model.nats(windows(), arguments.batch_size)
    return perplexities(TextTotals(nats, **sizes), arguments.unit)


def retrieve(
    kind: str, model: LanguageModel, arguments: RetrievalArguments, seed: int, *, filler: str = retrieval.FILLER
) -> dict[str, float]:
    """The share of prompts whose answer is right: in all, and for each length and depth that was asked for."""
    room = arguments.max_new_tokens or retrieval.NEW_TOKENS[kind]
    count = _counter(model, arguments.tokenizer)
    hits: dict[str, list[bool]] = {"accuracy": []}
    for length in arguments.lengths:
        size = length if count is len else length - room
        prompts = retrieval.generate(
            kind, size, seed=seed, depths=arguments.depths, trials=arguments.trials, count=count, filler=filler
        )
        for prompt in prompts:
            model.check_length("lengths", model.count(prompt.text) + room)
            right = retrieval.found(kind, model.answer(prompt.text, room), prompt.answer)
            for group in ("accuracy", *_groups(length, prompt.depth if arguments.depths else None)):
                hits.setdefault(group, []).append(right)
    return {name: sum(right) / len(right) for name, right in hits.items()} | {"prompts": float(len(hits["accuracy"]))}


def _groups(length: int, depth: float | None) -> tuple[str, ...]:
    if depth is None:
        return (f"accuracy_{length}",)
    return (f"accuracy_{length}", f"accuracy_depth_{depth:g}", f"accuracy_{length}_depth_{depth:g}")


def _counter(model: LanguageModel, tokenizer: str | None) -> Callable[[str], int]:
    if tokenizer is None:
        return model.count
    if tokenizer == "characters":
        return len
    from boosters_eval.programs.paper.lm.models import load_tokenizer  # noqa: PLC0415 (imports torch)

    other = load_tokenizer(tokenizer)
    return lambda text: len(other(text, verbose=False)["input_ids"])


def _needs_hub(checked: PerplexityArguments | RetrievalArguments, dataset: PaperDataset, root: Path | None) -> bool:
    if isinstance(checked, PerplexityArguments):
        return texts.find(dataset, root).hub is not None
    named = checked.tokenizer
    return named not in {None, "characters"} and check_source(str(named), weights=False) is None


def _tokenizer(named: str | None, root: Path | None) -> str | None:
    """Where it is a folder, its path; else as it was."""
    folder = named and placed(named, root)
    return str(folder) if folder and folder.exists() else named


def _filler(name: str, dataset: PaperDataset, root: Path | None) -> str:
    """The text that a number is hidden in: the usual sentences, or, for a needle, a file of the user's."""
    if dataset.use in {None, *_GENERATED}:
        return retrieval.FILLER
    if name == "passkey":
        raise ConfigError(
            f"The data set of a pass key is generated: 'use' must be {_GENERATED[0]}. Got '{dataset.use}'."
        )
    text = read_text(placed(str(dataset.use), root)).strip()
    if not text:
        raise ConfigError(f"The haystack {dataset.use} is empty.")
    return text
