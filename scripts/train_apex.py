"""Train Ape-X on any Gymnasium env: ``python -m agents train``, where the ids of gym_custom are known too."""

import importlib
import sys
from collections.abc import Sequence

from extras import extra, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the process's exit code."""
    with extra("agents"):  # not at the top: actors read this file too, and do without torch
        from agents.programs import train
        from gym_custom.programs.arguments import find_own_modules
    importlib.import_module("gym_custom")  # registers the project's own ids
    find_own_modules()
    return train.main(argv, prog="python scripts/train_apex.py", env="NumpyCartPole-v1")


if __name__ == "__main__":
    sys.exit(run(main))
