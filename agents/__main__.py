"""``python -m agents train``."""

from __future__ import annotations

import os
import sys
from typing import Any

BROKEN_PIPE, INTERRUPTED = 141, 130  # what shells expect
USAGE = """usage: python -m agents train [--help] [OPTIONS]

Programs of agents; each has its own --help.

  train  train Ape-X on any Gymnasium env"""


def main(argv: list[str] | None = None) -> int:
    """Hands the arguments to the program that the first of them names."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["train"]:
        return _train(words[1:])
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    print(f"agents: the program must be train, not {words[0]!r}", file=sys.stderr)
    return 2


def _train(words: list[str]) -> int:
    try:
        from agents.programs import train
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "agents":
            raise
        print(f"agents: training needs {error.name}, which the extra [agents] installs", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return train.main(words)


def run() -> int:
    """The exit code; what is said to a closed console is lost, and a reader that has gone ends the program quietly."""
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
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
