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


def scan(xp: Any, params: Any, state: Any) -> Scan:
    """Scans from the robot's centre; ray 0 of a full circle points ahead, the others follow counter-clockwise.

    Works in the robot's frame, where the ray directions are constants, and in closeness, the inverse of the range.
    The rays of a full circle come in opposite pairs, which share an axis and the roots along it.
    """
    tables = [column(xp, table, state.heading) for table in (params.ray_cos, params.ray_sin)]
    turn = (xp.cos(state.heading), xp.sin(state.heading))
    axes = xp.stack(tables)
    walls = _walls(xp, state, axes, turn)
    count = state.pedestrians.shape[1]
    centres = xp.concatenate([state.pedestrians, state.obstacles], axis=1) - state.position[:, None]
    x, y = to_robot_frame(xp.concatenate([centres, state.velocities], axis=1), turn)  # (P + O + P, N)
    radii = xp.concatenate([state.pedestrian_radii, state.obstacle_radii], axis=0)
    many = radii.shape[0]
    along, root = _discs(xp, x[:many], y[:many], radii, axes)  # (P + O, A, N)
    velocity = xp.stack([x[many:], y[many:]])[:, :, None]  # (2, P, 1, N)
    closeness = (root + along, root - along)
    ends = [
        _first_met(xp, params, walls[end], closeness[end], count, velocity, (axes, -axes)[end])
        for end in range(params.ray_ends.shape[0])
    ]
    return Scan(*(xp.concatenate(parts, axis=0) for parts in zip(*ends, strict=True)))


def _first_met(
    xp: Any, params: Any, wall: Array, closeness: Array, count: int, velocity: Array, directions: Array
) -> tuple[Array, ...]:
    """What the rays (A, N) in these directions (2, A, 1) meet first: the fields of a `Scan`.

    Args:
        xp: Array namespace.
        params: Constants.
        wall: (A, N) closeness of the walls.
        closeness: (P + O, A, N) of the discs, first `count` pedestrians.
        count: P.
        velocity: (2, P, 1, N) of the pedestrians, m/s.
        directions: Unit vectors in the robot's frame, like the velocities.
    """
    wall = xp.maximum(wall, 1.0 / params.max_range)
    static = _largest(xp, wall, closeness[count:])
    nearest, velocity = _nearest(xp, static, closeness[:count], velocity)
    rates = velocity * directions
    pedestrian = nearest > static
    return 1.0 / nearest, rates[0] + rates[1], pedestrian, (static > wall) & xp.logical_not(pedestrian)


def to_robot_frame(vectors: Array, turn: tuple[Array, Array]) -> tuple[Array, Array]:
    """Rotates vectors (2, ...) of the room into the frame of a robot whose heading has this cosine and sine."""
    return vectors[0] * turn[0] + vectors[1] * turn[1], vectors[1] * turn[0] - vectors[0] * turn[1]


def column(xp: Any, table: Array, like: Array) -> Array:
    """A table (R,) as (R, 1) where `like` has a batch axis, else as it is."""
    return xp.reshape(table, (-1,) + (1,) * like.ndim)


def _walls(xp: Any, state: Any, axes: Array, turn: tuple[Array, Array]) -> tuple[Array, Array]:
    """Closeness (A, N) of the walls at either end of the axes (2, A, 1)."""
    low, high = wall_closeness(xp, state.room + state.position, state.room - state.position)
    ahead = axes * turn[0] + xp.stack([-axes[1], axes[0]]) * turn[1]  # (2, A, N)
    low, high = ahead * low[:, None], ahead * high[:, None]
    most, least = xp.maximum(low, high), xp.minimum(low, high)
    return xp.maximum(most[0], most[1]), -xp.minimum(least[0], least[1])


def _discs(xp: Any, x: Array, y: Array, radii: Array, axes: Array) -> tuple[Array, Array]:
    """For discs in the robot's frame what makes their closeness, `root + along` or `root - along`, each (K, A, N)."""
    x, y, square = disc_terms(xp, x, y, radii)  # (K, N)
    along = x[:, None] * axes[0] + y[:, None] * axes[1]
    return along, disc_root(xp, along, square[:, None])


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
