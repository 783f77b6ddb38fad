"""Long compiled runs that tell how far they are, and that Ctrl+C ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import jax


class Stopped(Exception):
    """Raised within a compiled run to end it."""


class Watched:
    """Hands on how many steps a compiled run has made, until the user has had enough.

    Who waits for compiled code is deaf to Ctrl+C. So the code runs in a thread of its own, and after Ctrl+C it ends
    at the next stretch of which it tells.

    Args:
        told: is given the number of steps of each stretch.
    """

    def __init__(self, told: Callable[[int], Any]) -> None:
        self._told, self._stop = told, Event()

    def __call__(self, steps: int) -> None:
        """Called by the run after each stretch."""
        if self._stop.is_set():
            raise Stopped
        self._told(steps)

    def run(self, compiled: Callable[[], Any]) -> Any:
        """What ``compiled()`` gives, once it is there; traced and compiled beforehand, since threads trace anew.

        Raises:
            KeyboardInterrupt: the user pressed Ctrl+C; the run has ended.
        """

        def finish() -> Any:
            result = jax.block_until_ready(compiled())
            jax.effects_barrier()
            return result

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(finish)
            try:
                return future.result()
            except KeyboardInterrupt:
                self._stop.set()
                raise


def _unless_stopped(record: logging.LogRecord) -> bool:
    return record.exc_info is None or record.exc_info[0] is not Stopped


logging.getLogger("jax._src.debugging").addFilter(_unless_stopped)  # it writes a traceback of what a callback raises
