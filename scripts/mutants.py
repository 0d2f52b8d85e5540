"""Break the rules of the package one at a time, and see whether a test notices.

A mutant is a module with one operator, constant or answer changed. Its tests run in a process that is forked from one
with the large libraries loaded, on a copy of the package. A survivor fails the command, unless a line of
tests/mutants.txt says why no test can see it:

    stats/bootstrap.py::units_needed: found <= threshold -> found < threshold  # the logarithm of 1 is the same answer

Which mutants are drawn depends on the seed and on what each of them is, so that an edit elsewhere draws no others.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE = "src/boosters_eval"
EXPLAINED = "tests/mutants.txt"
HEAVY = ("numpy", "scipy.stats", "scipy.special", "pandas", "sklearn.metrics", "pydantic", "hypothesis.extra.numpy")
MEMORY = 8 * 2**30  # bytes: a loop without an end must not take those of others
_PATIENCE = 5  # how much longer than its CPU time a process may take: the machine may be busy

# What is mutated, and the tests of it: those that mirror the module come first, then the others.
AREAS = {
    "stats": ["tests/stats"],
    "metrics": ["tests/metrics"],
    "programs/baseline": ["tests/programs/baseline", "tests/cli/test_baseline_cli.py"],
    "programs/gate": ["tests/programs/gate", "tests/cli/test_gate_cli.py"],
    "engine/journal.py": [f"tests/engine/test_{name}.py" for name in ("journal", "machines", "runs", "resume")],
}
FIRST = {
    "metrics/catalog": ["metric_specs"],
    "metrics/classification": ["binary_metrics", "multiclass_metrics", "fairness_metrics"],
    "metrics/metric": ["metric_specs", "compute_metrics"],
    "metrics/rows": ["metric_inputs", "compute_metrics", "metric_specs"],
    "metrics/task": ["metric_inputs"],
    "metrics/trivial": ["trivial_rules"],
    "programs/baseline/findings": ["check"],
    "programs/baseline/model": ["baseline_file"],
    "programs/baseline/snapshot": ["baseline_file", "check"],
    "stats/inference": ["significance", "observations", "sequential"],
    "stats/tables": ["comparison_tables"],
}
WORDING = {"programs/baseline/render.py"}  # modules in which a change of wording is all

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.Gt: ast.GtE,
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
}
OPERATORS = {ast.Add: ast.Sub, ast.Mult: ast.Div, ast.BitAnd: ast.BitOr, ast.And: ast.Or}
SWAPPED = {
    **COMPARISONS,
    **OPERATORS,
    **{other: one for one, other in (*COMPARISONS.items(), *OPERATORS.items())},
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
QUIET = {"strict", "repr", "help", "frozen", "slots"}  # keywords that change no answer
SILENT = {"logger", "warnings"}


@dataclass
class Mutant:
    """One change of one module."""

    module: str
    line: int
    name: str
    text: Callable[[], str]  # of the whole module
    state: str = ""
    seconds: float = 0.0
    said: str = ""  # the last words of its tests


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _skipped(node: ast.AST, parent: ast.AST, place: str) -> bool:
    """Annotations, decorators, texts, what type checkers see, and what is only told."""
    if place in {"annotation", "returns", "decorator_list", "bases"} or _is_text(node):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[0] in SILENT:
        return True
    if isinstance(node, (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return True
    return isinstance(parent, ast.keyword) and parent.arg in QUIET


def _changed(node: ast.AST, parent: ast.AST, place: str) -> list[ast.AST]:  # noqa: C901, PLR0912 (a table)
    """Every way in which a node can be changed: copies of it, with one thing in it swapped."""
    found: list[ast.AST] = []
    match node:
        case ast.Compare(left, ops, comparators):
            for position, op in enumerate(ops):
                if type(op) in SWAPPED:
                    swapped = [*ops[:position], SWAPPED[type(op)](), *ops[position + 1 :]]
                    found.append(ast.Compare(left, swapped, comparators))
        case ast.BinOp(left, op, right) if type(op) in SWAPPED and not _is_text(left) and not _is_text(right):
            found.append(ast.BinOp(left, SWAPPED[type(op)](), right))
        case ast.AugAssign(target, op, value) if type(op) in SWAPPED and not _is_text(value):
            found.append(ast.AugAssign(target, SWAPPED[type(op)](), value))
        case ast.BoolOp(op, values):
            found.append(ast.BoolOp(SWAPPED[type(op)](), values))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            found.append(operand)
        case ast.Constant(bool() as value):
            found.append(ast.Constant(not value))
        case ast.Constant(int() as value):
            found.append(ast.Constant({0: 1, 1: 0}.get(value, value + 1)))
        case ast.Constant(float() as value):
            found.append(ast.Constant({0.0: 1.0, 1.0: 0.0}.get(value, value * 2)))
        case ast.Call(ast.Name(name), args, keywords) if name in NAMES:
            found.append(ast.Call(ast.Name(NAMES[name], ast.Load()), args, keywords))
        case ast.Return(ast.expr() as value) if not isinstance(parent, ast.FunctionDef):
            if not isinstance(value, ast.Constant) and not _is_text(value):
                found.append(ast.Return(ast.Constant(None)))
        case ast.Name() | ast.Attribute() | ast.Call() if place == "test":
            found.append(ast.UnaryOp(ast.Not(), node))
    return found


def _places(node: ast.AST, owner: str = "") -> Iterator[tuple[ast.AST, ast.AST, str, str]]:
    """(node, parent, place in the parent, the function around it) of all that may be changed."""
    for place, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _skipped(child, node, place):
                continue
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            inner = f"{owner}.{child.name}".lstrip(".") if named else owner
            yield child, node, place, inner
            yield from _places(child, inner)


@contextlib.contextmanager
def _replaced(parent: ast.AST, place: str, old: ast.AST, new: ast.AST) -> Iterator[None]:
    kept = getattr(parent, place)
    setattr(parent, place, [new if one is old else one for one in kept] if isinstance(kept, list) else new)
    yield
    setattr(parent, place, kept)


def mutants_of(path: Path, module: str) -> list[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: list[Mutant] = []
    names: Counter[str] = Counter()
    for node, parent, place, owner in list(_places(tree)):
        around = [node, *_around(parent, parents)] if isinstance(node, ast.Constant) else [node]
        for changed in _changed(node, parent, place):
            before = [_line(one) for one in around]
            with _replaced(parent, place, node, changed):
                after = [_line(changed), *map(_line, around[1:])]
            fits = [n for n, one in enumerate(before) if n and len(one) < 100] or [0]
            name = f"{module}::{owner or '-'}: {before[fits[-1]]} -> {after[fits[-1]]}"
            names[name] += 1
            name += f" [{names[name]}]" if names[name] > 1 else ""
            text = partial(_text, tree, parent, place, node, changed)
            found.append(Mutant(module, getattr(node, "lineno", 0), name, text))
    return found


def _text(tree: ast.Module, *change: Any) -> str:
    """A module with a change."""
    with _replaced(*change):
        return ast.unparse(ast.fix_missing_locations(tree))


def _around(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    """What a number stands in, up to the expression or statement: a number alone says nothing."""
    while not isinstance(node, (ast.expr, ast.stmt)):
        yield node
        node = parents[id(node)]
    yield node


def _line(node: ast.AST) -> str:
    """A node in one line; of what holds other statements, its head."""
    return ast.unparse(node).strip().splitlines()[0]


def drawn(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """A sample that depends on the seed and on each mutant's name only."""
    order = sorted(mutants, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())
    return sorted(order[:count], key=lambda one: (one.module, one.line, one.name))


def tests_of(root: Path, module: str) -> list[str]:
    """The test files of a module, those that mirror it first."""
    area = next(area for area in AREAS if module.startswith(area))
    mirrored = FIRST.get(module.removesuffix(".py"), [Path(module).stem])
    files = []
    for place in AREAS[area]:
        path = root / place
        files += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]

    def rank(file: Path) -> int:
        name = file.stem.removeprefix("test_")
        return next((n for n, stem in enumerate(mirrored) if name.startswith(stem)), len(mirrored))

    return [str(file) for file in sorted(files, key=rank) if file.exists()]


@dataclass
class _Running:
    mutant: Mutant
    slot: int
    log: Path
    began: float = field(default_factory=time.monotonic)


class Workshop:
    """Copies of the package, one per process, in which mutants are tested."""

    def __init__(self, root: Path, place: Path, jobs: int, timeout: int) -> None:
        self.root, self.place, self.timeout = root, place, timeout
        self.free = list(range(jobs))
        for slot in self.free:
            shutil.copytree(root / PACKAGE, self._package(slot))

    def _package(self, slot: int) -> Path:
        return self.place / str(slot) / Path(PACKAGE).name

    def run(self, mutants: list[Mutant]) -> Iterator[Mutant]:
        """Test all of them, and yield each when its state is known."""
        waiting = list(reversed(mutants))
        running: dict[int, _Running] = {}
        try:
            while waiting or running:
                while waiting and self.free:
                    one = _Running(waiting.pop(), self.free.pop(), self.place / f"{len(waiting)}.log")
                    running[self._start(one)] = one
                for pid in self._ended(running):
                    one = running.pop(pid)
                    shutil.copy2(self.root / PACKAGE / one.mutant.module, self._package(one.slot) / one.mutant.module)
                    self.free.append(one.slot)
                    one.mutant.seconds = time.monotonic() - one.began
                    one.mutant.said = one.log.read_text(encoding="utf-8", errors="replace")[-2000:]
                    yield one.mutant
                time.sleep(0.02)
        finally:
            for pid in running:
                _end(pid)

    def _start(self, one: _Running) -> int:
        (self._package(one.slot) / one.mutant.module).write_text(one.mutant.text(), encoding="utf-8")
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a thread that does nothing, pandas brings it
            pid = os.fork()
        if pid:
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            return pid
        code = 70
        try:
            code = self._test(one)
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
            os._exit(code)

    def _test(self, one: _Running) -> int:
        """Run the tests in this process, which ends with it."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (self.timeout, self.timeout))
        log = os.open(one.log, os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(self.root)
        copy = str(self._package(one.slot).parent)
        sys.dont_write_bytecode = True
        sys.path.insert(0, copy)
        os.environ["PYTHONPATH"] = copy
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        options = ["-x", "-q", "--no-header", "--tb=short", "-p", "no:boosters-eval", "-p", "no:cacheprovider"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what is loaded already is not rewritten
        options += ["-p", "no:xdist", "-p", "no:cov", "--hypothesis-profile=mutants"]
        temporary = self.place / f"{one.slot}-files"
        return int(pytest.main([*options, f"--basetemp={temporary}", *tests_of(self.root, one.mutant.module)]))

    def _ended(self, running: dict[int, _Running]) -> list[int]:
        found = []
        for pid, one in running.items():
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                _end(pid, wait=False)  # what it may have left behind
                one.mutant.state = "survived" if os.waitstatus_to_exitcode(status) == 0 else "noticed"
            elif time.monotonic() - one.began > _PATIENCE * self.timeout:  # it waits for what never comes
                _end(pid)
                one.mutant.state = "noticed"
            else:
                continue
            found.append(pid)
        return found


def _end(pid: int, *, wait: bool = True) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    if wait:
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)


def explained(path: Path) -> dict[str, str]:
    """{mutant: why no test can see it}."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        name, mark, why = line.partition("  # ")
        if line.strip() and not line.startswith("#"):
            if not mark or not why.strip():
                raise ValueError(f"The line of {path.name} says no reason: {line}")
            found[name.strip()] = why
    return found


def main() -> int:
    """Draw, test, and tell."""
    parser = argparse.ArgumentParser(description="Break rules one at a time, and see whether a test notices.")
    parser.add_argument("--count", type=int, default=300, help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=0, help="which ones are drawn")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--timeout", type=int, default=120, help="CPU seconds after which a mutant counts as noticed")
    parser.add_argument("--only", default="", help="only mutants whose name contains this")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="another project")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # clean up as after Ctrl+C
    began, root = time.monotonic(), options.root.resolve()
    every = [one for path, module in _modules(root) for one in mutants_of(path, module)]
    chosen = [one for one in drawn(every, options.count, options.seed) if options.only in one.name]
    try:
        reasons = explained(root / EXPLAINED)
    except ValueError as error:
        print(error)
        return 2
    print(f"{len(chosen)} of {len(every)} mutants, seed {options.seed}")
    _prepare()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        workshop = Workshop(root, Path(place), options.jobs, options.timeout)
        for one in workshop.run(_unchanged(root, chosen)):
            if one.state == "noticed":
                print(f"The tests of {one.module} fail without any mutant:\n{one.said}")
                return 2
        for number, one in enumerate(workshop.run(chosen), 1):
            if one.state == "survived" and one.name in reasons:
                one.state = "explained"
            print(f"{number:4d}/{len(chosen)} {one.state:9s} {one.seconds:5.1f} s  {one.name}", flush=True)
    return _tell(root, chosen, every, reasons, time.monotonic() - began)


def _modules(root: Path) -> list[tuple[Path, str]]:
    package = root / PACKAGE
    found = []
    for area in AREAS:
        place = package / area
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            module = path.relative_to(package).as_posix()
            if module not in WORDING:
                found.append((path, module))
    return found


def _unchanged(root: Path, chosen: list[Mutant]) -> list[Mutant]:
    """One module per area as it is: only tests that pass can notice anything."""
    modules = {next(area for area in AREAS if one.module.startswith(area)): one.module for one in chosen}
    return [Mutant(name, 0, name, partial((root / PACKAGE / name).read_text, "utf-8")) for name in modules.values()]


def _prepare() -> None:
    """Load once what every process needs. The same examples are tried each time, and a failure is not made smaller."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads is not to be forked
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            import_module(name)
    settings.register_profile(
        "mutants",
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )


def _tell(root: Path, chosen: list[Mutant], every: list[Mutant], reasons: dict[str, str], seconds: float) -> int:
    counts = Counter(one.state for one in chosen)
    print(
        f"\n{len(chosen)} mutants in {seconds / 60:.1f} minutes: {counts['noticed']} noticed, "
        f"{counts['explained']} explained, {counts['survived']} unexplained"
    )
    known = {one.name for one in every}
    noticed = {one.name for one in chosen if one.state == "noticed"}
    for name in reasons:
        if name not in known:
            print(f"Stale: there is no such mutant (any more): {name}")
        elif name in noticed:
            print(f"Stale: a test notices it: {name}")
    for one in chosen:
        if one.state == "survived":
            print(f"\nSurvived, line {one.line}: {one.name}\n{_diff(root, one)}")
    return 1 if counts["survived"] else 0


def _diff(root: Path, mutant: Mutant) -> str:
    before = ast.unparse(ast.parse((root / PACKAGE / mutant.module).read_text(encoding="utf-8")))
    lines = difflib.unified_diff(before.splitlines(), mutant.text().splitlines(), lineterm="", n=1)
    return "\n".join(line[:160] for line in list(lines)[3:])


if __name__ == "__main__":
    sys.exit(main())
