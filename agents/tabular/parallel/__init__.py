"""Tabular Q-learning in JAX: from one to many thousands of independent agents in one compiled loop."""

from .records import Curve, History, QResult
from .training import train

__all__ = ["Curve", "History", "QResult", "train"]
