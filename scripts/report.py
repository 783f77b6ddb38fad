"""Write the report of a comparison anew from its files, without training."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from extras import extra, run

with extra(""):
    from comparison.cells import run_folders

    from gym_custom.programs.arguments import WRONG, Parser


EXAMPLES = """examples:
  python scripts/report.py logs
  python scripts/report.py results --summary README.md
"""


def main(argv: list[str] | None = None) -> int:
    """Write ``report.html``, ``report.md`` and ``runs.csv``; 0 on success, 2 where there are no runs."""
    parse = Parser(description=__doc__, epilog=EXAMPLES)
    parse.add_argument("log_folder", nargs="?", type=Path, default=Path("logs"), help="the comparison's log folder")
    parse.add_argument("--gym-packages", nargs="+", default=["gym_custom"], help="modules that register the ids")
    parse.add_argument("--summary", type=Path, metavar="PAGE", help="a Markdown page that gets table and picture too")
    try:
        arguments = parse.parse_args(argv)
        for package in arguments.gym_packages:
            importlib.import_module(package)
        run_folders(arguments.log_folder)
        with extra("agents,report"):  # not at the top: wrong words need not wait for it
            from comparison import pages
        pages.write(arguments.log_folder)
        if arguments.summary is not None:
            pages.write_summary(arguments.log_folder, arguments.summary)
    except WRONG as error:
        return parse.refuse(error)
    print(f"Report: {arguments.log_folder / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
