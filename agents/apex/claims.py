"""One process at a time trains in a run folder."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

NAME = "running.json"


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """While entered, nobody else of this machine trains in the folder; the claim of a process that is gone is void.

    Raises:
        ValueError: Another training goes on there.
    """
    refuse_claimed(folder)
    path = folder / NAME
    path.write_text(json.dumps(_claim(psutil.Process())))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have gone
            path.unlink(missing_ok=True)


def refuse_claimed(folder: Path) -> None:
    """Raise a ValueError where a training goes on in the folder."""
    owner = _read(folder / NAME)
    if owner is not None and _lives(owner):
        raise ValueError(f"process {owner['pid']} trains in {folder} just now: wait for its end, or stop it first")


def _claim(process: psutil.Process) -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": process.pid, "since": process.create_time()}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def _lives(owner: dict[str, Any]) -> bool:
    try:
        return _claim(psutil.Process(owner["pid"])) == owner
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False
