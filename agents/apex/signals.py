"""Ctrl+C and SIGTERM at moments of our choosing, so that what is saved is always whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

FORCED = 3  # the signal after which nothing is waited for any more
TERMINATED = 128 + signal.SIGTERM


class Interruption:
    """While entered, SIGINT and SIGTERM only leave a note, and ``check`` raises at the next safe place.

    Outside the main thread, where Python allows no handlers, it does nothing.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        """Take over both signals."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt after SIGINT, SystemExit after SIGTERM."""
        if self._number == signal.SIGTERM:
            raise SystemExit(TERMINATED)
        if self._number is not None:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self._count += 1
        if self._count >= FORCED:
            self.check()
