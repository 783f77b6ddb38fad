"""Train one cell: ``python -m comparison.run_cell FOLDER [HERE [PARENT]]``; the folder holds its ``config.json``.

``HERE`` is where the comparison was started: an environment of one's own may lie there. With the
process ``PARENT``, whose group of its own this then is, the run ends too.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from comparison.algorithms import ALGORITHMS
from comparison.cells import STATUS, TEST_SEED, Cell, events_folder, read_config, write_json
from comparison.curve import CurveWriter, read_curve
from comparison.evaluation import greedy_episodes, seed_block
from comparison.progress import Progress

TEST_EPISODES = 100
WATCH_SECONDS = 0.5


def main(argv: list[str]) -> int:
    """Train, test and write how it ended; 0 on success, 1 where the run failed."""
    folder = Path(argv[0])
    sys.path += argv[1:2]
    if len(argv) > 2:
        _end_with(int(argv[2]))
    cell, provenance = read_config(folder)
    started = time.time()
    try:
        outcome = run(cell, folder, provenance)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        traceback.print_exc()
        outcome = {"status": "failed", "error": f"{type(error).__name__}: {error}"}
    write_json(folder / STATUS, {**outcome, "wall_seconds": time.time() - started, "provenance": provenance})
    return 0 if outcome["status"] == "finished" else 1


def _end_with(parent: int) -> None:
    """End this run's process group once the comparison is gone, however it ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def run(cell: Cell, folder: Path, provenance: dict[str, Any]) -> dict[str, Any]:
    """Train the cell and test its two checkpoints on episodes that chose nothing."""
    for package in cell.gym_packages:
        importlib.import_module(package)
    module = ALGORITHMS[cell.algo].load()
    header = {"algo": cell.algo, "env_id": cell.env_id, "seed": cell.seed, **provenance}
    curve, progress = CurveWriter(folder, header, events_folder(cell, folder)), Progress(folder)
    module.train(cell, folder, curve, progress)
    curve.close()
    seeds = seed_block(TEST_SEED, TEST_EPISODES)
    tests = {}
    for name, which in (("best", module.BEST), ("last", module.LAST)):
        episodes = greedy_episodes(module.load_policy(cell, folder, which), cell.env_id, seeds)
        tests[f"{name}_return"] = float(episodes.returns.mean())
        tests[f"{name}_returns"] = episodes.returns.tolist()
    written = read_curve(folder)
    return {
        "status": "finished",
        "timesteps": int(written.timesteps[-1]),
        "training_seconds": float(written.seconds[-1]),
        **tests,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
