"""Generated prompts: the same for a seed, exactly as long as asked for, with the number where it should be."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boosters_eval.core.errors import ConfigError
from boosters_eval.programs.paper.lm.retrieval import FILLER, fit_prompt, generate, has_answer

KINDS = ["passkey", "needle"]
COUNTERS = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "pieces": lambda text: len(re.findall(r" ?[A-Za-z]{1,4}|[0-9]|[^A-Za-z0-9]", text)),
    "with a first token": lambda text: 1 + len(re.findall(r"\w+|[^\w\s]|\n", text)),
}
depths = st.one_of(st.sampled_from([0, 25, 50, 100]), st.floats(0, 100))


def only(kind, length, **options):
    (prompt,) = generate(kind, length, **{"seed": 0, "trials": 1, **options})
    return prompt


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(unit=st.sampled_from(sorted(COUNTERS)), length=st.integers(400, 1500), depth=depths, seed=st.integers(0, 2**40))
def test_a_prompt_has_exactly_the_length(kind, unit, length, depth, seed):
    count = COUNTERS[unit]
    prompt = only(kind, length, seed=seed, depths=[depth], count=count)
    assert count(prompt.text) == length == prompt.length
    assert prompt.text.count(prompt.answer) >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_length_of_characters_can_be_reached(kind):
    least = 400
    lengths = range(least, least + 200)
    assert [len(only(kind, length, depths=[60]).text) for length in lengths] == list(lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_the_lengths_of_the_specification_are_reached(kind):
    for length in (4096, 8192, 16384, 32768, 65536, 131072):
        assert len(only(kind, length, count=COUNTERS["words"]).text.split()) == length


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_prompts_and_no_global_state_is_touched(kind):
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002 (the global state is what is looked at)
    first = list(generate(kind, 900, seed=7, trials=4))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    random.random()
    assert list(generate(kind, 900, seed=7, trials=4)) == first
    assert len({prompt.answer for prompt in first}) == 4
    assert [p.answer for p in generate(kind, 900, seed=8, trials=4)] != [p.answer for p in first]


def test_a_prompt_does_not_depend_on_which_others_are_generated():
    alone = list(generate("passkey", 900, seed=3, depths=[50], trials=2))
    assert list(generate("passkey", 900, seed=3, depths=[0, 50], trials=3))[3:5] == alone


def test_prompts_are_the_same_on_every_machine():
    assert [p.answer for p in generate("passkey", 900, seed=1, trials=3)] == ["875", "13295", "2515"]
    assert [p.answer for p in generate("needle", 900, seed=1, trials=3)] == ["4612433", "7223500", "6601803"]


def test_the_pass_key_prompt_is_that_of_the_paper():
    prompt = only("passkey", 2000, depths=[50])
    task, before, secret, after, question = prompt.text.split("\n")
    assert task.startswith("There is an important info hidden inside a lot of irrelevant text.")
    assert secret == f"The pass key is {prompt.answer}. Remember it. {prompt.answer} is the pass key."
    assert (before[:89], after[:89]) == (FILLER, FILLER)
    assert abs(len(before) - len(after)) <= 1
    assert question == "What is the pass key? The pass key is"
    keys = [int(p.answer) for p in generate("passkey", 500, seed=0, trials=300)]
    assert 1 <= min(keys) < 1000
    assert 49_000 < max(keys) <= 50_000


def test_the_needle_prompt_is_that_of_ruler():
    prompt = only("needle", 2000, depths=[50])
    key = re.search(r"magic numbers for ([a-z]+-[a-z]+) is", prompt.text)[1]
    assert f"\nOne of the special magic numbers for {key} is: {prompt.answer}.\n" in prompt.text
    assert re.fullmatch(r"[1-9][0-9]{6}", prompt.answer)
    assert prompt.text.startswith("A special magic number is hidden within the following text.")
    asked = f"special magic number for {key} mentioned in the provided text"
    assert prompt.text.endswith(f"\nWhat is the {asked}? The {asked} is")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [0, 10, 50, 90, 100])
def test_the_number_is_at_its_depth(kind, depth):
    prompt = only(kind, 20_000, depths=[depth])
    secret = {"passkey": "The pass key is [0-9]", "needle": "One of the special"}[kind]
    task, _, _ = prompt.text.partition("\n")
    at = re.search(secret, prompt.text).start() - len(task)
    assert at / (20_000 - len(task)) * 100 == pytest.approx(depth, abs=2)


def test_random_depths_are_all_over():
    found_at = [p.depth for p in generate("needle", 800, seed=0, trials=200)]
    assert min(found_at) < 5
    assert max(found_at) > 95
    assert np.mean(found_at) == pytest.approx(50, abs=7)


def test_a_needle_stands_between_sentences_of_the_users_own_haystack():
    haystack = "Is it so? It is. Three sentences! \n\nAnd a paragraph of its own."
    for depth in range(0, 100, 7):
        before, _, _ = only("needle", 3000, depths=[depth], filler=haystack).text.partition("\nOne of")
        assert before.rstrip()[-1] in ".?!"


def test_a_length_that_is_too_short_is_one_sentence():
    with pytest.raises(ConfigError, match=r"A prompt must have a length of at least \d+\. Got 10 instead\."):
        only("passkey", 10)


def test_a_length_that_no_text_has_is_one_sentence():
    with pytest.raises(ConfigError, match=r"No prompt has exactly 901 tokens"):
        only("passkey", 901, count=lambda text: 2 * (len(text) // 2))
    with pytest.raises(ConfigError, match=r"No prompt has exactly 5 tokens"):
        fit_prompt(lambda _filled, _skipped: "", 5, len)


def test_wrong_names_and_depths_are_one_sentence():
    with pytest.raises(ConfigError, match=r"Unknown retrieval test 'passkee'\. Did you mean 'passkey'"):
        only("passkee", 900)
    with pytest.raises(ConfigError, match=r"percentages from 0 to 100\. Got 101"):
        only("needle", 900, depths=[101])


@pytest.mark.parametrize(
    ("generated", "answer", "right"),
    [
        (" 123. Remember it.", "123", True),
        ("The key is 0123", "123", True),
        (" 1234", "123", False),
        (" 7 or 123", "123", False),
        (" no number", "123", False),
        ("", "123", False),
        ("9" * 10_000, "9", False),
        ("\u0661\u0662\u0663", "123", False),
    ],
)
def test_a_pass_key_is_right_if_the_first_number_is_it(generated, answer, right):
    assert has_answer("passkey", generated, answer) is right


@given(st.text(), st.integers(1_000_000, 9_999_999), st.text())
def test_a_needle_is_right_if_it_is_anywhere(before, number, after):
    assert has_answer("needle", f"{before}{number}{after}", str(number))
    assert has_answer("needle", f"{before}ABC{after}", "abc")
    assert not has_answer("needle", before.replace(str(number), ""), str(number) + "x")
