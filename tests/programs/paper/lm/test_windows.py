"""Windows: each token is scored once, with all the context that fits; and the units of a perplexity."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boosters_eval.core.errors import BoostersEvalError, ConfigError
from boosters_eval.programs.paper.lm import compute_perplexities, cut_windows

PREFIX = -1


def sizes(tokens, words, n_bytes):
    return {"tokens": tokens, "words": words, "bytes": n_bytes, "documents": 1}


@given(size=st.integers(0, 60), context=st.integers(1, 20), data=st.data())
def test_every_token_is_scored_once_and_in_order(size, context, data):
    stride = data.draw(st.integers(1, context))
    tokens = list(range(size))
    windows = list(cut_windows(tokens, PREFIX, context, stride))
    assert [t for w in windows for t in w.targets[len(w.targets) - w.scored :]] == tokens
    for window in windows:
        assert len(window.inputs) == len(window.targets) <= context
        assert window.targets == tuple(range(window.inputs[0] + 1, window.inputs[-1] + 2))
        assert len(window.inputs) == min(context, window.targets[-1] + 1)  # all the context there is


def test_a_document_that_fits_is_one_window():
    (window,) = cut_windows([5, 6, 7], PREFIX, 8, 4)
    assert (window.inputs, window.targets, window.scored) == ((PREFIX, 5, 6), (5, 6, 7), 3)


def test_a_stride_beyond_the_context_would_leave_tokens_out():
    with pytest.raises(ConfigError, match=r"'stride' must be at most the context length 4\. Got 5 instead"):
        list(cut_windows([1], PREFIX, 4, 5))


def test_the_units_are_what_the_page_says():
    nats = 6 * math.log(2)
    values = compute_perplexities(nats, sizes(6, 3, 12), "word")
    assert values["token_perplexity"] == pytest.approx(2)
    assert values["word_perplexity"] == values["perplexity"] == pytest.approx(4)
    assert values["byte_perplexity"] == pytest.approx(math.sqrt(2))
    assert values["bits_per_byte"] == pytest.approx(0.5)
    assert (values["tokens"], values["words"], values["bytes"]) == (6, 3, 12)
    assert compute_perplexities(nats, sizes(6, 3, 12), "token")["perplexity"] == pytest.approx(2)
    assert math.log2(values["byte_perplexity"]) == pytest.approx(values["bits_per_byte"])


def test_what_is_no_number_is_left_out_or_refused():
    long_word = sizes(1000, 1, 3000)
    assert "word_perplexity" not in compute_perplexities(2000.0, long_word, "token")
    for nats, counted, unit, sentence in [
        (2000.0, long_word, "word", "The perplexity per word is too large for a number"),
        (math.nan, sizes(1, 1, 1), "token", "no finite probability"),
        (0.0, sizes(0, 0, 0), "token", "no text to score"),
    ]:
        with pytest.raises(BoostersEvalError, match=sentence):
            compute_perplexities(nats, counted, unit)
