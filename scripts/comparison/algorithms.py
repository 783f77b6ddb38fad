"""The algorithms that can be compared, by name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Algorithm:
    """What the comparison knows of an algorithm.

    Attributes:
        label: its name in figures and tables.
        module: with ``train(cell, folder, curve, progress)`` and ``load_policy(cell, folder, which)``, imported in
            the run's own process only.
        processes: busy processes of one run, for the slot plan.
        color: its colour in every figure (Okabe & Ito's palette, told apart by colour-blind readers).
    """

    label: str
    module: str
    processes: int
    color: str

    def load(self) -> ModuleType:
        """Import the module that trains it."""
        return importlib.import_module(self.module)


ALGORITHMS = {
    "apex": Algorithm("Ape-X", "comparison.apex_runs", 2, "#D55E00"),
    "dqn": Algorithm("DQN (SB3)", "comparison.sb3_runs", 1, "#0072B2"),
    "prioritized_dqn": Algorithm("Prioritized DQN", "comparison.sb3_runs", 1, "#CC79A7"),
    "ppo": Algorithm("PPO (SB3)", "comparison.sb3_runs", 1, "#009E73"),
    "a2c": Algorithm("A2C (SB3)", "comparison.sb3_runs", 1, "#E69F00"),
    "q_learning": Algorithm("Q-learning", "comparison.tabular_runs", 1, "#56B4E9"),
}
