"""The edges of a program: a progress bar where one can be had, and an output that cannot take what is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

BROKEN_PIPE, INTERRUPTED = 141, 130  # what shells expect


def run(main: Callable[[], int]) -> int:
    """The exit code of ``main``.

    Characters that the console lacks are replaced; what is said to a closed console is lost; Ctrl+C and a reader that
    has gone, such as ``head``, end the program quietly.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  until the program ends
        getattr(sys, name).reconfigure(errors="replace")
    try:
        try:
            code: Any = main()
        except SystemExit as stop:  # after --help
            code = stop.code
        print(end="", flush=True)
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at its end
        return BROKEN_PIPE
    except KeyboardInterrupt:  # such as a second Ctrl+C, while the program says what the first one did
        return INTERRUPTED


class NoBar:
    """Stands in for tqdm's bar where none is wanted or tqdm is not installed."""

    def __enter__(self) -> NoBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        """Nothing to clear."""

    def update(self, steps: int) -> None:
        """Nothing to show."""

    def write(self, text: str) -> None:
        """Prints a line."""
        print(text, flush=True)


def progress_bar(total: int | None, unit: str, shown: bool) -> Any:
    """A bar of tqdm, which is among the extras, or what does without."""
    try:
        from tqdm import tqdm
    except ImportError:
        return NoBar()
    return tqdm(total=total, unit=unit, leave=False) if shown else NoBar()
