"""Runs cells side by side, each in its own process, up to the number of slots."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from comparison.cells import STATUS, read_status, write_json

POLL_SECONDS = 0.2
GRACE_SECONDS = 4.0
"""How long a stopped run may take to end by itself."""


@dataclass
class Job:
    """A run to do.

    Attributes:
        folder: holds its configuration, and its log and status afterwards.
        slots: how many of the slots it takes.
        command: the program; None trains the folder's cell.
    """

    folder: Path
    slots: int = 1
    command: list[str] | None = None
    process: subprocess.Popen | None = field(default=None, repr=False)
    started: float = 0.0


def run_jobs(
    jobs: list[Job], slots: int, time_limit: float | None, on_tick: Callable[[list[Job], list[Job]], None]
) -> None:
    """Run all jobs; one that fails or takes too long ends alone, and its status file says how.

    Args:
        jobs: in the order of their start, as far as slots are free; a job wider than all slots takes them all.
        slots: how many busy processes may run at a time.
        time_limit: seconds after which a run is stopped, or None.
        on_tick: called some times a second with the running jobs and those that ended since the last call.
    """
    waiting = list(jobs)
    running: list[Job] = []
    with _stopped_on_the_way_out(running):
        while waiting or running:
            for job in _startable(waiting, running, slots):
                waiting.remove(job)
                _start(job)
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


def _start(job: Job) -> None:
    """Start the run in its own process group, one computing thread, its output going to ``log.txt``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.setdefault("SDL_VIDEODRIVER", "dummy")
    with open(job.folder / "log.txt", "w", encoding="utf-8") as log:
        job.process = subprocess.Popen(
            job.command or [sys.executable, "-m", "comparison.run_cell", str(job.folder.resolve())],
            cwd=Path(__file__).parents[1],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    job.started = time.monotonic()


def _has_ended(job: Job, time_limit: float | None) -> bool:
    assert job.process is not None
    if job.process.poll() is not None:
        _signal(job, signal.SIGKILL)
        if not (job.folder / STATUS).exists():
            _write_end(job, "failed", f"the process ended with exit code {job.process.returncode}")
        return True
    if time_limit is not None and time.monotonic() - job.started > time_limit:
        _signal(job, signal.SIGINT)
        _reap(job)
        _write_end(job, "timed out", f"stopped after {time_limit:g} s")
        return True
    return False


def _write_end(job: Job, status: str, error: str) -> None:
    write_json(job.folder / STATUS, {"status": status, "error": error})


@contextmanager
def _stopped_on_the_way_out(running: list[Job]) -> Iterator[None]:
    """No process outlives the caller, whatever ends it."""
    try:
        yield
    finally:
        for job in running:
            _signal(job, signal.SIGINT)
        for job in running:
            _reap(job)
            if read_status(job.folder)["status"] == "missing":
                _write_end(job, "interrupted", "stopped from outside")


def _reap(job: Job) -> None:
    """Wait for a run that was asked to end, then end its whole process group."""
    assert job.process is not None
    with suppress(subprocess.TimeoutExpired):
        job.process.wait(GRACE_SECONDS)
    _signal(job, signal.SIGKILL)
    job.process.wait()


def _signal(job: Job, number: signal.Signals) -> None:
    assert job.process is not None
    with suppress(ProcessLookupError):
        os.killpg(job.process.pid, number)
