"""Where draws fall: random masses in [0, total), for the rows whose running sums of priorities hold them."""

from __future__ import annotations

import functools
import math

import numpy as np


def random_masses(rng: np.random.Generator, count: int, total: float, stratified: bool) -> np.ndarray:
    """Random masses (count,) in [0, total): one from each of ``count`` equal shares, rising, or independent ones."""
    masses = rng.random(count)
    if stratified:
        masses += _shares(count)
        masses *= total / count
        largest = masses.item(-1)
    else:
        masses *= total
        largest = masses.item(masses.argmax())
    if largest >= total:  # a product was rounded up to the total
        np.minimum(masses, math.nextafter(total, 0.0), out=masses)
    return masses


def random_places(
    rng: np.random.Generator, leaves: np.ndarray, count: int, stratified: bool
) -> tuple[np.ndarray, float]:
    """Random indices (count,) in proportion to the ``leaves``, not all of which are 0, and their sum."""
    sums = np.cumsum(leaves)
    total = float(sums[-1])
    return sums.searchsorted(random_masses(rng, count, total, stratified), side="right"), total


@functools.lru_cache(maxsize=8)
def _shares(count: int) -> np.ndarray:
    shares = np.arange(count, dtype=float)
    shares.flags.writeable = False
    return shares
