"""Arrays that begin where the processor likes to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

_LINE = 64
"""Bytes that a processor loads at once; NumPy's own arrays may begin within a line, and then each load takes two."""


def aligned_zeros(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """``numpy.zeros`` at the beginning of a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + size].view(dtype).reshape(shape)
