"""Baseline agents for any Gymnasium id: Ape-X, replay memories, tabular Q-learning, stable-baselines3 companions."""
