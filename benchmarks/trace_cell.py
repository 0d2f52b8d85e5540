"""The way of one cell through the house: which functions of the package run, and in which modules, until it is sent.

    python benchmarks/trace_cell.py

It runs `compare -d california -l xgboost -s 1` in this process with a profiler, as the command line would.
VERBOSE=1 lists all.
"""

import contextlib
import inspect
import os
import sys
import tempfile
from pathlib import Path
from types import CodeType

import boosters_eval

PACKAGE = str(Path(boosters_eval.__file__).parent)
COMMAND = ["compare", "-d", "california", "-l", "xgboost", "-s", "1", "-q"]
MOST_MODULES, MOST_FUNCTIONS = 70, 350


def trace() -> tuple[list[CodeType], list[CodeType]]:
    """The functions of the package that ran before the first cell was sent, and all of them."""
    seen: dict[CodeType, None] = {}
    before: list[CodeType] = []

    def note(frame, event, _):
        code = frame.f_code
        # The bodies of modules and classes are definitions; an expression is a part of its function.
        is_function = code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in ("<genexpr>", "<lambda>")
        if event == "call" and is_function and code.co_filename.startswith(PACKAGE) and not _is_importing(frame):
            seen.setdefault(code)

    from boosters_eval.cli.app import run
    from boosters_eval.engine.pool import LocalPool

    sent = LocalPool._send

    def send(self, *given):
        if not before:
            before.extend(seen)
        return sent(self, *given)

    LocalPool._send = send
    sys.argv = ["boosters-eval", *COMMAND]
    sys.setprofile(note)
    try:
        code = run(COMMAND)
    finally:
        sys.setprofile(None)
    assert code == 0, code
    return before, list(seen)


def _is_importing(frame) -> bool:
    """Whether a function is only called because a module of the package is imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False


def count(codes: list[CodeType]) -> tuple[int, int]:
    return len({code.co_filename for code in codes}), len(codes)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["BOOSTERS_EVAL_HOME"] = home
        os.chdir(home)
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            before, whole = trace()
    if os.environ.get("VERBOSE"):
        for code in before:
            print(f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}")
    for what, codes in (("before the first cell is sent", before), ("in all", whole)):
        print("{}: {} modules, {} functions".format(what, *count(codes)))
    modules, functions = count(before)
    sys.exit(0 if modules <= MOST_MODULES and functions <= MOST_FUNCTIONS else 1)
