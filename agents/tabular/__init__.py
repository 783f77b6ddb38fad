"""Tabular Q-learning: NumPy here, thousands of agents at once in ``agents.tabular.parallel`` (needs JAX)."""

from .equations import epsilon_greedy, q_update
from .q_learning import QLearning

__all__ = ["QLearning", "epsilon_greedy", "q_update"]
