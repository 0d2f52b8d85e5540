"""Language models: where they and their texts come from, checked before torch or anything else large is imported."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from boosters_eval.core.errors import (
    BoostersEvalError,
    ConfigError,
    DatasetError,
    MissingLibraryError,
    UnknownNameError,
    suggest,
)
from boosters_eval.core.files import read_text
from boosters_eval.core.terms import given
from boosters_eval.core.text import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boosters_eval.programs.paper.specification import PaperDataset

EVALUATORS = ("perplexity", "passkey", "needle")
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
