"""What the robot is told: the kinds of observation, as parts in the order of the space."""

from __future__ import annotations

import math
from typing import Any

from gym_custom.my_env.geometry import length
from gym_custom.my_env.lidar import scan, to_robot_frame

Array = Any

RATE_SCALE = 2.0  # m/s, velocities are given in these
DROPPED = 1e6  # noise of a ray without echo: it reads the maximum


def lidar(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """Ranges, range rates, goal, odometry, nearest range."""
    seen = scan(xp, params, state)
    ranges = seen.ranges / params.max_range
    return (
        ranges,
        _unit(xp, seen.rates / RATE_SCALE),
        *_goal(xp, state),
        *_odometry(params, state),
        _least(xp, ranges),
    )


def lidar_stack(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """As `lidar`, with the last step's ranges instead of range rates."""
    ranges = scan(xp, params, state).ranges / params.max_range
    return (ranges, state.sensor, *_goal(xp, state), *_odometry(params, state), _least(xp, ranges))


def partial(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """Noisy ranges, goal, odometry, nearest range."""
    true = scan(xp, params, state).ranges
    noise = state.sensor * (params.range_noise + params.relative_range_noise * true)
    ranges = xp.minimum(xp.maximum(true + noise, 0.0), params.max_range) / params.max_range
    return (ranges, *_goal(xp, state), *_odometry(params, state), _least(xp, ranges))


def camera(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """Ranges, whether each ray met a pedestrian, or an obstacle, goal, odometry."""
    seen = scan(xp, params, state)
    kinds = (xp.where(mask, 1.0, 0.0 * seen.ranges) for mask in (seen.pedestrian, seen.obstacle))
    return (seen.ranges / params.max_range, *kinds, *_goal(xp, state), *_odometry(params, state))


def parts_by_name(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """Goal, then ranges and range rates, then odometry: the keys of the Dict in their order."""
    seen = scan(xp, params, state)
    rays = (seen.ranges / params.max_range, _unit(xp, seen.rates / RATE_SCALE))
    return (*_goal(xp, state), *rays, *_odometry(params, state))


def everything(xp: Any, params: Any, state: Any) -> tuple[Array, ...]:
    """Goal, velocity, heading, then every pedestrian and obstacle in the robot's frame, the nearest first.

    Positions are in room diagonals, velocities in 2 m/s, radii in metres; an absent one is all zeros.
    """
    turn = (xp.cos(state.heading), xp.sin(state.heading))
    size = _diagonal(xp, state)
    goal = to_robot_frame((state.goal - state.position) / size, turn)
    own = (state.goal_distance / size, *goal, *_odometry(params, state), *turn)
    people = _nearest_first(xp, state, state.pedestrians, state.pedestrian_radii, turn, size, state.velocities)
    return (
        *(_unit(xp, part) for part in own),
        *people,
        *_nearest_first(xp, state, state.obstacles, state.obstacle_radii, turn, size),
    )


# What the sensor remembers


def keep_nothing(xp: Any, params: Any, state: Any, u: Array | None) -> Array:
    """No memory, (0, N)."""
    return state.sensor


def keep_scan(xp: Any, params: Any, state: Any, u: Array | None) -> Array:
    """The scan of this state, (R, N), for the next observation to show beside its own."""
    return scan(xp, params, state).ranges / params.max_range


def keep_noise(xp: Any, params: Any, state: Any, u: Array) -> Array:
    """Noise (R, N) for the coming scan from 2 R uniforms: normal, or DROPPED."""
    rays = u.shape[0] // 2
    noise = normal(xp, u[: rays // 2], u[rays // 2 : rays])
    return xp.where(u[rays:] < params.drop_out, DROPPED, xp.concatenate(noise, axis=0))


def normal(xp: Any, u: Array, v: Array) -> tuple[Array, Array]:
    """Two independent standard normals from two uniforms (Box & Muller 1958)."""
    radius = xp.sqrt(-2.0 * xp.log(1.0 - u))
    return radius * xp.cos(2.0 * math.pi * v), radius * xp.sin(2.0 * math.pi * v)


def _unit(xp: Any, x: Array) -> Array:
    return xp.minimum(xp.maximum(x, -1.0), 1.0)


def _least(xp: Any, ranges: Array) -> Array:
    return xp.min(ranges, axis=0)


def _diagonal(xp: Any, state: Any) -> Array:
    return 2.0 * length(xp, state.room)


def _goal(xp: Any, state: Any) -> tuple[Array, ...]:
    """Distance in room diagonals, cosine and sine of the bearing (both 0 on the goal itself)."""
    turn = (xp.cos(state.heading), xp.sin(state.heading))
    x, y = to_robot_frame((state.goal - state.position) / xp.maximum(state.goal_distance, 1e-9), turn)
    return _unit(xp, state.goal_distance / _diagonal(xp, state)), _unit(xp, x), _unit(xp, y)


def _odometry(params: Any, state: Any) -> tuple[Array, Array]:
    return state.speed / params.max_speed, state.turn_rate / params.max_turn_rate


def _nearest_first(
    xp: Any,
    state: Any,
    centres: Array,
    radii: Array,
    turn: tuple[Array, Array],
    size: Array,
    velocities: Array | None = None,
) -> tuple[Array, ...]:
    """Position, velocity if given, and radius of each disc, (1, N) each, sorted by the gap to the robot."""
    away = centres - state.position[:, None]
    order = xp.argsort(length(xp, away) - radii, axis=0)
    columns = [*to_robot_frame(away / size, turn)]
    columns += [] if velocities is None else [*to_robot_frame(velocities / RATE_SCALE, turn)]
    columns = [xp.where(radii > 0.0, _unit(xp, column), 0.0) for column in (*columns, radii)]
    columns = [xp.take_along_axis(column, order, axis=0) for column in columns]
    return tuple(column[k] for k in range(radii.shape[0]) for column in columns)
