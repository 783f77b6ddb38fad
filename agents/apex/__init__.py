"""Ape-X: distributed prioritized experience replay (Horgan et al. 2018), standalone.

``ApeX`` and ``ApeXConfig`` are all that a user needs; torch is loaded when ``ApeX`` is first touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.apex.config import ApeXConfig
from agents.apex.spawned import reads_script
from agents.extras import missing_extra

if TYPE_CHECKING:
    from agents.apex.agent import ApeX

__all__ = ["ApeX", "ApeXConfig"]


def __getattr__(name: str) -> Any:
    if name == "ApeX":
        return _Later if reads_script() else _apex()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _apex() -> type[ApeX]:
    try:
        from agents.apex.agent import ApeX
    except ModuleNotFoundError as error:
        raise missing_extra("agents.apex", error) from None
    return ApeX


class _Later:
    """ApeX for an actor's process that reads the caller's script: torch is loaded there only if the script insists."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _apex()(*args, **kwargs)

    @staticmethod
    def load(*args: Any, **kwargs: Any) -> ApeX:
        return _apex().load(*args, **kwargs)
