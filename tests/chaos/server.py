"""Runs command lines in forks of one process that has imported the program, so that a thousand of them take minutes.

Requests and answers are lines of JSON; each answer has the exit code, the output, the most memory, and whether the
command was still running at its deadline.
"""

import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

MOST = 4 * 2**30  # bytes of address space


def run(request, out, err):
    """In the fork: become the program. What takes far too much memory ends before it takes the machine's."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    os.chdir(request["place"])
    os.environ.update(request.get("env", {}))
    for number, path in ((1, request.get("stdout", out)), (2, err)):
        os.dup2(os.open(path or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w")
    if request.get("stdout") == "":  # closed
        os.close(1)
        sys.stdout = sys.__stdout__ = None
    sys.argv = ["boosters-eval", *request["command"]]
    for number, limit in request.get("limits", {}).items():
        resource.setrlimit(getattr(resource, number), (limit, limit))
    try:
        __main__.main()
    except SystemExit as error:
        code = error.code or 0
    except BaseException:  # noqa: BLE001 (it is what is looked for)
        code = 99
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)


def text_of(path):
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return file.read(1_000_000)


def serve():
    out, err = f"{sys.argv[1]}/stdout", f"{sys.argv[1]}/stderr"
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            run(request, out, err)
        deadline = time.monotonic() + request["timeout"]
        hung = False
        while True:
            ended, status, used = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline and not hung:
                hung = True
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.002)
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "stdout": text_of(out),
            "stderr": text_of(err),
            "megabytes": used.ru_maxrss // 1024,
            "hung": hung,
        }
        sys.__stdout__.write(json.dumps(answer) + "\n")
        sys.__stdout__.flush()


if __name__ == "__main__":
    import pandas as pd  # noqa: F401 (what the commands import, imported once)
    import scipy.stats  # noqa: F401
    import sklearn.model_selection  # noqa: F401

    from boosters_eval import __main__, api  # noqa: F401
    from boosters_eval.cli import app  # noqa: F401
    from boosters_eval.programs.baseline import commands  # noqa: F401
    from boosters_eval.programs.benchmark import tables  # noqa: F401
    from boosters_eval.programs.gate import decision  # noqa: F401

    warnings.simplefilter("ignore", DeprecationWarning)  # on forks of a process with threads, which do nothing here
    serve()
