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

    axes: Array  # (2, A, 1) directions of the axes in the robot's frame
    turn: tuple[Array, Array]  # cosine and sine (N,) of the heading
    signs: Array  # [1, -1] where each axis has a ray at both ends, else [1]


def scan(xp: Any, params: Any, state: Any) -> Scan:
    """Scans from the robot's centre; ray 0 of a full circle points ahead, the others follow counter-clockwise.

    Works in the robot's frame, where the ray directions are constants, and in closeness, the inverse of the range.
    The rays of a full circle come in opposite pairs, which share an axis and the roots along it.
    """
    tables = [column(xp, table, state.heading) for table in (params.ray_cos, params.ray_sin)]
    turn = (xp.cos(state.heading), xp.sin(state.heading))
    frame = _Frame(xp.stack(tables), turn, params.ray_ends)
    wall = xp.maximum(_walls(xp, state, frame), 1.0 / params.max_range)  # (R, N)
    count = state.pedestrians.shape[1]
    centres = xp.concatenate([state.pedestrians, state.obstacles], axis=1) - state.position[:, None]
    x, y = to_robot_frame(xp.concatenate([centres, state.velocities], axis=1), turn)  # (P + O + P, N)
    radii = xp.concatenate([state.pedestrian_radii, state.obstacle_radii], axis=0)
    many = radii.shape[0]
    closeness = _discs(xp, x[:many], y[:many], radii, frame)  # (P + O, R, N)
    static = _largest(xp, wall, closeness[count:])
    nearest, velocity = _nearest(xp, static, closeness[:count], xp.stack([x[many:], y[many:]])[:, :, None])
    along = velocity * _at_ends(xp, frame.axes, -frame.axes, frame, axis=1)  # (2, R, N)
    pedestrian = nearest > static
    return Scan(1.0 / nearest, along[0] + along[1], pedestrian, (static > wall) & xp.logical_not(pedestrian))


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
    ahead = frame.axes * frame.turn[0] + xp.stack([-frame.axes[1], frame.axes[0]]) * frame.turn[1]  # (2, A, N)
    low, high = ahead * low[:, None], ahead * high[:, None]
    most, least = xp.maximum(low, high), xp.minimum(low, high)
    return _at_ends(xp, xp.maximum(most[0], most[1]), -xp.minimum(least[0], least[1]), frame)


def _discs(xp: Any, x: Array, y: Array, radii: Array, frame: _Frame) -> Array:
    """Closeness (K, R, N) of discs in the robot's frame, not positive where a ray misses."""
    x, y, square = disc_terms(xp, x, y, radii)  # (K, N)
    along = x[:, None] * frame.axes[0] + y[:, None] * frame.axes[1]  # (K, A, N)
    root = disc_root(xp, along, square[:, None])
    return _at_ends(xp, root + along, root - along, frame, axis=1)


def _largest(xp: Any, first: Array, closeness: Array) -> Array:
    """The largest (R, N) of first (R, N) and closeness (K, R, N)."""
    return first if closeness.shape[0] == 0 else xp.maximum(first, fold(xp.maximum, closeness[None])[0])


def _nearest(xp: Any, static: Array, closeness: Array, velocity: Array) -> tuple[Array, Array]:
    """The largest closeness (R, N), and the velocity (2, R, N) of whom it belongs to, 0 where static is larger."""
    count = closeness.shape[0]
    if count == 0:
        return static, xp.stack([0.0 * static, 0.0 * static])
    if count == 1:
        return xp.maximum(static, closeness[0]), xp.where(closeness[0] > static, velocity[:, 0], 0.0)
    half = count // 2
    a, b = slice(0, half), slice(half, 2 * half)
    nearer, merged = closeness[a] > closeness[b], xp.maximum(closeness[a], closeness[b])
    best, best_velocity = _nearest(xp, static, merged, xp.where(nearer, velocity[:, a], velocity[:, b]))
    if count % 2 == 0:
        return best, best_velocity
    nearer = closeness[-1] > best
    return xp.maximum(best, closeness[-1]), xp.where(nearer, velocity[:, -1], best_velocity)
