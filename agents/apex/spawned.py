"""Actors' processes read the caller's script once more before they begin, as all spawned processes of Python do."""

from __future__ import annotations

import multiprocessing

UNGUARDED = 78  # exit code of a process that was asked to train while it read the script


def reads_script() -> bool:
    """Whether this is such a process, and not yet through; multiprocessing itself finds it out like this."""
    return getattr(multiprocessing.current_process(), "_inheriting", False)


def leave_if_unguarded() -> None:
    """End a process that reads the script, since no training may start there.

    Raises:
        SystemExit: It is one.
    """
    if reads_script():
        raise SystemExit(UNGUARDED)
