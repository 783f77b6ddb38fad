"""The edges of a script: imports that may be missing, and an early Ctrl+C."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MISSING, INTERRUPTED = 2, 130
OWN = ("agents", "benchmarks", "comparison", "gym_custom")


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
    """The exit code of ``main``, which may print to consoles that lack characters and to readers that go away.

    What it misses only once it has begun is named, too.
    """
    from gym_custom.programs.console import run

    with extra("all"):
        return run(main)
