"""Write the report of a comparison anew from its files, without training: ``python scripts/report.py logs``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from extras import extra, run

with extra("report"):
    from comparison import pages


def main(argv: list[str] | None = None) -> int:
    """Write ``report.html``, ``report.md`` and ``runs.csv``; 0 on success, 2 where there are no runs."""
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("log_folder", nargs="?", type=Path, default=Path("logs"), help="the comparison's log folder")
    parse.add_argument("--gym-packages", nargs="+", default=["gym_custom"], help="modules that register the ids")
    arguments = parse.parse_args(argv)
    try:
        for package in arguments.gym_packages:
            importlib.import_module(package)
        pages.write(arguments.log_folder)
    except (OSError, ImportError, ValueError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    print(f"Report: {arguments.log_folder / 'report.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
