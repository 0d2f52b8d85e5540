"""What Python calls a parameter is an option on the command line, if it was typed."""

import pytest

from boosters_eval.cli.wording import as_options


@pytest.mark.parametrize(
    ("sentence", "typed", "told"),
    [
        ("The 'seeds' parameter must be 1.", ["-s", "0"], "The '--seeds' option must be 1."),
        ("The 'seeds' parameter must be 1.", ["-s0"], "The '--seeds' option must be 1."),
        (
            "The 'max_seeds' parameter needs seeds='auto'.",
            ["--max-seeds=9"],
            "The '--max-seeds' option needs --seeds auto.",
        ),
        ("The 'libraries' parameter of X must be it.", ["-l", "a"], "The '--library' option must be it."),
        ("The 'max_depth' parameter of X must be 1.", ["-d", "iris"], "The 'max_depth' parameter of X must be 1."),
        ("Use either 'resume' or 'rerun_failed', not both.", [], "Use either --resume or --rerun-failed, not both."),
        ("Use either seeds='auto' or folds, not both.", [], "Use either --seeds auto or folds, not both."),
        ("Unknown data set 'seeds'.", ["-s", "1"], "Unknown data set 'seeds'."),
        ("free space and use resume=True.", [], "free space and use --resume."),
        ("find out why, or say allow_flaky=2.", [], "find out why, or say --allow-flaky 2."),
    ],
)
def test_a_parameter_that_was_typed_is_an_option(sentence, typed, told):
    assert as_options(sentence, typed) == told
