"""Where a build of a library lies that is not the one installed in this environment."""

from __future__ import annotations

from boosters_eval.core.model import Model


class Installation(Model):
    """A build as plain data, so that another process can use it: what it is a build of, and what to import it from."""

    library: str
    version: str
    digest: str  # of the library's own files; of an isolated build also of the versions beside it
    path: tuple[str, ...]  # folders that come first on the import path
    isolated: bool = False  # nothing of this environment is importable besides
    packages: str = ""  # then: what there is besides, with versions
    stamp: str = ""  # of the files as they were when it was named; they must still be so when they are imported
