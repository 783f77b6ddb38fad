"""The robot among pedestrians: one step of everything, what it earns, and what is told about it.

The robot is a unicycle whose speed and turn rate approach the commanded ones within acceleration limits. A step has
two substeps. Within each, pedestrians and robot move in straight lines, and the first touch of the robot with a disc,
a wall or the goal is computed exactly (swept collision); there the world stops, and the episode ends.
"""

from __future__ import annotations

import math
from typing import Any

from gym_custom.my_env import pedestrians
from gym_custom.my_env.geometry import closeness_to_disc, closeness_to_walls, disc_terms, length
from gym_custom.my_env.state import OBSTACLE, PEDESTRIAN, RUNNING, SUCCESS, WALL, State

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
    target = command(params, action)
    way_points, next_way_points = pedestrians.choose_way_points(xp, params, state)
    after = state._replace(
        way_points=way_points, next_way_points=next_way_points, sensor=remember(xp, params, state, u)
    )
    around = pedestrians.look_around(xp, params, after)
    gaps = []
    for _ in range(SUBSTEPS):
        after, gap = _substep(xp, params, after, target, around)
        gaps.append(gap)
    min_gap = xp.minimum(gaps[0], gaps[1])
    return after._replace(
        goal_distance=length(xp, after.goal - after.position),
        min_gap=min_gap,
        steps=state.steps + 1.0,
        discomfort_steps=xp.where(
            min_gap < params.discomfort_distance, state.discomfort_steps + 1.0, state.discomfort_steps
        ),
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
    """Smallest gap (N,) to a pedestrian at these distances (P, N), the lidar's range without pedestrians."""
    gap = distance - state.pedestrian_radii - params.robot_radius
    gap = xp.where(state.pedestrian_radii > 0.0, gap, math.inf)
    smallest = xp.min(gap, axis=0, initial=math.inf)
    return xp.where(smallest < math.inf, smallest, params.max_range)


def wrap(xp: Any, angle: Array) -> Array:
    """The angle in [-pi, pi)."""
    turned = angle - 2.0 * math.pi * xp.floor((angle + math.pi) / (2.0 * math.pi))
    return xp.where(turned >= math.pi, -math.pi, turned)


def _substep(
    xp: Any, params: Any, state: State, target: tuple[Array, Array], around: pedestrians.Surroundings
) -> tuple[State, Array]:
    """Moves everything on by a substep, or up to the first touch; gives the smallest gap (N,) on the way too."""
    duration = params.dt / SUBSTEPS
    speed = _approach(xp, state.speed, target[0], params.max_acceleration * duration)
    turn_rate = _approach(xp, state.turn_rate, target[1], params.max_turn_acceleration * duration)
    way = _way(xp, state.heading, speed, turn_rate, duration)  # (2, N)
    velocity = pedestrians.velocities(xp, params, state, around, duration)
    ways = pedestrians.displacements(xp, state, around, velocity, duration)  # (2, P, N)
    found, share, gap = _first_touch(xp, params, state, way, ways)
    found, share = _unless_over(xp, state, found, share)
    after = state._replace(
        position=state.position + share * way,
        heading=wrap(xp, state.heading + share * (turn_rate * duration)),
        speed=speed,
        turn_rate=turn_rate,
        pedestrians=state.pedestrians + share * ways,
        velocities=velocity,
        outcome=found,
        path_length=state.path_length + share * (speed * duration),
    )
    return after, gap


def _approach(xp: Any, value: Array, target: Array, most: float) -> Array:
    return value + xp.minimum(xp.maximum(target - value, -most), most)


def _way(xp: Any, heading: Array, speed: Array, turn_rate: Array, duration: float) -> Array:
    """Exact way (2, N) of a unicycle of constant speed and turn rate: the chord of its arc."""
    half = turn_rate * (0.5 * duration)
    straight = half == 0.0
    ratio = xp.where(straight, 1.0, xp.sin(half) / xp.where(straight, 1.0, half))
    chord = speed * duration * ratio
    return xp.stack([chord * xp.cos(heading + half), chord * xp.sin(heading + half)])


def _first_touch(xp: Any, params: Any, state: State, way: Array, ways: Array) -> tuple[Array, Array, Array]:
    """What the robot touches first on its way, the share of the way until then, and the smallest gap to a pedestrian.

    In the frame of a pedestrian the robot moves by the difference of the two ways.
    """
    count = state.pedestrians.shape[1]
    centres = (
        xp.concatenate([state.pedestrians, state.obstacles, state.goal[:, None]], axis=1) - state.position[:, None]
    )
    radii = xp.concatenate(
        [state.pedestrian_radii + params.robot_radius, state.obstacle_radii + params.robot_radius], axis=0
    )
    radii = xp.concatenate([radii, 0.0 * state.heading[None] + params.goal_radius], axis=0)  # (P + O + 1, N)
    relative = xp.concatenate([way[:, None] - ways, 0.0 * state.obstacles + way[:, None], way[:, None]], axis=1)
    x, y, square = disc_terms(xp, centres[0], centres[1], radii)
    length_squared = relative[0] * relative[0] + relative[1] * relative[1]
    closeness = closeness_to_disc(xp, x * relative[0] + y * relative[1], square * length_squared)
    person = xp.max(closeness[:count], axis=0, initial=0.0)
    obstacle = xp.max(closeness[count:-1], axis=0, initial=0.0)
    margin = state.room - params.robot_radius
    wall = closeness_to_walls(xp, way[0], way[1], margin + state.position, margin - state.position)
    collision = xp.maximum(xp.maximum(person, obstacle), wall)
    first = xp.maximum(collision, closeness[-1])
    kind = xp.where(person >= collision, PEDESTRIAN, xp.where(obstacle >= collision, OBSTACLE, WALL))
    kind = xp.where(closeness[-1] > collision, SUCCESS, kind)
    share = 1.0 / xp.maximum(first, 1.0)
    along = centres[:, :count] * relative[:, :count]
    nearest = (along[0] + along[1]) / xp.maximum(length_squared[:count], 1e-12)
    nearest = xp.minimum(xp.maximum(nearest, 0.0), share)
    gap = smallest_gap(xp, params, state, length(xp, centres[:, :count] - nearest * relative[:, :count]))
    return xp.where(first > 1.0, kind, RUNNING), share, gap


def _unless_over(xp: Any, state: State, found: Array, share: Array) -> tuple[Array, Array]:
    """After the first touch nothing moves any more."""
    running = state.outcome == RUNNING
    return xp.where(running, found, state.outcome), xp.where(running, share, 0.0)
