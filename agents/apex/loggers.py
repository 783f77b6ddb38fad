"""Where figures go: anything with ``write(step, mapping)``; here CSV files and TensorBoard."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Logger(Protocol):
    """One method: give figures of one moment."""

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        """Record figures at an env step."""


class CsvLogger:
    """Appends rows to a CSV file; the first row settles the columns, and an existing file is continued.

    Args:
        path: of the file, made with the first row.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        """Append one row, whole or not at all as far as the file system allows, and close the file."""
        row = {"env_steps": step, **figures}
        fresh = not self._path.exists() or self._path.stat().st_size == 0
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if fresh:
                writer.writeheader()
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})


def rewind(path: Path, step: int) -> None:
    """Take out of a CSV file the rows after an env step: a resumed run will write them again."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    kept = [row for row in rows if len(row) == len(header) and int(row[0]) <= step]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *kept])


class TensorBoardLogger:
    """Writes scalars for TensorBoard.

    Args:
        folder: for the event file.
    """

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def under(self, prefix: str) -> Logger:
        """Give a logger that writes its figures below a heading."""
        return _Heading(self, prefix)

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        """Add one point to each figure's curve."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()


class _Heading:
    def __init__(self, logger: TensorBoardLogger, prefix: str) -> None:
        self._logger, self._prefix = logger, prefix

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        self._logger.write(step, {f"{self._prefix}/{name}": value for name, value in figures.items()})


class Loggers:
    """Several loggers as one."""

    def __init__(self, *loggers: Logger) -> None:
        self._loggers = loggers

    def write(self, step: int, figures: Mapping[str, Any]) -> None:
        """Hand the figures to each."""
        for logger in self._loggers:
            logger.write(step, figures)
