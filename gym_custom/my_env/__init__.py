"""A robot with a lidar among pedestrians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from gym_custom.my_env import dynamics, observation, scenarios
from gym_custom.my_env.draw import ansi, draw
from gym_custom.my_env.layout import (
    CASE_SEEDS,
    SELECTION_SEEDS,
    legal_count,
    legal_number,
    legal_scenario,
    reset_with,
    to_layout,
)
from gym_custom.my_env.state import OUTCOMES, Params
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World

__all__ = ["CASE_SEEDS", "SELECTION_SEEDS", "MyEnv", "MyVectorEnv", "make_world"]

MOST_PEDESTRIANS, MOST_OBSTACLES = 14, 9
RAYS, CAMERA_RAYS = 36, 24


def make_world(
    n_pedestrians: int = 4,
    n_obstacles: int = 3,
    notice_prob: float = 0.75,
    scenario: str = "circle",
    observation: str = "lidar",
    continuous: bool = False,
    pedestrian_speed: Sequence[float] = (0.9, 0.2, 0.5, 1.3),
    pedestrian_radius: Sequence[float] = (0.3, 0.3),
    progress_weight: float = 60.0,
    time_penalty: float = 0.1,
    discomfort_weight: float = 1.0,
    discomfort_distance: float = 0.25,
    goal_reward: float = 60.0,
    collision_penalty: float = 60.0,
) -> World:
    """Makes the world; the arguments are described at `MyEnv`.

    Raises:
        ValueError: An argument has no legal value.
    """
    slots = (
        legal_count("n_pedestrians", n_pedestrians, MOST_PEDESTRIANS),
        legal_count("n_obstacles", n_obstacles, MOST_OBSTACLES),
    )
    if not isinstance(continuous, bool):
        raise ValueError(f"continuous must be True or False, not {continuous!r}")
    if not isinstance(observation, str) or observation not in _SENSORS:
        raise ValueError(f"observation must be one of {', '.join(map(repr, _SENSORS))}, not {observation!r}")
    sensor = _SENSORS[observation](*slots)
    mean, deviation, low, high = _speeds(pedestrian_speed)
    radius_low, radius_high = _radii(pedestrian_radius, slots[0])
    params = Params(
        n_pedestrians=float(slots[0]),
        n_obstacles=float(slots[1]),
        notice_prob=legal_number("notice_prob", notice_prob, 0.0, 1.0),
        speed_mean=mean,
        speed_deviation=deviation,
        speed_low=low,
        speed_high=high,
        radius_low=radius_low,
        radius_high=radius_high,
        side=np.array([-0.3, 0.3]),
        **sensor.settings,
        **{
            name: legal_number(name, value, 0.0, 1e6)
            for name, value in {
                "progress_weight": progress_weight,
                "time_penalty": time_penalty,
                "discomfort_weight": discomfort_weight,
                "goal_reward": goal_reward,
                "collision_penalty": collision_penalty,
            }.items()
        },
        discomfort_distance=legal_number("discomfort_distance", discomfort_distance, 1e-3, 10.0),
    )
    initial_state = partial(
        scenarios.initial_state,
        place=scenarios.SCENARIOS[legal_scenario(scenario)],
        slots=slots,
        remember=sensor.remember,
        memory=sensor.memory,
    )
    command = dynamics.continuous_command if continuous else dynamics.discrete_command
    return World(
        params=params,
        initial_state=initial_state,
        transition=partial(dynamics.transition, command=command, remember=sensor.remember),
        outcome=dynamics.outcome,
        observe=sensor.observe,
        action_space=spaces.Box(-1.0, 1.0, (2,), np.float32) if continuous else spaces.Discrete(9),
        observation_space=sensor.space,
        reset_draws=scenarios.count_draws(*slots, sensor.draws),
        step_draws=sensor.draws,
        info=dynamics.info,
        labels={"outcome": OUTCOMES},
        reset_with=partial(reset_with, initial_state=initial_state),
        draw=draw,
        ansi=ansi,
        render_fps=10,
    )


class _Sensor:
    """What belongs to one kind of observation."""

    def __init__(
        self,
        observe: Any,
        size: int | dict[str, int],
        settings: dict[str, Any],
        remember: Any = observation.keep_nothing,
        memory: int = 0,
        draws: int = 0,
    ):
        self.observe, self.settings = observe, settings
        self.remember, self.memory, self.draws = remember, memory, draws
        boxes = {
            key: spaces.Box(-1.0, 1.0, (n,), np.float32)
            for key, n in ({"": size} if isinstance(size, int) else size).items()
        }
        self.space = boxes[""] if isinstance(size, int) else spaces.Dict(boxes)


def _rays(count: int = RAYS, cone: float | None = None, max_range: float = 6.0) -> dict[str, Any]:
    """Settings of rays over a full circle from ahead on, or over a cone from right to left (degrees)."""
    if cone is None:
        angles, ends = [2.0 * math.pi * k / count for k in range(count // 2)], [1.0, -1.0]
    else:
        angles, ends = [math.radians(cone) * (k / (count - 1) - 0.5) for k in range(count)], [1.0]
    return {"max_range": max_range, "ray_cos": np.cos(angles), "ray_sin": np.sin(angles), "ray_ends": np.array(ends)}


_NOISE = {"range_noise": 0.01, "relative_range_noise": 0.01, "drop_out": 0.03}
_SENSORS = {
    "lidar": lambda p, o: _Sensor(observation.lidar, 2 * RAYS + 6, _rays()),
    "lidar_stack": lambda p, o: _Sensor(observation.lidar_stack, 2 * RAYS + 6, _rays(), observation.keep_scan, RAYS),
    "partial": lambda p, o: _Sensor(
        observation.partial, RAYS + 6, _rays(RAYS, 120.0, 3.0) | _NOISE, observation.keep_noise, RAYS, 2 * RAYS
    ),
    "camera": lambda p, o: _Sensor(observation.camera, 3 * CAMERA_RAYS + 5, _rays(CAMERA_RAYS, 90.0)),
    "state": lambda p, o: _Sensor(observation.everything, 7 + 5 * p + 3 * o, _rays()),
    "dict": lambda p, o: _Sensor(observation.parts_by_name, {"lidar": 2 * RAYS, "odometry": 2, "goal": 3}, _rays()),
}


def _speeds(value: Any) -> tuple[float, ...]:
    """Mean, deviation, low and high of the desired speeds."""
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        raise ValueError(f"pedestrian_speed must be mean, deviation, low and high in m/s, not {value!r}")
    mean, deviation, low, high = (legal_number("pedestrian_speed", part, 0.0, 3.0) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_speed must have low <= high, not {value!r}")
    return mean, deviation, low, high


def _radii(value: Any, count: int) -> tuple[float, float]:
    """Least and largest radius of pedestrians; so many must fit on the circle."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"pedestrian_radius must be low and high in m, not {value!r}")
    low, high = (legal_number("pedestrian_radius", part, 0.1, 0.35) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_radius must have low <= high, not {value!r}")
    room = scenarios.least_distance_on_ring(count)
    if 2.0 * high > room:
        raise ValueError(f"{count} pedestrians of radius {high:g} m do not fit on the circle; at most {room / 2:.3f} m")
    return low, high


class MyEnv(SingleEnv):
    """A robot drives to a goal through a room of pedestrians and obstacles."""

    world = "gym_custom.my_env:make_world"

    def layout(self) -> dict[str, Any]:
        """Where everything is now, in the form that ``reset(options={"layout": ...})`` takes."""
        if self._state is None:
            raise ResetNeeded("call reset() before layout()")
        return to_layout(self._state)


class MyVectorEnv(BatchEnv):
    """Many of `MyEnv` at once."""

    world = "gym_custom.my_env:make_world"
