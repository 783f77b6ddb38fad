"""How far a run is, told through a small file that the scheduler reads."""

from __future__ import annotations

import json
import time
from pathlib import Path

from comparison.cells import PROGRESS, write_json


class Progress:
    """Writes the number of env steps trained, at most twice a second."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PROGRESS
        self._next = 0.0

    def update(self, timesteps: int) -> None:
        """Tell how far the run is."""
        if (now := time.perf_counter()) >= self._next:
            self._next = now + 0.5
            write_json(self._path, {"timesteps": timesteps})


def read_progress(folder: Path) -> int:
    """Env steps trained so far; 0 where nothing says."""
    try:
        return int(json.loads((folder / PROGRESS).read_text(encoding="utf-8"))["timesteps"])
    except (OSError, ValueError, KeyError):
        return 0
