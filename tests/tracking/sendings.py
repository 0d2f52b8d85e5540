"""Sending to the tracker that notes what it is told, and what that was."""

from boosters_eval.tracking.sender import Sending


def send(noting, folder, attempt=1, *, ended=True):
    """Send in this process, as the tracker's own would; returns what was said."""
    said = []
    sending = Sending(lambda key: noting.NotingTracker(folder.path / f"{key}.json"), lambda **reply: said.append(reply))
    sending.send(folder, attempt, ended=ended)
    return said


def calls(noting, what):
    return [call for call in noting.noted() if call["what"] == what]
