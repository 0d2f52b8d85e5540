"""Texts to evaluate on: data sets of the hub under their current names, and the user's own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from boosters_eval.core.errors import ConfigError, DatasetError, MissingLibraryError, suggest
from boosters_eval.core.files import read_text
from boosters_eval.programs.paper.lm import INSTALL
from boosters_eval.programs.paper.lm.sources import placed, prepare_hub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from boosters_eval.programs.paper.specification import PaperDataset

SEPARATOR = "\n\n"  # between documents that are read as one text
MAX_FILE = 512 * 2**20


@dataclass(frozen=True, slots=True)
class HubText:
    """A data set on the hub: where it is now, and how it is usually read."""

    path: str
    config: str | None = None
    column: str = "text"
    splits: tuple[str, ...] = ("train", "validation", "test")
    split: str = "test"
    joined: bool = False
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

    @property
    def joined(self) -> bool:
        """Whether it is usually read as one text."""
        return self.hub is not None and self.hub.joined

    def documents(self, limit: int | None = None) -> Iterator[str]:
        """The texts that are not empty."""
        texts = self._hub_texts() if self.hub else (read_text(file, limit=MAX_FILE) for file in self.files)
        return islice((text for text in texts if text.strip()), limit)

    def _hub_texts(self) -> Iterator[str]:
        assert self.hub is not None  # noqa: S101 (for the type checker)
        return (str(row[self.hub.column]) for row in rows(self.name, self.split))


def find(dataset: PaperDataset, root: Path | None = None) -> TextSource:
    """The texts that a specification in the folder `root` names. Nothing is read yet."""
    asked = dataset.use or dataset.name
    if name := _known_name(asked):
        return TextSource(name, _split(name, dataset.split), HUB[name])
    path = None if dataset.use is None else placed(asked, root)
    if path is None or not path.exists():
        raise ConfigError(
            f"Unknown text '{asked}'.{suggest(asked.lower(), HUB)} It must be one of {', '.join(HUB)}, or 'use' must "
            "name a text file or a folder of *.txt files."
        )
    files = tuple(sorted(path.glob("*.txt"))) if path.is_dir() else (path,)
    if not files:
        raise DatasetError(f"The folder {path} has no text files (*.txt).")
    return TextSource(asked, files=files)


def rows(name: str, split: str = "") -> Iterator[dict[str, Any]]:
    """The rows of a data set on the hub, with their labels where it has some."""
    hub, split = HUB[name], _split(name, split)
    prepare_hub()
    try:
        import datasets  # noqa: PLC0415 (large, and only needed here)
    except ImportError:
        raise MissingLibraryError(f"The data set '{name}' needs the library datasets: {INSTALL}") from None
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


def _known_name(asked: str) -> str | None:
    plain = re.sub(r"[\s_]+", "-", asked.strip().lower())
    plain = _ALIASES.get(plain, plain)
    return plain if plain in HUB else None


def _split(name: str, asked: str) -> str:
    hub = HUB[name]
    if asked and asked not in hub.splits:
        known = ", ".join(hub.splits)
        raise ConfigError(f"The 'split' of {name} must be one of {known}. Got '{asked}' instead.")
    return asked or hub.split
