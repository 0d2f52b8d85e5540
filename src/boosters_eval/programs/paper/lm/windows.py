"""How a text is cut into windows, so that each token is scored once, and what a perplexity is per."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boosters_eval.programs.paper.lm.arguments import TextUnit


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """What the model is given, and the tokens that come next; only the last `scored` of them count."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    scored: int


@dataclass(frozen=True, slots=True)
class TextTotals:
    """The negative log-likelihood of texts in nats, and how much text that is."""

    nats: float
    tokens: int
    words: int
    bytes: int
    documents: int


def cut(tokens: Sequence[int], prefix: int, context_length: int, stride: int) -> Iterator[TokenWindow]:
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


def perplexities(totals: TextTotals, unit: TextUnit) -> dict[str, float]:
    """The metrics: `perplexity` is per the unit asked for; the others are always there, unless they overflow."""
    if not totals.tokens:
        raise RunError("The data set has no text to score.")
    if not math.isfinite(totals.nats):
        raise RunError("The model gives the text no finite probability.")
    per = {"token": totals.tokens, "word": totals.words, "byte": totals.bytes}
    values = {f"{name}_perplexity": _exp(totals.nats, number) for name, number in per.items()}
    known = {name: value for name, value in values.items() if math.isfinite(value)}
    if f"{unit}_perplexity" not in known:
        raise RunError(f"The perplexity per {unit} is too large for a number: {totals.nats:.6g} nats.")
    return {
        "perplexity": known[f"{unit}_perplexity"],
        **known,
        "bits_per_byte": totals.nats / math.log(2) / totals.bytes,
        "nats_per_token": totals.nats / totals.tokens,
        "tokens": float(totals.tokens),
        "words": float(totals.words),
        "bytes": float(totals.bytes),
        "documents": float(totals.documents),
    }


def _exp(nats: float, number: int) -> float:
    try:
        return math.exp(nats / number)
    except (OverflowError, ZeroDivisionError):
        return math.inf
