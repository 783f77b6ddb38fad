"""The robot's range finder: all rays against all discs and walls, analytically."""

from __future__ import annotations

from typing import Any, NamedTuple

from gym_custom.my_env.geometry import closeness_to_disc, closeness_to_walls, disc_terms

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
    The discs come one after the other, so that a batch stays in the cache.
    """
    cos, sin = column(xp, params.ray_cos, state.heading), column(xp, params.ray_sin, state.heading)  # (R, 1)
    turn = (xp.cos(state.heading), xp.sin(state.heading))
    wall = xp.maximum(_walls(xp, state, cos, sin, turn), 1.0 / params.max_range)  # (R, N)
    static = wall
    x, y, square = _discs(xp, state, state.obstacles, state.obstacle_radii, turn)  # (O, N)
    for k in range(x.shape[0]):
        static = xp.maximum(static, closeness_to_disc(xp, x[k] * cos + y[k] * sin, square[k]))
    nearest, met_vx, met_vy = static, 0.0 * static, 0.0 * static
    vx, vy = to_robot_frame(state.velocities, turn)  # (P, N)
    x, y, square = _discs(xp, state, state.pedestrians, state.pedestrian_radii, turn)
    for k in range(x.shape[0]):
        closeness = closeness_to_disc(xp, x[k] * cos + y[k] * sin, square[k])
        nearer = closeness > nearest
        met_vx, met_vy = xp.where(nearer, vx[k], met_vx), xp.where(nearer, vy[k], met_vy)
        nearest = xp.maximum(nearest, closeness)
    pedestrian = nearest > static
    return Scan(1.0 / nearest, met_vx * cos + met_vy * sin, pedestrian, (static > wall) & xp.logical_not(pedestrian))


def to_robot_frame(vectors: Array, turn: tuple[Array, Array]) -> tuple[Array, Array]:
    """Rotates vectors (2, ...) of the room into the frame of a robot whose heading has this cosine and sine."""
    return vectors[0] * turn[0] + vectors[1] * turn[1], vectors[1] * turn[0] - vectors[0] * turn[1]


def column(xp: Any, table: Array, like: Array) -> Array:
    """A table (R,) as (R, 1) where `like` has a batch axis, else as it is."""
    return xp.reshape(table, (-1,) + (1,) * like.ndim)


def _walls(xp: Any, state: Any, cos: Array, sin: Array, turn: tuple[Array, Array]) -> Array:
    dx, dy = cos * turn[0] - sin * turn[1], cos * turn[1] + sin * turn[0]
    return closeness_to_walls(xp, dx, dy, state.room + state.position, state.room - state.position)


def _discs(xp: Any, state: Any, centres: Array, radii: Array, turn: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    return disc_terms(xp, *to_robot_frame(centres - state.position[:, None], turn), radii)
