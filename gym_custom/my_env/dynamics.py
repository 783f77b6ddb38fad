"""The robot among pedestrians: one step of everything, what it earns, and what is told about it.

The robot is a unicycle whose speed and turn rate approach the commanded ones within acceleration limits. A step has
two substeps. Within each, pedestrians and robot move in straight lines, and the first touch of the robot with a disc,
a wall or the goal is computed exactly (swept collision); there the world stops, and the episode ends.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from gym_custom.my_env import pedestrians
from gym_custom.my_env.geometry import disc_root, disc_terms, fold, length, wall_closeness
from gym_custom.my_env.state import ABSENT, OBSTACLE, PEDESTRIAN, RUNNING, SUCCESS, WALL, State

Array = Any

SUBSTEPS = 2


def transition(
    xp: Any, params: Any, state: State, action: Array, u: Array | None = None, *, command: Any, remember: Any
) -> State:
    """One step of `params.dt` seconds.

    Args:
        xp: Array namespace.
        params: Constants.
        state: The state before, leaves of shape (..., N).
        action: (N,) index of a discrete action, or (2, N).
        u: Uniforms for the sensor's noise, (step_draws, N), or None.
        command: `discrete_command` or `continuous_command`.
        remember: What the sensor keeps, ``(xp, params, state, u) -> (S, N)``.
    """
    duration = params.dt / SUBSTEPS
    target = command(params, action)
    way_points, next_way_points = pedestrians.choose_way_points(xp, params, state)
    around = pedestrians.look_around(xp, params, state, way_points, duration)
    first = _substep(xp, params, state, state, target, around, duration)
    second = _substep(xp, params, state, first, target, around, duration)
    found, share, gap = _first_touches(xp, params, state, first, second)
    over = found[0] != RUNNING
    outcome = xp.where(over, found[0], found[1])
    late = xp.where(over, 0.0, share[1])
    min_gap = xp.where(over, gap[0], xp.minimum(gap[0], gap[1]))
    position = state.position + share[0] * first.way + late * second.way
    turned = share[0] * (first.turn_rate * duration) + late * (second.turn_rate * duration)
    return state._replace(
        position=position,
        heading=wrap(xp, state.heading + turned),
        speed=xp.where(over, first.speed, second.speed),
        turn_rate=xp.where(over, first.turn_rate, second.turn_rate),
        pedestrians=state.pedestrians + share[0] * first.ways + late * second.ways,
        velocities=xp.where(over, first.velocities, second.velocities),
        way_points=way_points,
        next_way_points=next_way_points,
        sensor=remember(xp, params, state, u),
        goal_distance=length(xp, state.goal - position),
        min_gap=min_gap,
        outcome=outcome,
        steps=state.steps + 1.0,
        discomfort_steps=xp.where(
            min_gap < params.discomfort_distance, state.discomfort_steps + 1.0, state.discomfort_steps
        ),
        path_length=state.path_length + (share[0] * first.speed + late * second.speed) * duration,
    )


def discrete_command(params: Any, action: Array) -> tuple[Array, Array]:
    """Speed and turn rate of action 3 * speed level + turn: stop, half, full; left, straight, right."""
    turn = action % 3
    return (action - turn) * (params.max_speed / 6.0), (1.0 - turn) * params.max_turn_rate


def continuous_command(params: Any, action: Array) -> tuple[Array, Array]:
    """Speed (a0 + 1) / 2 of the maximum, and turn rate a1 of the maximum."""
    return (action[0] + 1.0) * (0.5 * params.max_speed), action[1] * params.max_turn_rate


def outcome(xp: Any, params: Any, state: State, action: Array, after: State) -> tuple[Array, Array]:
    """Reward (N,) and termination (N,) of a step; the progress is a potential (Ng, Harada & Russell 1999)."""
    progress = params.progress_weight * (state.goal_distance - after.goal_distance) / state.first_goal_distance
    closeness = 1.0 - after.min_gap / params.discomfort_distance
    discomfort = params.discomfort_weight * xp.minimum(xp.maximum(closeness, 0.0), 1.0)
    reward = progress - params.time_penalty - discomfort
    ended = xp.where(after.outcome == SUCCESS, reward + params.goal_reward, reward - params.collision_penalty)
    return xp.where(after.outcome == RUNNING, reward, ended), after.outcome != RUNNING


def info(xp: Any, params: Any, state: State) -> dict[str, Array]:
    """What an episode's metrics are made of, so far; the keys are the same at every moment."""
    success = state.outcome == SUCCESS
    path_share = state.first_goal_distance / xp.maximum(state.path_length, state.first_goal_distance)
    return {
        "goal_distance": state.goal_distance,
        "min_gap": state.min_gap,
        "is_success": success,
        "outcome": state.outcome,
        "nav_time": state.steps * params.dt,
        "path_length": state.path_length,
        "spl": xp.where(success, path_share, 0.0),
        "discomfort_ratio": state.discomfort_steps / xp.maximum(state.steps, 1.0),
        "hit_while_parked": (state.outcome == PEDESTRIAN) & (state.speed == 0.0),
    }


def smallest_gap(xp: Any, params: Any, state: State, distance: Array) -> Array:
    """Smallest gap to a pedestrian at distances (M, P, N), the lidar's range without pedestrians: (M, N)."""
    if distance.shape[1] == 0:
        return 0.0 * (state.heading + xp.zeros((distance.shape[0], *state.heading.shape))) + params.max_range
    smallest = fold(xp.minimum, distance - (state.pedestrian_radii + params.robot_radius))
    return xp.where(smallest < 0.75 * ABSENT, smallest, params.max_range)


def wrap(xp: Any, angle: Array) -> Array:
    """The angle in [-pi, pi)."""
    turned = angle - 2.0 * math.pi * xp.floor((angle + math.pi) / (2.0 * math.pi))
    return xp.where(turned >= math.pi, -math.pi, turned)


class _Motion(NamedTuple):
    """What moves, at the end of a substep that nothing cuts short."""

    position: Array  # (2, N) m
    heading: Array  # (N,) rad
    speed: Array  # (N,) m/s
    turn_rate: Array  # (N,) rad/s
    pedestrians: Array  # (2, P, N) m
    velocities: Array  # (2, P, N) m/s
    way: Array = None  # (2, N) m, of the robot within the substep
    ways: Array = None  # (2, P, N) m, of the pedestrians


def _substep(
    xp: Any,
    params: Any,
    state: State,
    before: Any,
    target: tuple[Array, Array],
    around: pedestrians.Surroundings,
    duration: float,
) -> _Motion:
    """Moves the robot and the pedestrians, who have seen where the robot was before."""
    speed = _approach(xp, before.speed, target[0], params.max_acceleration * duration)
    turn_rate = _approach(xp, before.turn_rate, target[1], params.max_turn_acceleration * duration)
    way = _way(xp, before.heading, speed, turn_rate, duration)
    discs = xp.concatenate([state.obstacles, before.position[:, None]], axis=1)
    velocities, ways = pedestrians.walk(xp, params, around, before.pedestrians, before.velocities, discs, duration)
    return _Motion(
        before.position + way,
        before.heading + turn_rate * duration,
        speed,
        turn_rate,
        before.pedestrians + ways,
        velocities,
        way,
        ways,
    )


def _approach(xp: Any, value: Array, target: Array, most: float) -> Array:
    return value + xp.minimum(xp.maximum(target - value, -most), most)


def _way(xp: Any, heading: Array, speed: Array, turn_rate: Array, duration: float) -> Array:
    """Exact way (2, N) of a unicycle of constant speed and turn rate: the chord of its arc."""
    half = turn_rate * (0.5 * duration)
    straight = half == 0.0
    ratio = xp.where(straight, 1.0, xp.sin(half) / xp.where(straight, 1.0, half))
    chord = speed * duration * ratio
    return xp.stack([chord * xp.cos(heading + half), chord * xp.sin(heading + half)])


def _first_touches(xp: Any, params: Any, state: State, first: _Motion, second: _Motion) -> tuple[Array, Array, Array]:
    """What the robot touches first in each of two substeps, and when; the second as if the first had been free.

    In the frame of a pedestrian the robot moves by the difference of the two ways.

    Returns:
        Outcome, share of the way until then, and smallest gap to a pedestrian on the way, each (2, N).
    """
    count, fixed = state.pedestrians.shape[1], state.obstacles.shape[1] + 1
    way = xp.concatenate([first.way[:, None], second.way[:, None]], axis=1)  # (2, M, N) for M = 2 substeps
    ways = xp.concatenate([first.ways[:, None], second.ways[:, None]], axis=1)  # (2, M, P, N)
    still = xp.zeros((2, 2, fixed, *state.heading.shape), state.heading.dtype)
    relative = way[:, :, None] - xp.concatenate([ways, still], axis=2)  # (2, M, K, N), the goal being the last disc
    discs = xp.concatenate([state.pedestrians, state.obstacles, state.goal[:, None]], axis=1)
    start = discs - state.position[:, None]  # (2, K, N)
    centres = xp.concatenate([start[:, None], (start - relative[:, 0])[:, None]], axis=1)  # (2, M, K, N)
    goal_radius = 0.0 * state.heading[None] + (params.goal_radius - params.robot_radius)
    radii = xp.concatenate([state.pedestrian_radii, state.obstacle_radii, goal_radius], axis=0) + params.robot_radius
    x, y, inverse = disc_terms(xp, centres[0], centres[1], radii)
    squares = relative * relative
    squares = squares[0] + squares[1]
    along = x * relative[0] + y * relative[1]
    closeness = along + disc_root(xp, along, squares * inverse)  # (M, K, N)
    goal, wall = closeness[:, -1], _wall_touch(xp, params, state, way)
    obstacle = fold(xp.maximum, closeness[:, count:-1]) if fixed > 1 else 0.0 * goal
    person = fold(xp.maximum, closeness[:, :count]) if count > 0 else 0.0 * goal
    collision = xp.maximum(xp.maximum(person, obstacle), wall)
    earliest = xp.maximum(collision, goal)
    kind = xp.where(person >= collision, PEDESTRIAN, xp.where(obstacle >= collision, OBSTACLE, WALL))
    kind = xp.where(goal > collision, SUCCESS, kind)
    share = 1.0 / xp.maximum(earliest, 1.0)
    gap = smallest_gap(
        xp, params, state, _closest(xp, centres[:, :, :count], relative[:, :, :count], squares[:, :count], share)
    )
    return xp.where(earliest > 1.0, kind, RUNNING), share, gap


def _wall_touch(xp: Any, params: Any, state: State, way: Array) -> Array:
    """Closeness (M, N) of the walls along the robot's ways (2, M, N), one after the other."""
    margin = state.room - params.robot_radius
    begins = xp.concatenate([state.position[:, None], (state.position + way[:, 0])[:, None]], axis=1)  # (2, M, N)
    low, high = wall_closeness(xp, margin[:, None] + begins, margin[:, None] - begins)
    sides = xp.maximum(way * low, way * high)
    return xp.maximum(sides[0], sides[1])


def _closest(xp: Any, centres: Array, relative: Array, squares: Array, share: Array) -> Array:
    """Distances (M, P, N) at the closest approach up to a share (M, N) of the ways."""
    along = centres * relative
    when = (along[0] + along[1]) / xp.maximum(squares, 1e-12)
    when = xp.minimum(xp.maximum(when, 0.0), share[:, None])
    return length(xp, centres - when * relative)
