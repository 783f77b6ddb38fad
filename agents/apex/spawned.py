"""What all processes that the learner spawns have in common: how they begin, and how they end.

Like all spawned processes of Python they read the caller's script once more before they begin.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # what NumPy's libraries and torch read
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


def end_with_parent() -> None:
    """Leave at once when the learner's process is gone, even out of a step that never returns."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def ctrl_c_later() -> Iterator[None]:
    """Processes started in here never see Ctrl+C, not even before they ignore it; the caller sees it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else spawning does that, which unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes started meanwhile compute on one thread each, or they would take each other's cores."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
