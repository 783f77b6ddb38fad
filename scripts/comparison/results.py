"""Finished and unfinished runs below a log folder, read back for the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from comparison.algorithms import ALGORITHMS
from comparison.cells import Cell, read_config, read_status, run_folders
from comparison.curve import Curve, read_curve
from comparison.statistics import first_held


@dataclass(frozen=True)
class Run:
    """One run as its folder tells it."""

    cell: Cell
    folder: Path
    provenance: dict[str, Any]
    status: dict[str, Any]
    curve: Curve

    @property
    def finished(self) -> bool:
        """Whether it trained to its end and was tested."""
        return self.status["status"] == "finished"

    @property
    def solved_at(self) -> int | None:
        """Index into the curve where the threshold was first held for two evaluations in a row."""
        threshold = threshold_of(self.cell.env_id)
        return None if threshold is None else first_held(self.curve.mean_returns, threshold)


def threshold_of(env_id: str) -> float | None:
    """The id's reward threshold; None where it has none or is not registered here."""
    try:
        return gym.spec(env_id).reward_threshold
    except (gym.error.Error, ImportError):
        return None


def read_runs(log_folder: Path) -> list[Run]:
    """All runs below the folder, by id, algorithm and seed.

    Raises:
        FileNotFoundError: where there is none.
    """
    order = list(ALGORITHMS)
    runs = [_read_run(folder) for folder in run_folders(log_folder)]
    return sorted(runs, key=lambda run: (run.cell.env_id, order.index(run.cell.algo), run.cell.seed))


def _read_run(folder: Path) -> Run:
    cell, provenance = read_config(folder)
    try:
        curve = read_curve(folder)
    except OSError:
        curve = Curve(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))
    return Run(cell, folder, provenance, read_status(folder), curve)


def by_env(runs: list[Run]) -> dict[str, dict[str, list[Run]]]:
    """The runs grouped by env id, then by algorithm, in their order."""
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        groups.setdefault(run.cell.env_id, {}).setdefault(run.cell.algo, []).append(run)
    return groups
