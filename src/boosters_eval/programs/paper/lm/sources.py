"""Where a language model comes from, checked before anything large is imported, and whether the hub can be reached."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from boosters_eval.core.errors import ConfigError
from boosters_eval.core.terms import given

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_PATIENCE_S = 5


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


def placed(name: str, root: Path | None) -> Path:
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
