"""``python -m gym_custom demo|play|check``."""

from __future__ import annotations

import sys

from gym_custom.programs import check, demo, play
from gym_custom.programs.arguments import Parser, WrongArguments
from gym_custom.programs.console import run

PROGRAMS = {"demo": demo, "play": play, "check": check}
DESCRIPTION = """Programs of gym_custom; each has its own --help.

  demo   show an environment in a window, or write a GIF or an MP4
  play   play it with the keyboard
  check  check worlds against the contract, your own too
"""


def main(argv: list[str] | None = None) -> int:
    """Hands the arguments to the program that the first of them names."""
    parse = Parser(prog="python -m gym_custom", description=DESCRIPTION)
    parse.add_argument("program", choices=list(PROGRAMS), metavar="demo|play|check")
    words = sys.argv[1:] if argv is None else argv
    words = words or ["--help"]
    try:
        name = parse.parse_args(words[:1]).program
    except WrongArguments as error:
        return parse.refuse(error)
    return PROGRAMS[name].main(words[1:])


if __name__ == "__main__":
    sys.exit(run(main))
