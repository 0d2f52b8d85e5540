"""The entry point, before anything slow is imported. `python -m boosters_eval` is the same as `boosters-eval`."""

import gc
import os
import signal
import sys


def main() -> None:
    """Start the command line. Ctrl-C during imports exits silently; a closed stdin becomes /dev/null.

    A closed stdout or stderr becomes one that nothing can be written to, so that a result which is lost is an error.

    A signal is an interruption from when the command line is loaded; the exit code is 128 and its number either way.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(50_000)  # modules and tables are many objects and no garbage: looking for it cost 5 % of a start
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free descriptor, which is this one
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
    from boosters_eval.cli import app  # noqa: PLC0415 (see above)

    app.catch_signals()
    app.main()


if __name__ == "__main__":
    main()
