"""The one geometry of discs and walls: it decides what rays see and when moving discs touch.

A ray and a motion are the same thing: a point ``q t`` that meets a disc at time ``t``. With the centre ``p`` and the
radius ``r``, ``|p - q t| = r`` is a quadratic equation in ``t`` and as well in ``1 / t``:
``c / t^2 - 2 b / t + a = 0`` with ``a = q q``, ``b = p q``, ``c = p p - r^2``. The larger root ``1 / t`` is the first
touch. Working with ``1 / t``, here called closeness, makes "never" the number 0, "first" a maximum, and needs no
division for a direction that is parallel to a wall.
"""

from __future__ import annotations

from typing import Any

Array = Any

MISSED = 1e30  # times a discriminant: far below 0, or above its root
NEAR = 1e-9  # m^2, of the power of a point outside a disc
INSIDE = 1e9  # 1/s or 1/m, closeness where a disc already covers the point


def disc_terms(xp: Any, x: Array, y: Array, radius: Array) -> tuple[Array, Array, Array]:
    """Prepares discs for `disc_root`.

    Args:
        xp: Array namespace.
        x: Centres relative to the start of the ray or motion, any shape, m.
        y: The same along y.
        radius: Their radii, m.

    Returns:
        x / c, y / c and 1 / c with c = x^2 + y^2 - radius^2; where the start is inside, numbers with closeness INSIDE.
    """
    c = x * x + y * y - radius * radius
    inverse = 1.0 / xp.maximum(c, NEAR)
    outside = c > NEAR
    share = xp.where(outside, inverse, 0.0)
    return x * share, y * share, xp.where(outside, inverse, -INSIDE * INSIDE)


def disc_root(xp: Any, along: Array, square: Array) -> Array:
    """What makes the closeness to a disc: `along + root`, and for the opposite direction `root - along`.

    Args:
        xp: Array namespace.
        along: b / c = (p q) / c.
        square: a / c = (q q) / c.

    Returns:
        The root of the discriminant, far below 0 where the line misses the disc: the closeness is then negative.
    """
    discriminant = along * along - square
    return xp.minimum(xp.sqrt(xp.maximum(discriminant, 0.0)), discriminant * MISSED)


def wall_closeness(xp: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """1 / t of the first touch with the wall below and above, for unit speed towards it, each (2, ...).

    Args:
        xp: Array namespace.
        low: (2, ...) distances to the walls on the left and below, m.
        high: (2, ...) those to the walls on the right and above, m.
    """
    return -1.0 / xp.maximum(low, 1e-9), 1.0 / xp.maximum(high, 1e-9)


def add_up(terms: Array) -> Array:
    """Sums (2, K, ...) over K in a written-out order, so that a batch and a single env get the same bits."""
    return fold(lambda a, b: a + b, terms)


def fold(combine: Any, terms: Array) -> Array:
    """Combines (M, K, ...) over K, one half with the other until one is left: few calls in a fixed order."""
    count = terms.shape[1]
    if count == 1:
        return terms[:, 0]
    half = count // 2
    folded = fold(combine, combine(terms[:, :half], terms[:, half : 2 * half]))
    return combine(folded, terms[:, -1]) if count % 2 else folded


def length(xp: Any, vector: Array) -> Array:
    """Length of vectors whose components are the first axis; 0 is safe."""
    squares = vector * vector
    return xp.sqrt(squares[0] + squares[1])
