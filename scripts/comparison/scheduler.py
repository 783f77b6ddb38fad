"""Runs cells side by side, each in a process of its own, up to the number of slots."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from comparison.cells import STATUS, read_status, write_json

POLL_SECONDS = 0.2
RUN_CELL = (sys.executable, "-m", "comparison.run_cell")
GRACE_SECONDS = 3.0
"""How long a stopped run may take to end by itself."""


class Process(Protocol):
    """A run under way, on this machine or elsewhere."""

    def poll(self) -> int | None:
        """Give the exit code; None while it runs."""

    def interrupt(self) -> None:
        """Ask it to end, as Ctrl+C does."""

    def end(self) -> None:
        """End it, and whatever it started."""


class GroupProcess(subprocess.Popen):
    """A process on this machine with a group of its own, which its children share."""

    def interrupt(self) -> None:
        """Send SIGINT to the group."""
        self._signal_group(signal.SIGINT)

    def end(self) -> None:
        """Send SIGKILL to the group."""
        self._signal_group(signal.SIGKILL)
        self.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


@dataclass
class Job:
    """A run to do.

    Attributes:
        folder: holds its configuration, and its log and status afterwards.
        slots: how many of the slots it takes.
    """

    folder: Path
    slots: int = 1
    process: Process | None = field(default=None, repr=False)
    started: float = 0.0


def train_here(job: Job) -> GroupProcess:
    """Train the folder's cell in a process beside this one, whose output goes to ``log.txt``."""
    return spawn([*RUN_CELL, str(job.folder.resolve()), os.getcwd(), str(os.getpid())], job.folder)


def spawn(command: list[str], folder: Path) -> GroupProcess:
    """Start a program with one computing thread; its output goes to the folder's ``log.txt``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.setdefault("SDL_VIDEODRIVER", "dummy")
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        return GroupProcess(
            command,
            cwd=Path(__file__).parents[1],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def run_jobs(
    jobs: list[Job],
    slots: int,
    time_limit: float | None,
    on_tick: Callable[[list[Job], list[Job]], None],
    start: Callable[[Job], Process] = train_here,
) -> None:
    """Run all jobs; one that fails or takes too long ends alone, and its status file says how.

    Args:
        jobs: in the order of their start, as far as slots are free; a job wider than all slots takes them all.
        slots: how many busy processes may run at a time.
        time_limit: seconds after which a run is stopped, or None.
        on_tick: called some times a second with the running jobs and those that ended since the last call.
        start: begins a job.
    """
    waiting = list(jobs)
    running: list[Job] = []
    with _stopped_on_the_way_out(running):
        while waiting or running:
            for job in _startable(waiting, running, slots):
                waiting.remove(job)
                job.process, job.started = start(job), time.monotonic()
                running.append(job)
            time.sleep(POLL_SECONDS)
            ended = [job for job in running if _has_ended(job, time_limit)]
            running[:] = [job for job in running if job not in ended]
            on_tick(running, ended)


def _startable(waiting: list[Job], running: list[Job], slots: int) -> Iterator[Job]:
    free = slots - sum(min(job.slots, slots) for job in running)
    for job in list(waiting):
        if min(job.slots, slots) <= free:
            free -= min(job.slots, slots)
            yield job


def _has_ended(job: Job, time_limit: float | None) -> bool:
    assert job.process is not None
    if (code := job.process.poll()) is not None:
        job.process.end()
        if not (job.folder / STATUS).exists():
            _write_end(job, "failed", f"the process ended with exit code {code}")
        return True
    if time_limit is not None and time.monotonic() - job.started > time_limit:
        job.process.interrupt()
        _reap(job.process, time.monotonic() + GRACE_SECONDS)
        _write_end(job, "timed out", f"stopped after {time_limit:g} s")
        return True
    return False


def _write_end(job: Job, status: str, error: str) -> None:
    write_json(job.folder / STATUS, {"status": status, "error": error})


@contextmanager
def _stopped_on_the_way_out(running: list[Job]) -> Iterator[None]:
    """No process outlives the caller, whatever ends it (but SIGKILL, for which the runs watch)."""
    with _signals({number: _leave for number in (signal.SIGTERM, signal.SIGHUP)}):
        try:
            yield
        finally:
            with _signals({signal.SIGINT: signal.SIG_IGN}):  # a second Ctrl+C does not cut this short
                _stop(running)


def _stop(running: list[Job]) -> None:
    started = [(job, job.process) for job in running if job.process is not None]
    for _, process in started:
        process.interrupt()
    deadline = time.monotonic() + GRACE_SECONDS
    for job, process in started:
        _reap(process, deadline)
        if read_status(job.folder)["status"] == "missing":
            _write_end(job, "interrupted", "stopped from outside")


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _signals(handlers: dict[signal.Signals, Any]) -> Iterator[None]:
    """Handle signals otherwise for a while; outside the main thread, where Python allows no handlers, do not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _reap(process: Process, deadline: float) -> None:
    """Wait for a run that was asked to end, then end whatever is left of it."""
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 4)
    process.end()
