"""Scripted policies: baselines for demos, tests and tables, from doing nothing to planning with hidden knowledge.

Each is a function ``(params, state) -> actions`` of a batch of states, in discrete actions; `ScriptedPolicy` makes a
model with stable-baselines3's ``predict`` of it, for one environment or a vector environment of either kind of action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.arguments import legal_choice, shown
from gym_custom.my_env.dynamics import discrete_command, wrap
from gym_custom.my_env.lidar import scan
from gym_custom.my_env.state import State

STOP, AHEAD = 1, 7


def parked(params: Any, state: State) -> np.ndarray:
    """Stands still, so that every collision is somebody else's doing."""
    return np.full(state.heading.shape, STOP)


def straight(params: Any, state: State) -> np.ndarray:
    """Drives straight to the goal and looks at nothing."""
    return _steer(goal_bearing(state), np.full(state.heading.shape, 2))


def gap_follower(params: Any, state: State) -> np.ndarray:
    """Heads for the free gap nearest to the goal's direction, with the ranges alone (Ulrich & Borenstein 1998)."""
    ranges = scan(np, params, state).ranges  # (R, N)
    angles = np.concatenate([np.arctan2(end * params.ray_sin, end * params.ray_cos) for end in params.ray_ends])
    bearing = goal_bearing(state)
    free = _free_way(params, ranges, angles)  # (R, N)
    enough = np.minimum(1.6, state.goal_distance)
    turn = np.abs(wrap(np, angles[:, None] - bearing))
    cost = np.where(free >= enough, turn + 0.15 * np.abs(angles[:, None]), 10.0 - free)
    ahead = free[np.argmin(np.abs(angles))]
    level = np.where(ahead > 1.0, 2, np.where(ahead > 0.55, 1, 0))
    return _steer(angles[np.argmin(cost, axis=0)], level)


def look_ahead(params: Any, state: State) -> np.ndarray:
    """Tries some short plans against pedestrians who go on as they move now, which the robot cannot really know.

    A plan is an action held for some steps, then straight on at full speed or a stop (a dynamic window, Fox, Burgard
    & Thrun 1997).
    """
    best_cost, best = np.full(state.heading.shape, np.inf), np.full(state.heading.shape, STOP)
    for hold in (1, 3, 5):
        for action in range(9):
            cost = _cost_of_plan(params, state, action, hold)
            better = cost < best_cost
            best_cost, best = np.where(better, cost, best_cost), np.where(better, action, best)
    return best


POLICIES: dict[str, Callable[[Any, State], np.ndarray]] = {
    "parked": parked,
    "straight": straight,
    "gap_follower": gap_follower,
    "look_ahead": look_ahead,
}


class ScriptedPolicy:
    """A scripted policy as a model with ``predict``, bound to the environment whose state it may read.

    Args:
        name: One of POLICIES.
        env: A `MyEnv` or `MyVectorEnv`, wrapped or not.

    Raises:
        ValueError: There is no policy of this name.
        TypeError: The environment is another one.
    """

    def __init__(self, name: str, env: Any):
        self._policy, self._env = POLICIES[legal_choice("policy", name, POLICIES)], env.unwrapped
        if getattr(self._env, "world", None) != "gym_custom.my_env:make_world":
            raise TypeError(f"the policy {name!r} drives a MyEnv or a MyVectorEnv, not {shown(env)}")
        self._batched = hasattr(self._env, "num_envs")
        space = self._env.single_action_space if self._batched else self._env.action_space
        self._continuous = isinstance(space, spaces.Box)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        """The action, or the actions of all rows, and None; what is asked is the environment's present state."""
        present = self._env.get_state().state
        rows = present if self._batched else State(*(np.asarray(leaf)[..., None] for leaf in present))
        actions = self._policy(self._env._params, rows)
        if self._continuous:
            actions = np.stack([actions // 3 - 1.0, 1.0 - actions % 3], axis=-1).astype(np.float32)  # (N, 2)
        if self._batched:
            return actions, None
        return (actions[0] if self._continuous else int(actions[0])), None


def goal_bearing(state: State) -> np.ndarray:
    """Angle (N,) from the heading to the goal, in [-pi, pi)."""
    x, y = state.goal - state.position
    return wrap(np, np.arctan2(y, x) - state.heading)


def _steer(bearing: np.ndarray, level: np.ndarray) -> np.ndarray:
    """The action that turns towards a bearing at a speed level, on the spot where it lies behind."""
    turn = np.where(bearing > 0.12, 0, np.where(bearing < -0.12, 2, 1))
    level = np.where(np.abs(bearing) > 0.9, 0, np.where(np.abs(bearing) > 0.45, np.minimum(level, 1), level))
    return 3 * level + turn


def _free_way(params: Any, ranges: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """How far (R, N) the robot's body can drive along each ray until it meets what any ray has met."""
    width = params.robot_radius + 0.12
    apart = angles[:, None] - angles  # from ray i to ray j
    free = np.empty_like(ranges)
    for i in range(len(angles)):
        across, along = ranges * np.sin(apart[i])[:, None], ranges * np.cos(apart[i])[:, None]
        blocks = (np.abs(across) < width) & (along > 0.0) & (ranges < params.max_range)
        reach = along - np.sqrt(np.maximum(width**2 - across**2, 0.0))
        free[i] = np.where(blocks, reach, params.max_range).min(axis=0)
    return free


def _cost_of_plan(params: Any, state: State, action: int, hold: int, horizon: int = 14) -> np.ndarray:
    """Cost (N,) of holding an action and then driving straight on: way to the goal, near misses and collisions."""
    command = discrete_command(params, np.float64(action))
    afterwards = discrete_command(params, np.float64(AHEAD if action >= 3 else action))
    position, heading, speed, turn_rate = state.position, state.heading, state.speed, state.turn_rate
    danger, alive = np.zeros(heading.shape), np.ones(heading.shape, bool)
    closest, arrival = state.goal_distance, np.full(heading.shape, float(horizon))
    for step in range(1, horizon + 1):
        target = command if step <= hold else afterwards
        speed = speed + np.clip(
            target[0] - speed, -params.max_acceleration * params.dt, params.max_acceleration * params.dt
        )
        turn_rate = target[1] if step <= hold else 0.0
        heading = heading + turn_rate * params.dt
        position = position + speed * params.dt * np.stack([np.cos(heading), np.sin(heading)])
        people = state.pedestrians + step * params.dt * state.velocities
        moving = np.hypot(*(people - position[:, None])) - state.pedestrian_radii - params.robot_radius
        still = np.hypot(*(state.obstacles - position[:, None])) - state.obstacle_radii - params.robot_radius
        wall = (state.room - np.abs(position)).min(axis=0) - params.robot_radius
        people_gap = moving.min(axis=0, initial=np.inf)
        gap = np.minimum(people_gap - 0.02 * step, np.minimum(still.min(axis=0, initial=np.inf), wall) + 0.05)
        danger = danger + np.where(alive, np.maximum(0.35 - gap, 0.0) * (1.5 / step**0.5), 0.0)
        hit = alive & (gap < 0.12)
        danger = danger + np.where(hit, 40.0 / step, 0.0)
        distance = np.hypot(*(state.goal - position))
        reached = alive & (distance < params.goal_radius) & (arrival == horizon)
        arrival = np.where(reached, step, arrival)
        closest = np.where(alive, np.minimum(closest, distance), closest)
        alive = alive & ~hit & ~reached
    return danger + closest + 0.2 * arrival
