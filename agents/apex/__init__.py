"""Ape-X: distributed prioritized experience replay (Horgan et al. 2018), standalone.

``ApeX`` and ``ApeXConfig`` are all that a user needs; torch is loaded when ``ApeX`` is first touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.apex.config import ApeXConfig

if TYPE_CHECKING:
    from agents.apex.agent import ApeX

__all__ = ["ApeX", "ApeXConfig"]


def __getattr__(name: str) -> Any:
    if name == "ApeX":
        from agents.apex.agent import ApeX

        return ApeX
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
