"""Tabular Q-learning in JAX: from one to many thousands of independent agents in one compiled loop."""

try:
    import jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    sentence = "agents.tabular.parallel needs JAX: pip install --editable '.[jax]'"
    raise ModuleNotFoundError(sentence, name="jax") from None

from .records import Curve, History, QResult
from .training import train
from .watching import Watched

__all__ = ["Curve", "History", "QResult", "Watched", "train"]
