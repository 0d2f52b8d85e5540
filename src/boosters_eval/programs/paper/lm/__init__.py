"""Language models: generated retrieval tests, texts, and evaluators. torch is imported only to run a model."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from boosters_eval.core.distributions import installed_version
from boosters_eval.core.errors import BoostersEvalError, UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

    from boosters_eval.programs.paper.specification import PaperDataset

EVALUATORS = ("perplexity", "passkey", "needle")
INSTALL = "pip install 'boosters-eval[lm]'"
_MODULES = ("torch", "transformers")
_GGUF_MODULES = ("accelerate", "gguf")


def missing(
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
    needed = [*_MODULES, *(_GGUF_MODULES if (model or "").lower().endswith(".gguf") else ())]
    from boosters_eval.programs.paper.lm import sources, texts  # noqa: PLC0415 (a cycle otherwise)

    try:
        if model is not None:
            sources.check_source(model, allow_pickle=allow_pickle)
        if dataset is not None and name == "perplexity":
            needed += ["datasets"] if texts.find(dataset, root).hub else []
    except BoostersEvalError as error:
        return str(error)
    absent = [module for module in needed if find_spec(module) is None]
    return f"The evaluator '{name}' needs {' and '.join(absent)}: {INSTALL}" if absent else None


def versions() -> dict[str, str]:
    """The installed versions of what the evaluators stand on."""
    found = {name: installed_version(name) for name in (*_MODULES, "tokenizers", "datasets", *_GGUF_MODULES)}
    return {name: version for name, version in found.items() if version}
