"""Ctrl+C, SIGTERM and SIGHUP at moments of our choosing, so that what is saved is always whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

FORCED = 3  # the signal after which nothing is waited for any more
HANG_UP = getattr(signal, "SIGHUP", None)  # the terminal has gone; not on every system


class Interruption:
    """While entered, SIGINT, SIGTERM and SIGHUP only leave a note, and ``check`` raises at the next safe place.

    Outside the main thread, where Python allows no handlers, it does nothing. Where SIGHUP is ignored, as behind
    ``nohup``, it stays ignored.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._count = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        """Take over the signals."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in _numbers()}
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt after SIGINT, SystemExit with 128 and its number after another."""
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number is not None:
            raise SystemExit(128 + self._number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        self._count += 1
        if self._count >= FORCED:
            self.check()


def _numbers() -> list[int]:
    hang_up = [] if HANG_UP is None or signal.getsignal(HANG_UP) is signal.SIG_IGN else [HANG_UP]
    return [signal.SIGINT, signal.SIGTERM, *hang_up]


@contextmanager
def handlers_kept() -> Iterator[None]:
    """What is called in here may put its own handlers in place of SIGINT's and SIGTERM's; afterwards they are back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def last_interrupt() -> Iterator[None]:
    """Around what a program ends with: once Ctrl+C has stopped it, another one no longer breaks into its last words.

    SIGINT is ignored from then on. What is called in here takes the signal over itself, as ``Interruption`` does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN), False
    try:
        yield
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        if not interrupted:
            signal.signal(signal.SIGINT, before)
