"""Prompts that hide a number in filler, and whether an answer found it. They depend on nothing but their seed.

The pass key is that of Mohtashami and Jaggi (2023), the needle RULER's (Hsieh et al., 2024).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boosters_eval.core.errors import ConfigError, UnknownNameError
from boosters_eval.datasets.generated import Stream
from boosters_eval.programs.paper.lm import FILLER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEW_TOKENS = {"passkey": 10, "needle": 128}
_TASK = (
    "There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. "
    "I will quiz you about the important information there."
)
_MAGIC = (
    "A special magic number is hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the number afterwards."
)
_ADJECTIVES = "amber brave calm dusty eager faint gentle hollow keen lunar noble quiet"
_NOUNS = "anchor basket candle dolphin engine falcon garden island kettle ladder meadow"
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s|\n")
_KINDS = {"passkey": 1, "needle": 2}  # in the seed
# Of the search for a length: approaches, then characters to either side and in front.
_STEPS, _REACH, _SKIPS = 40, 40, 12
# Of the characters of filler, and of those that are left out at its beginning.
PromptBuilder = Callable[[int, int], str]


@dataclass(frozen=True, slots=True)
class RetrievalPrompt:
    """A prompt of an exact length, with the number that it hides."""

    text: str
    answer: str
    length: int
    depth: float  # percent of the filler in front of it


def generate(
    kind: str,
    length: int,
    *,
    seed: int,
    depths: Sequence[float] | None = None,
    trials: int = 10,
    count: Callable[[str], int] = len,
    filler: str = FILLER,
) -> Iterator[RetrievalPrompt]:
    """The prompts of one length: `trials` for each depth, or that many at random ones. `count` measures the length."""
    if kind not in _KINDS:
        raise UnknownNameError("retrieval test", kind, _KINDS)
    for depth in depths or (None,):
        if depth is not None and not 0 <= depth <= 100:
            raise ConfigError(f"The 'depths' must be percentages from 0 to 100. Got {depth} instead.")
        for trial in range(trials):
            place = 101_000 if depth is None else round(depth * 1000)
            words = [int(word) for word in Stream(seed, _KINDS[kind], length, place, trial).words(4)]
            at = words[0] % 10_001 / 100 if depth is None else float(depth)
            build, answer = (_passkey if kind == "passkey" else _needle)(words[1:], at, filler)
            yield RetrievalPrompt(fit_prompt(build, length, count), answer, length, at)


def fit_prompt(build: PromptBuilder, length: int, count: Callable[[str], int]) -> str:
    """What `build` makes of as many characters of filler as give exactly the length.

    The number of tokens grows with the characters, nearly evenly: a few approaches come within a word of it, and the
    characters around are tried one by one. Where one more character is two more tokens, the filler begins later.
    """
    least = count(build(0, 0))
    if least > length:
        raise ConfigError(f"A prompt must have a length of at least {least}. Got {length} instead.")
    filled, got, rate = 0, least, 4.0
    for _ in range(_STEPS):
        if abs(length - got) <= 1:
            break
        filled = min(max(0, filled + round((length - got) * rate)), 64 * length)
        got = count(build(filled, 0))
        rate = filled / (got - least) if got > least else 2 * rate
    for skipped in range(_SKIPS):
        for step in range(2 * _REACH):
            text = build(max(0, filled + (step // 2 if step % 2 else -step // 2)), skipped)
            if count(text) == length:
                return text
    raise ConfigError(f"No prompt has exactly {length} tokens of this tokenizer: choose another length.")


def has_answer(kind: str, generated: str, answer: str) -> bool:
    """Whether the generated text gives the answer, by the rule of its test."""
    if kind == "needle":  # RULER's string match
        return answer.lower() in generated.lower()
    first = re.search(r"[0-9]+", generated)
    return first is not None and (first[0].lstrip("0") or "0") == answer


def _passkey(words: list[int], depth: float, filler: str) -> tuple[PromptBuilder, str]:
    key = str(words[0] % 50_000 + 1)
    secret = f"The pass key is {key}. Remember it. {key} is the pass key."

    def build(filled: int, skipped: int) -> str:
        before = round(filled * depth / 100)
        parts = (_TASK, _cut(filler, " ", skipped, before), secret, _cut(filler, " ", skipped, filled - before))
        return "\n".join((*parts, "What is the pass key? The pass key is"))

    return build, key


def _needle(words: list[int], depth: float, filler: str) -> tuple[PromptBuilder, str]:
    adjectives, nouns = _ADJECTIVES.split(), _NOUNS.split()
    key = f"{adjectives[words[0] % len(adjectives)]}-{nouns[words[1] % len(nouns)]}"
    number = str(words[2] % 9_000_000 + 1_000_000)
    secret = f"One of the special magic numbers for {key} is: {number}."
    asked = f"special magic number for {key} mentioned in the provided text"
    ends = [end.end() for end in _SENTENCE_END.finditer(filler + " ")]

    def build(filled: int, skipped: int) -> str:
        hay = _cut(filler, "\n", skipped, filled)
        at = round(filled * depth / 100) + skipped
        at = filled if depth == 100 else max(0, _sentence_start(at, len(filler) + 1, ends) - skipped)
        before = hay[: at - 1] if hay[:at][-1:].isspace() else hay[:at]  # the needle's own line end takes its place
        return "\n".join((_MAGIC, before, secret, hay[at:], f"What is the {asked}? The {asked} is"))

    return build, number


def _cut(filler: str, joint: str, start: int, size: int) -> str:
    """Characters of the filler, repeated as often as it takes."""
    return (f"{filler}{joint}" * ((start + size) // (len(filler) + 1) + 1))[start : start + size]


def _sentence_start(at: int, period: int, ends: list[int]) -> int:
    """The last place at or before which a sentence begins."""
    whole, rest = divmod(at, period)
    return whole * period + max((end for end in ends if end <= rest), default=0)
