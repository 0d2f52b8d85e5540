"""What the functions that reproduce the rows of a paper are given: `split`, the rows that libraries stand on, too."""

from boosters_eval.programs.paper.rows import PaperRows, split

__all__ = ["PaperRows", "split"]
