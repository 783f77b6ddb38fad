"""``python -m agents train``."""

from __future__ import annotations

import sys

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
        return 130
    return train.main(words)


if __name__ == "__main__":
    sys.exit(main())
