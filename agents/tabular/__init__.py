"""Tabular Q-learning: NumPy here, thousands of agents at once in ``agents.tabular.parallel`` (needs JAX)."""

from .q_learning import QLearning, epsilon_greedy, q_update

__all__ = ["QLearning", "epsilon_greedy", "q_update"]
