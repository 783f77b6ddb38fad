"""The infos of a batch: for each key an array over rows, and a mask of the rows that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ALL_ROWS = slice(None)


class BatchInfos:
    """Collects infos as Gymnasium's `SyncVectorEnv` does.

    Args:
        labels: Names for entries that are indices (``World.labels``).
        num_envs: Number of rows.
    """

    def __init__(self, labels: Mapping[str, tuple[str, ...]], num_envs: int):
        self._labels = {key: np.array(names, object) for key, names in labels.items()}
        self._num_envs = num_envs

    def fill(self, infos: dict[str, Any], rows: Any, info: Mapping[str, Any]) -> None:
        """Writes the info of some rows, values of shape (m,) or (), into arrays over all rows."""
        for key, value in info.items():
            value = np.asarray(value)
            if key in self._labels:
                value = self._labels[key][self._legal(key, value.astype(np.int64))]
            if key not in infos:
                infos[key] = _nothing(value.dtype, self._num_envs)
            infos[key][rows] = value

    def _legal(self, key: str, index: np.ndarray) -> np.ndarray:
        """The indices, if all have a label; one comparison finds negative ones too."""
        if index.size and index.view(np.uint64).max() >= len(self._labels[key]):
            for wrong in (index.min(), index.max()):
                label_of(key, self._labels[key].tolist(), int(wrong))
        return index

    def mask(self, infos: dict[str, Any], rows: Any) -> None:
        """Adds the masks: only these rows have an info."""
        for key, values in list(infos.items()):
            if rows is not ALL_ROWS and isinstance(values, np.ndarray):
                infos[key] = _nothing(values.dtype, self._num_envs)
                infos[key][rows] = values[rows]
            infos["_" + key] = np.zeros(self._num_envs, np.bool_)
            infos["_" + key][rows] = True


def label_of(key: str, labels: Sequence[str], index: int) -> str:
    """The name of an info entry that is an index.

    Raises:
        ValueError: There is none for it.
    """
    if not 0 <= index < len(labels):
        raise ValueError(f"info[{key!r}] is {index}, but its {len(labels)} labels are for 0 to {len(labels) - 1}")
    return labels[index]


def _nothing(dtype: np.dtype, num_envs: int) -> np.ndarray:
    """What rows without an info have: zeros of the dtype that Python's numbers become, or None."""
    if dtype.kind == "O":
        return np.full(num_envs, None, dtype=object)
    return np.zeros(num_envs, {"f": np.float64, "b": np.bool_}.get(dtype.kind, np.int64))
