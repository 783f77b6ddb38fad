"""Mailboxes that hold only the newest weights, within one process and between processes."""

from __future__ import annotations

import struct
import zlib
from multiprocessing.sharedctypes import RawArray

import numpy as np

from agents.types import Weights

_HEADER = struct.Struct("<qI")  # version, checksum of version and values
_TRIES = 100


class Mailbox:
    """Within one process."""

    def __init__(self) -> None:
        self._weights: Weights | None = None

    def publish(self, weights: Weights) -> None:
        """Replace what was there."""
        self._weights = weights

    def newer_than(self, version: int) -> Weights | None:
        """Give the newest weights if they are newer."""
        return self._weights if self._weights is not None and self._weights.version > version else None


class SharedMailbox:
    """Between processes: one block of anonymous shared memory, one writer, any number of readers, no lock.

    A reader that meets a half-written state sees it by the checksum and looks again, so that a process killed in the
    middle of anything holds nobody up. The memory has no name and goes with the last process.

    Args:
        example: the first weights; those to come have the same shapes.
    """

    def __init__(self, example: Weights) -> None:
        self._layout = [(name, array.shape, array.dtype.str) for name, array in example.arrays.items()]
        self._memory = RawArray("b", _HEADER.size + sum(array.nbytes for array in example.arrays.values()))
        self.publish(example)

    def publish(self, weights: Weights) -> None:
        """Overwrite what was there."""
        values = b"".join(array.tobytes() for array in weights.arrays.values())
        checksum = zlib.crc32(values, weights.version & 0xFFFFFFFF)
        memoryview(self._memory).cast("B")[:] = _HEADER.pack(weights.version, checksum) + values

    def newer_than(self, version: int) -> Weights | None:
        """Give a whole copy of the newest weights if they are newer."""
        if _HEADER.unpack_from(self._memory)[0] <= version:
            return None  # nothing new; were this the half of a number, the next look would find it
        for _ in range(_TRIES):
            data = bytes(memoryview(self._memory).cast("B"))
            found, checksum = _HEADER.unpack_from(data)
            if zlib.crc32(memoryview(data)[_HEADER.size :], found & 0xFFFFFFFF) == checksum:
                return Weights(found, self._arrays(data)) if found > version else None
        return None  # always in the middle of writing: the next look will find it

    def _arrays(self, data: bytes) -> dict[str, np.ndarray]:
        arrays, offset = {}, _HEADER.size
        for name, shape, dtype in self._layout:
            array = np.frombuffer(data, dtype, count=int(np.prod(shape, dtype=int)), offset=offset).reshape(shape)
            arrays[name] = array.copy()
            offset += array.nbytes
        return arrays
