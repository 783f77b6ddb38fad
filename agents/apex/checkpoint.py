"""Checkpoints: one file with tensors, arrays and JSON, written whole or not at all, read without executing anything.

The file is a ZIP of ``meta.json`` (settings, counters, random states), ``tensors.pt`` (read with ``weights_only``) and
``arrays.npz`` (read without pickle).
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch

FORMAT = "gym_custom Ape-X checkpoint"
VERSION = 1


class Checkpoint(NamedTuple):
    """What a file holds."""

    meta: dict[str, Any]  # JSON types
    tensors: dict[str, Any]  # dicts of tensors and plain numbers
    arrays: dict[str, np.ndarray]


class CheckpointError(ValueError):
    """The file is no checkpoint, or not a whole one."""


def save(path: str | Path, checkpoint: Checkpoint) -> None:
    """Write to a temporary name beside the path, then rename: the old file stays until the new one is whole."""
    with _replacing(path) as file:
        _write(file, checkpoint)


@contextmanager
def _replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that takes the path's place once all is written."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ValueError(f"{str(path)!r} is no file, so it cannot be replaced by one")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write(file: Any, checkpoint: Checkpoint) -> None:
    tensors, arrays = io.BytesIO(), io.BytesIO()
    torch.save(checkpoint.tensors, tensors)
    np.savez(arrays, allow_pickle=False, **checkpoint.arrays)
    meta = {"format": FORMAT, "version": VERSION, **checkpoint.meta}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("meta.json", json.dumps(meta))
        archive.writestr("tensors.pt", tensors.getvalue())
        archive.writestr("arrays.npz", arrays.getvalue())


def load(path: str | Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is truncated, foreign or of another version; nothing of it was executed.
    """
    try:
        if any(name.endswith("/data.pkl") for name in _names(path)):
            raise CheckpointError(f"{path} holds weights alone, which load_weights reads, and is no whole checkpoint")
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read("meta.json"))
            if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("version") != VERSION:
                raise CheckpointError(f"{path} is no Ape-X checkpoint of version {VERSION}")
            tensors = torch.load(io.BytesIO(archive.read("tensors.pt")), map_location="cpu", weights_only=True)
            with np.load(io.BytesIO(archive.read("arrays.npz")), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
    except (FileNotFoundError, CheckpointError):
        raise
    except Exception as error:
        raise CheckpointError(f"{path} is no whole Ape-X checkpoint ({type(error).__name__})") from error
    return Checkpoint(meta, tensors, arrays)


def _names(path: str | Path) -> list[str]:
    """What a ZIP holds: data.pkl below a folder if torch.save wrote it; nothing if it is the rest of another file."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist() if min(part.header_offset for part in archive.infolist()) == 0 else []


def save_tensors(path: str | Path, tensors: dict[str, Any]) -> None:
    """Write weights alone for ``torch.load(path, weights_only=True)``, whole or not at all."""
    with _replacing(path) as file:
        torch.save(tensors, file)


def load_tensors(path: str | Path) -> dict[str, Any]:
    """Read weights alone, or a checkpoint's policy.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it is something else; nothing of it was executed.
    """
    try:
        if zipfile.is_zipfile(path) and "meta.json" in _names(path):
            return load(path).tensors["policy"]
        return torch.load(path, map_location="cpu", weights_only=True)
    except (FileNotFoundError, CheckpointError):
        raise
    except Exception as error:
        raise CheckpointError(f"{path} is no file of weights ({type(error).__name__})") from error
