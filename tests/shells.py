"""Plans whose cells are scripts of a shell, and how tests run them."""

from boosters_eval import LocalPool, Plan, Repeat, execute
from tiny import shared_pool

SHELLS = ("sh", "bash")


def plan_of(module, scripts, *, seeds=(1, 2), targets=SHELLS, name_suffix="", **fields):
    specs = [module.ShellSpec(name=name + name_suffix, script=script, **fields) for name, script in scripts.items()]
    return Plan.grid("shells", specs, targets, [Repeat(seed) for seed in seeds])


def run(plan, *, jobs=2, **options):
    return execute(plan, shared_pool(jobs), **options)


def run_afresh(plan, *, jobs=2, **options):
    """For what is about the start of processes, or could harm those of the next test."""
    with LocalPool(jobs) as pool:
        return execute(plan, pool, **options)
