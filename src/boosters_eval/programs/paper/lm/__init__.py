"""The evaluators of language models: perplexity, passkey, needle; and where models and texts come from.

What can be checked is checked before torch or anything else large is imported.
"""

from __future__ import annotations

import math
import os
import re
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BeforeValidator

from boosters_eval.core.errors import (
    BoostersEvalError,
    ConfigError,
    DatasetError,
    MissingLibraryError,
    RunError,
    UnknownNameError,
    suggest,
)
from boosters_eval.core.files import read_text
from boosters_eval.core.model import Model
from boosters_eval.core.terms import given
from boosters_eval.core.text import join_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boosters_eval.programs.paper.lm.models import LanguageModel
    from boosters_eval.programs.paper.specification import PaperDataset


EVALUATORS = ("perplexity", "passkey", "needle")
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
SEPARATOR = "\n\n"  # between documents that are read as one text
MAX_FILE = 512 * 2**20
_INSTALL = "pip install 'boosters-eval[lm]'"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_PATIENCE_S = 5


def find_missing(
    name: str,
    model: str | None = None,
    dataset: PaperDataset | None = None,
    *,
    root: Path | None = None,
    allow_pickle: bool = False,
) -> str | None:
    """Why an evaluator cannot run here, with the remedy; None if it can. What is not given is not looked at."""
    if name not in EVALUATORS:
        return str(UnknownNameError("evaluator", name, EVALUATORS))
    needed = ["torch", "transformers"]
    if (model or "").lower().endswith(".gguf"):
        needed += ["accelerate", "gguf"]
    try:
        if model is not None:
            check_source(model, allow_pickle=allow_pickle)
        if dataset is not None and name == "perplexity" and find_texts(dataset, root).hub:
            needed.append("datasets")
    except BoostersEvalError as error:
        return str(error)
    absent = [module for module in needed if find_spec(module) is None]
    return f"The evaluator '{name}' needs {join_words(absent)}: {_INSTALL}" if absent else None


def check_source(model: str, *, weights: bool = True, allow_pickle: bool = False) -> Path | None:
    """The folder or the GGUF file; None for a name on the hub. A tokenizer may stand there without weights."""
    path = Path(model)
    if path.is_dir():
        if weights:
            _check_folder(path, allow_pickle)
        return path
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise ConfigError(
                f"A language model must be a folder that transformers wrote, a .gguf file or a name on the hub. "
                f"Got the file {path} instead."
            )
        return path
    is_path = path.is_absolute() or model.startswith(("./", "../", "~")) or path.suffix.lower() == ".gguf"
    if is_path or not _HUB_NAME.fullmatch(model) or ".." in model:
        raise ConfigError(f"The model {model} does not exist.")
    return None


def _check_folder(folder: Path, allow_pickle: bool) -> None:
    if not (folder / "config.json").is_file():
        raise ConfigError(f"The folder {folder} has no config.json: it is no model that transformers wrote.")
    if any(folder.glob("*.safetensors")):
        return
    pickled = next((file for pattern in _PICKLED for file in sorted(folder.glob(pattern))), None)
    if pickled is None:
        raise ConfigError(f"The folder {folder} has no weights (*.safetensors).")
    if not allow_pickle:
        raise ConfigError(
            f"The weights {pickled} are a pickle, which can run code: "
            f"save them as safetensors, or trust them with {given('allow_pickle')}."
        )


def locate(name: str, root: Path | None) -> Path:
    """A path as a specification writes it: relative to its folder, and within it."""
    path = (root or Path()) / name
    if root is not None and not path.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"The path '{name}' leads out of the specification's folder.")
    return path


def prepare_hub() -> bool:
    """Whether the hub can be reached. Where it cannot, its libraries are told so: they would retry for minutes.

    They read this when they are imported, so it is called before. What is in their cache stays usable.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # only the proxy can know
    parts = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    try:
        socket.create_connection((parts.hostname or "", parts.port or 443), timeout=_PATIENCE_S).close()
    except OSError:
        os.environ["HF_HUB_OFFLINE"] = "1"
        return False
    return True


@dataclass(frozen=True, slots=True)
class HubText:
    """A data set on the hub: where it is now, and how it is usually read."""

    path: str
    config: str | None = None
    column: str = "text"
    splits: tuple[str, ...] = ("train", "validation", "test")
    split: str = "test"
    joined: bool = False  # documents are read as one text
    streaming: bool = False


# deepmind/pg19 is a script, which `datasets` refuses since version 4: this is the same data in parquet files.
HUB = {
    "wikitext-103": HubText("Salesforce/wikitext", "wikitext-103-v1", joined=True),
    "wikitext-103-raw": HubText("Salesforce/wikitext", "wikitext-103-raw-v1", joined=True),
    "wikitext-2": HubText("Salesforce/wikitext", "wikitext-2-v1", joined=True),
    "wikitext-2-raw": HubText("Salesforce/wikitext", "wikitext-2-raw-v1", joined=True),
    "pg-19": HubText("emozilla/pg19"),
    "c4": HubText("allenai/c4", "en", splits=("train", "validation"), split="validation", streaming=True),
    "imdb": HubText("stanfordnlp/imdb", splits=("train", "test", "unsupervised")),
    "sst2": HubText("stanfordnlp/sst2", column="sentence", split="validation"),  # its test set has no labels
}
_ALIASES = {"wikitext103": "wikitext-103", "pg19": "pg-19", "sst-2": "sst2"}


@dataclass(frozen=True, slots=True)
class TextSource:
    """What a specification's data set stands for: a data set of the hub, or files."""

    name: str
    split: str = ""
    hub: HubText | None = None
    files: tuple[Path, ...] = ()

    def documents(self, limit: int | None = None) -> Iterator[str]:
        """The texts that are not empty."""
        if self.hub is None:
            texts = (read_text(file, limit=MAX_FILE) for file in self.files)
        else:
            column = self.hub.column
            texts = (str(row[column]) for row in read_rows(self.name, self.split))
        return islice((text for text in texts if text.strip()), limit)


def find_texts(dataset: PaperDataset, root: Path | None = None) -> TextSource:
    """The texts that a specification in the folder `root` names. Nothing is read yet."""
    asked = dataset.use or dataset.name
    name = re.sub(r"[\s_]+", "-", asked.strip().lower())
    name = _ALIASES.get(name, name)
    if name in HUB:
        return TextSource(name, _check_split(name, dataset.split), HUB[name])
    path = None if dataset.use is None else locate(asked, root)
    if path is None or not path.exists():
        raise ConfigError(
            f"Unknown text '{asked}'.{suggest(asked.lower(), HUB)} It must be one of {', '.join(HUB)}, or 'use' must "
            "name a text file or a folder of *.txt files."
        )
    files = tuple(sorted(path.glob("*.txt"))) if path.is_dir() else (path,)
    if not files:
        raise DatasetError(f"The folder {path} has no text files (*.txt).")
    return TextSource(asked, files=files)


def read_rows(name: str, split: str = "") -> Iterator[dict[str, Any]]:
    """The rows of a data set on the hub, with their labels where it has some."""
    hub, split = HUB[name], _check_split(name, split)
    prepare_hub()
    try:
        import datasets  # noqa: PLC0415 (large, and only needed here)
    except ImportError:
        raise MissingLibraryError(f"The data set '{name}' needs the library datasets: {_INSTALL}") from None
    datasets.disable_progress_bars()
    try:
        yield from datasets.load_dataset(hub.path, hub.config, split=split, streaming=hub.streaming)
    except Exception as error:  # every layer below has errors of its own
        raise DatasetError(_unreachable(name, hub, split, error)) from error


def _unreachable(name: str, hub: HubText, split: str, error: Exception) -> str:
    config = f"{hub.config!r}, " if hub.config else ""
    reason = re.sub(r"\s+", " ", str(error)).strip().rstrip(".")[:200] or type(error).__name__
    way = (
        'put texts into a file and name it under "use" (it is streamed, so there is nothing to keep)'
        if hub.streaming
        else f"with a network, run python -c \"from datasets import load_dataset; load_dataset('{hub.path}', {config}"
        f'split=\'{split}\')" once, which keeps it in the cache of the hub (HF_HOME), or name a text file under "use"'
    )
    return f"Cannot load the data set '{name}' ({hub.path} on the hub): {reason}. To get it: {way}."


def _check_split(name: str, asked: str) -> str:
    hub = HUB[name]
    if asked and asked not in hub.splits:
        known = ", ".join(hub.splits)
        raise ConfigError(f"The 'split' of {name} must be one of {known}. Got '{asked}' instead.")
    return asked or hub.split


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
        return FILLER
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
    kind: str, model: LanguageModel, arguments: RetrievalArguments, seed: int, *, filler: str = FILLER
) -> dict[str, float]:
    """The share of prompts whose answer is right: in all, and for each length and depth that was asked for."""
    from boosters_eval.programs.paper.lm.retrieval import NEW_TOKENS, generate, has_answer  # noqa: PLC0415 (numpy)

    room = arguments.max_new_tokens or NEW_TOKENS[kind]
    count = _choose_counter(model, arguments.tokenizer)
    hits: dict[str, list[bool]] = {"accuracy": []}
    for length in arguments.lengths:
        size = length if count is len else length - room
        prompts = generate(
            kind, size, seed=seed, depths=arguments.depths, trials=arguments.trials, count=count, filler=filler
        )
        for prompt in prompts:
            model.check_length("lengths", model.count(prompt.text) + room)
            right = has_answer(kind, model.answer(prompt.text, room), prompt.answer)
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
