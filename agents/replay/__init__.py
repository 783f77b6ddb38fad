"""Replay memories: uniform, prioritized and hindsight, with one vocabulary."""

from agents.replay.hindsight import HindsightMemory
from agents.replay.memory import ReplayMemory
from agents.replay.prioritized import PrioritizedMemory
from agents.replay.sum_tree import SumTree
from agents.replay.uniform import UniformMemory

__all__ = ["HindsightMemory", "PrioritizedMemory", "ReplayMemory", "SumTree", "UniformMemory"]
