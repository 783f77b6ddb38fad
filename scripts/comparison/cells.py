"""One cell of a comparison: an algorithm on an env id with a seed, and the folder that holds its run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CONFIG, STATUS, CURVE, PROGRESS = "config.json", "status.json", "evaluations.csv", "progress.json"

SEED_SPACING = 1_000
"""Rows of one run start from seeds ``training_seed + row``; runs are spaced so that no two share a start state."""

EVALUATION_SEED = 1 << 30
"""First of the seeds of the episodes that draw the curves and choose the best checkpoint; Ape-X's evaluator has the
same, and its actors only get seeds below."""

TEST_SEED = EVALUATION_SEED + 1_000_000
"""First of the seeds of the final test episodes, which choose nothing."""


@dataclass(frozen=True)
class Cell:
    """What is run, in resolved values; everything a run needs is in here.

    Attributes:
        algo: name of the algorithm, a key of ``algorithms.ALGORITHMS``.
        env_id: Gymnasium id.
        seed: number of the repetition, 0 or more.
        total_timesteps: env steps to train for.
        max_seconds: training seconds after which the run ends, or None.
        eval_freq: env steps between two evaluations.
        eval_episodes: greedy episodes of one evaluation.
        settings: the algorithm's hyper-parameters.
        gym_packages: modules to import so that the id is registered.
        tensorboard_log: where TensorBoard events go, below it by the run's name; None keeps them in the run's folder.
    """

    algo: str
    env_id: str
    seed: int
    total_timesteps: int
    eval_freq: int
    eval_episodes: int
    max_seconds: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    gym_packages: tuple[str, ...] = ("gym_custom",)
    tensorboard_log: str | None = None

    @property
    def training_seed(self) -> int:
        """Seed of the algorithm and of its first env row."""
        return SEED_SPACING * (self.seed + 1)

    @property
    def name(self) -> str:
        """Path of the run below the log folder, such as ``dqn/NumpyCartPole-v1_0``."""
        return f"{self.algo}/{folder_name(self.env_id)}_{self.seed}"


def events_folder(cell: Cell, folder: Path) -> Path:
    """Where the run's TensorBoard events go."""
    return folder / "tensorboard" if cell.tensorboard_log is None else Path(cell.tensorboard_log) / cell.name


def folder_name(env_id: str) -> str:
    """The id without characters that a path cannot hold."""
    return env_id.replace(":", "-").replace("/", "-")


def write_json(path: Path, content: Any) -> None:
    """Write to a temporary name and rename, so that a reader never sees half a file."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def write_config(folder: Path, cell: Cell, provenance: dict[str, Any]) -> None:
    """Make the run's folder with its resolved configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, {**asdict(cell), "provenance": provenance})


def run_folders(log_folder: Path) -> list[Path]:
    """The folders of all runs below a log folder.

    Raises:
        FileNotFoundError: where there is none.
    """
    folders = [path.parent for path in log_folder.glob(f"*/*/{CONFIG}")]
    if not folders:
        raise FileNotFoundError(f"{log_folder} holds no runs: expected ALGO/ENV_SEED/{CONFIG} below it.")
    return folders


def read_config(folder: Path) -> tuple[Cell, dict[str, Any]]:
    """The cell and the provenance that :func:`write_config` wrote."""
    content = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    provenance = content.pop("provenance")
    content["gym_packages"] = tuple(content["gym_packages"])
    return Cell(**content), provenance


def read_status(folder: Path) -> dict[str, Any]:
    """How the run ended; ``{"status": "missing"}`` where nothing says so."""
    try:
        return json.loads((folder / STATUS).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return {"status": "missing"}
