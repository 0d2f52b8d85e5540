"""The program's first breath, before anything slow is imported; `python -m boosters_eval` is `boosters-eval`."""

import os
import signal
import sys


def main() -> None:
    """Ctrl-C while we import ends us in silence, and a closed stdout or stderr is one that swallows everything."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
    from boosters_eval.cli.app import main as run  # noqa: PLC0415 (see above)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
