"""A causal language model: its tokens, the likelihood of a text, and what it says next. This module imports torch."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging

from boosters_eval.core.errors import ConfigError, RunError
from boosters_eval.programs.paper.lm import ModelArguments, TokenWindow, check_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


_ROWS = 512  # positions whose probabilities are computed at a time: a vocabulary is large


class LanguageModel:
    """A model with its tokenizer, as transformers loads them."""

    def __init__(self, model: Any, tokenizer: Any, *, extrapolate: bool = False) -> None:
        self.model = model.eval()
        # A model's own settings may penalize repetition, which a pass key is: greedy means the likeliest token.
        self.model.generation_config = GenerationConfig(
            eos_token_id=tokenizer.eos_token_id, pad_token_id=_first(tokenizer.pad_token_id, tokenizer.eos_token_id)
        )
        self.tokenizer = tokenizer
        self.extrapolate = extrapolate

    @property
    def prefix(self) -> int:
        """The token that a document begins with."""
        token: int | None = _first(self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        if token is None:
            raise ConfigError("The tokenizer must have a token for the begin or the end of a text. It has neither.")
        return token

    @property
    def positions(self) -> int | None:
        """How many tokens it can see at once, where it says so."""
        limit: int | None = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return limit

    def check_length(self, name: str, length: int) -> None:
        """Refuse a length that the model was not made for."""
        if self.positions is not None and length > self.positions and not self.extrapolate:
            raise ConfigError(
                f"The '{name}' must be at most the model's {self.positions} positions, unless 'extrapolate' is true. "
                f"Got {length} instead."
            )

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without any that the text does not have."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return found

    def count(self, text: str) -> int:
        return len(self.tokenizer(text, verbose=False)["input_ids"])

    def nats(self, windows: Iterable[TokenWindow], batch_size: int) -> float:
        """The negative log-likelihood of what the windows score."""
        total = 0.0
        with torch.inference_mode():
            left = iter(windows)
            while batch := list(islice(left, batch_size)):
                total += sum(self._nats(batch))
        return total

    def _nats(self, batch: Sequence[TokenWindow]) -> Iterator[float]:
        """Padded on the right: a causal model's output does not depend on what comes after."""
        width = max(len(window.inputs) for window in batch)
        padded = [(*window.inputs, *([0] * (width - len(window.inputs)))) for window in batch]
        inputs = torch.tensor(padded, device=self.model.device)
        logits = self.model(input_ids=inputs, attention_mask=torch.ones_like(inputs), use_cache=False).logits
        for row, window in zip(logits, batch, strict=True):
            start, end = len(window.inputs) - window.scored, len(window.inputs)
            targets = torch.tensor(window.targets, device=self.model.device)
            for first in range(start, end, _ROWS):
                part = slice(first, min(first + _ROWS, end))
                losses = torch.nn.functional.cross_entropy(row[part].float(), targets[part], reduction="none")
                yield float(losses.double().sum())

    def answer(self, prompt: str, max_new_tokens: int) -> str:
        """What it says after a prompt when it always takes the likeliest token."""
        given = self.tokenizer(prompt, return_tensors="pt", verbose=False).to(self.model.device)
        inputs, mask = given["input_ids"], given["attention_mask"]
        with torch.inference_mode():
            tokens = self.model.generate(
                input_ids=inputs, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False, num_beams=1
            )
        text: str = self.tokenizer.decode(tokens[0, inputs.shape[1] :], skip_special_tokens=True)
        return text


def load(source: str, arguments: ModelArguments, *, allow_pickle: bool = False) -> LanguageModel:
    """A model from a folder, a GGUF file or the hub. No code of the model's own is run."""
    path = check_source(source, allow_pickle=allow_pickle)
    options: dict[str, Any] = {"dtype": getattr(torch, arguments.dtype)}
    if not allow_pickle and (path is None or path.is_dir()):
        options["use_safetensors"] = True
    model = _load(AutoModelForCausalLM, source, path, **options)
    tokenizer = load_tokenizer(source)
    try:
        best = "cuda" if torch.cuda.is_available() else "cpu"
        device = torch.device(best if arguments.device == "auto" else arguments.device)
        return LanguageModel(model.to(device), tokenizer, extrapolate=arguments.extrapolate)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"The device '{arguments.device}' cannot be used: {_line(error)}.") from None


def load_tokenizer(source: str) -> Any:
    """The tokenizer of a model, or one that stands alone."""
    return _load(AutoTokenizer, source, check_source(source, weights=False))


def _load(kind: Any, source: str, path: Path | None, **options: Any) -> Any:
    logging.disable_progress_bar()
    options |= {"trust_remote_code": False, "local_files_only": path is not None}
    if path is not None and path.is_file():
        source, options["gguf_file"] = str(path.parent), path.name
    try:
        return kind.from_pretrained(source, **options)
    except Exception as error:  # transformers raises whatever the layers below it raise
        way = " To get it, connect to the hub once (HF_HOME keeps it), or name a folder or a .gguf file."
        raise RunError(f"Cannot load the model {path or source}: {_line(error)}.{'' if path else way}") from error


def _first(*tokens: int | None) -> int | None:
    return next((token for token in tokens if token is not None), None)


def _line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip().rstrip(".")[:300] or type(error).__name__
