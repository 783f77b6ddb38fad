"""Runs cells on a Ray cluster: each in an actor, whose node trains it and hands its files over."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ray

from comparison.cells import CONFIG, PROGRESS, STATUS, write_json
from comparison.progress import read_progress
from comparison.scheduler import RUN_CELL, Job, spawn

ROOT = Path(__file__).parents[2]
TRAVELLING = ("agents", "gym_custom", "scripts/comparison")
"""What the nodes get from here, so that all run the same code; what these import must be installed there."""

LOST = 1
"""The exit code of a run whose node is gone."""

ANSWER_SECONDS = 5.0
"""How long an address may take to answer; Ray itself would try for minutes."""


class Report(NamedTuple):
    """How far a run on another node is."""

    timesteps: int
    code: int | None
    files: dict[str, bytes]  # once it has ended, all that it wrote, by path below its folder


class Trainer:
    """The far end: trains one cell in a folder of its own.

    Args:
        config: content of the cell's ``config.json``.
    """

    def __init__(self, config: bytes) -> None:
        self._space = tempfile.TemporaryDirectory()
        self._folder = Path(self._space.name)
        (self._folder / CONFIG).write_bytes(config)
        program = [sys.executable, *RUN_CELL[1:]]  # this node's Python
        self._process = spawn([*program, str(self._folder), os.getcwd(), str(os.getpid())], self._folder)

    def report(self) -> Report:
        """Tell how far it is; the files come with the exit code."""
        code = self._process.poll()
        return Report(read_progress(self._folder), code, {} if code is None else self._files())

    def interrupt(self) -> None:
        """Ask the run to end."""
        self._process.interrupt()

    def _files(self) -> dict[str, bytes]:
        paths = (path for path in self._folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self._folder)): path.read_bytes() for path in paths}


class RemoteProcess:
    """The near end of a run: asks its trainer and fills the job's folder.

    Args:
        job: its folder holds the configuration.
    """

    def __init__(self, job: Job) -> None:
        self._folder = job.folder
        trainer = ray.remote(Trainer).options(num_cpus=job.slots)
        self._trainer: Any = trainer.remote((job.folder / CONFIG).read_bytes())
        self._asked = self._trainer.report.remote()
        self._code: int | None = None

    def poll(self) -> int | None:
        """Take a report that has come; a trainer that is gone fails the run."""
        if self._code is None and ray.wait([self._asked], timeout=0)[0]:
            try:
                self._take(ray.get(self._asked))
            except ray.exceptions.RayError as error:
                reason = str(error).strip().splitlines()[0]
                write_json(self._folder / STATUS, {"status": "failed", "error": f"the run was lost: {reason}"})
                self._code = LOST
        return self._code

    def interrupt(self) -> None:
        """Ask the far run to end."""
        self._trainer.interrupt.remote()

    def end(self) -> None:
        """End the trainer; the run watches for that and ends with it."""
        ray.kill(self._trainer)

    def _take(self, report: Report) -> None:
        for name, content in report.files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if report.code is None:
            write_json(self._folder / PROGRESS, {"timesteps": report.timesteps})
            self._asked = self._trainer.report.remote()
        self._code = report.code


@contextmanager
def cluster(address: str | None) -> Iterator[int]:
    """A cluster for the body, which gets the number of its cores; one that ran before is left running.

    Args:
        address: of a cluster; None starts one on this machine, unless ``RAY_ADDRESS`` names another.

    Raises:
        ConnectionError: nothing answers there.
    """
    if address is not None:
        _require_answer(address)
    code = {"py_modules": [str(ROOT / name) for name in TRAVELLING]}
    if address is None and "RAY_ADDRESS" not in os.environ:  # without a word Ray might wait for one that has ended
        ray.init(address="local", runtime_env=code, log_to_driver=False, include_dashboard=False)
    else:
        ray.init(address=address, runtime_env=code, log_to_driver=False)
    try:
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:
        return  # "auto" and the like, which Ray looks up
    try:
        socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Ray cluster answers at {address!r}: {error}") from None
