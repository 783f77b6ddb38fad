"""The edges of a script: imports that may be missing, an early Ctrl+C, and an output that cannot take what is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MISSING, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
OWN = ("agents", "comparison", "gym_custom")


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports of what only the extra ``name`` installs; "" for what the package itself installs.

    Raises:
        SystemExit: A library is missing (exit code 2), or the user pressed Ctrl+C (130).
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in OWN:
            raise
        print(
            f"this script needs {error.name}: pip install --editable '.{f'[{name}]' if name else ''}'", file=sys.stderr
        )
        raise SystemExit(MISSING) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def run(main: Callable[[], int]) -> int:
    """The exit code of ``main``.

    Characters that the console lacks are replaced; a reader that has gone, such as ``head``, ends the script quietly.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it is None where it was closed
            stream.reconfigure(errors="replace")
    try:
        code = main()
        print(end="", flush=True)
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at its end
        return BROKEN_PIPE
