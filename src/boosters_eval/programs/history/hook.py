"""Where installed entry points still look for the observer."""

from boosters_eval.programs.history.index import HistoryObserver

__all__ = ["HistoryObserver"]
