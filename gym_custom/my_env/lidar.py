"""The robot's range finder: all rays against all discs and walls, analytically."""

from __future__ import annotations

from typing import Any, NamedTuple

from gym_custom.my_env.geometry import disc_root, disc_terms, fold, wall_closeness

Array = Any


class Scan(NamedTuple):
    """What the rays meet first."""

    ranges: Array  # (R, N) m, at most the maximum
    rates: Array  # (R, N) m/s, velocity along the ray of the pedestrian met, 0 for all else
    pedestrian: Array  # (R, N) bool, a pedestrian was met
    obstacle: Array  # (R, N) bool, an obstacle was met


class _Frame(NamedTuple):
    """The robot's frame and the axes of its rays."""

    cos: Array  # (A, 1) directions of the axes in the robot's frame
    sin: Array
    turn: tuple[Array, Array]  # cosine and sine (N,) of the heading
    signs: Array  # [1, -1] where each axis has a ray at both ends, else [1]


def scan(xp: Any, params: Any, state: Any) -> Scan:
    """Scans from the robot's centre; ray 0 of a full circle points ahead, the others follow counter-clockwise.

    Works in the robot's frame, where the ray directions are constants, and in closeness, the inverse of the range.
    The rays of a full circle come in opposite pairs, which share an axis and the roots along it.
    """
    frame = _Frame(
        column(xp, params.ray_cos, state.heading),
        column(xp, params.ray_sin, state.heading),
        (xp.cos(state.heading), xp.sin(state.heading)),
        params.ray_ends,
    )
    wall = xp.maximum(_walls(xp, state, frame), 1.0 / params.max_range)  # (R, N)
    count = state.pedestrians.shape[1]
    closeness = _discs(xp, state, frame)  # (P + O, R, N)
    static = _largest(xp, wall, closeness[count:])
    vx, vy = to_robot_frame(state.velocities, frame.turn)  # (P, N)
    nearest, vx, vy = _nearest(xp, static, closeness[:count], vx[:, None], vy[:, None])
    cos, sin = (_at_ends(xp, table, -table, frame) for table in (frame.cos, frame.sin))
    pedestrian = nearest > static
    return Scan(1.0 / nearest, vx * cos + vy * sin, pedestrian, (static > wall) & xp.logical_not(pedestrian))


def to_robot_frame(vectors: Array, turn: tuple[Array, Array]) -> tuple[Array, Array]:
    """Rotates vectors (2, ...) of the room into the frame of a robot whose heading has this cosine and sine."""
    return vectors[0] * turn[0] + vectors[1] * turn[1], vectors[1] * turn[0] - vectors[0] * turn[1]


def column(xp: Any, table: Array, like: Array) -> Array:
    """A table (R,) as (R, 1) where `like` has a batch axis, else as it is."""
    return xp.reshape(table, (-1,) + (1,) * like.ndim)


def _at_ends(xp: Any, forward: Array, backward: Array, frame: _Frame, axis: int = 0) -> Array:
    return xp.concatenate([forward, backward], axis=axis) if frame.signs.shape[0] == 2 else forward


def _walls(xp: Any, state: Any, frame: _Frame) -> Array:
    """Closeness (R, N) of the walls."""
    low, high = wall_closeness(xp, state.room + state.position, state.room - state.position)
    dx = frame.cos * frame.turn[0] - frame.sin * frame.turn[1]
    dy = frame.cos * frame.turn[1] + frame.sin * frame.turn[0]
    sides = (dx * low[0], dx * high[0], dy * low[1], dy * high[1])
    ahead = xp.maximum(xp.maximum(sides[0], sides[1]), xp.maximum(sides[2], sides[3]))
    behind = xp.minimum(xp.minimum(sides[0], sides[1]), xp.minimum(sides[2], sides[3]))
    return _at_ends(xp, ahead, -behind, frame)


def _discs(xp: Any, state: Any, frame: _Frame) -> Array:
    """Closeness (P + O, R, N) of pedestrians and obstacles, not positive where a ray misses."""
    centres = xp.concatenate([state.pedestrians, state.obstacles], axis=1) - state.position[:, None]
    radii = xp.concatenate([state.pedestrian_radii, state.obstacle_radii], axis=0)
    x, y, square = disc_terms(xp, *to_robot_frame(centres, frame.turn), radii)  # (K, N)
    along = x[:, None] * frame.cos + y[:, None] * frame.sin  # (K, A, N)
    root = disc_root(xp, along, square[:, None])
    return _at_ends(xp, root + along, root - along, frame, axis=1)


def _largest(xp: Any, first: Array, closeness: Array) -> Array:
    """The largest (R, N) of first (R, N) and closeness (K, R, N)."""
    return first if closeness.shape[0] == 0 else xp.maximum(first, fold(xp.maximum, closeness[None])[0])


def _nearest(xp: Any, static: Array, closeness: Array, vx: Array, vy: Array) -> tuple[Array, Array, Array]:
    """The largest closeness (R, N), and the velocity of the pedestrian it belongs to, 0 where static is larger."""
    count = closeness.shape[0]
    if count == 0:
        return static, 0.0 * static, 0.0 * static
    if count == 1:
        nearer = closeness[0] > static
        zero = 0.0 * static
        return xp.maximum(static, closeness[0]), xp.where(nearer, vx[0], zero), xp.where(nearer, vy[0], zero)
    half = count // 2
    a, b = slice(0, half), slice(half, 2 * half)
    nearer = closeness[a] > closeness[b]
    merged = xp.maximum(closeness[a], closeness[b])
    best, best_vx, best_vy = _nearest(
        xp, static, merged, xp.where(nearer, vx[a], vx[b]), xp.where(nearer, vy[a], vy[b])
    )
    if count % 2 == 0:
        return best, best_vx, best_vy
    nearer = closeness[-1] > best
    return xp.maximum(best, closeness[-1]), xp.where(nearer, vx[-1], best_vx), xp.where(nearer, vy[-1], best_vy)
