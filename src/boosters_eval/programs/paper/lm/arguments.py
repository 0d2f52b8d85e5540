"""What a specification may say about an evaluation, under `arguments`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BeforeValidator

from boosters_eval.core.model import Model

TextUnit = Literal["token", "word", "byte"]


def _several(given: Any) -> Any:
    """One number is a list of one."""
    return (given,) if isinstance(given, (int, float)) else given


class ModelArguments(Model):
    """How a language model is run."""

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

    lengths: Annotated[tuple[Annotated[int, Gt(0)], ...], MinLen(1), BeforeValidator(_several)] = (
        4096,
    )  # with the room for the answer
    depths: Annotated[tuple[Annotated[float, Ge(0), Le(100)], ...], MinLen(1), BeforeValidator(_several)] | None = (
        None  # in percent of the filler; None: at random
    )
    trials: Annotated[int, Ge(1)] = 10  # per length and depth
    tokenizer: str | None = None  # what lengths are counted by: a name, a folder, or "characters"; None: the model's
    max_new_tokens: Annotated[int, Ge(1)] | None = None  # None: 10 for a pass key, 128 for a needle
