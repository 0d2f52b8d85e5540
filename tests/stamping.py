"""An executor that pretends its cells ran on other machines, as the nodes of a cluster are."""

from boosters_eval.core.machine import MachineInfo
from tiny import KeptPool

SLOW = MachineInfo(
    cpu_model="Slow CPU", cpu_cores=4, cpu_threads=8, memory_gb=15.6, os="Linux 6.1", architecture="x86_64"
)
FAST = MachineInfo(
    cpu_model="Fast CPU", cpu_cores=16, cpu_threads=32, memory_gb=62.8, os="Linux 6.1", architecture="x86_64"
)


def by_seed(cell):
    """Even seeds on the fast machine, odd ones on the slow one."""
    return SLOW if cell.repeat.seed % 2 else FAST


class Stamping(KeptPool):
    """The local pool that stays, whose outcomes are stamped with the machine that `place` gives to their cell."""

    def __init__(self, jobs=1, *, place=by_seed):
        super().__init__(jobs)
        self._place = place
        self._machines = {}

    def machines(self):
        return dict(self._machines)

    def run(self, works, started):
        works = list(works)
        cells = {work.cell.key: work.cell for work in works}
        for outcome in super().run(works, started):
            machine = self._place(cells[outcome.key])
            self._machines[machine.digest] = machine  # a node is known when it answers
            yield outcome.model_copy(update={"machine": machine.digest})
