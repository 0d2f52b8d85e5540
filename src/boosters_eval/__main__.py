"""`python -m boosters_eval` is `boosters-eval`."""

from boosters_eval.cli.app import main

main()
