"""The kinds of observation: what each shows, remembers and draws, and its space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from gym_custom.my_env import observation

RAYS, CAMERA_RAYS = 36, 24


class Sensor:
    """What belongs to one kind of observation.

    Args:
        observe: The rule that gives its parts.
        size: How many numbers it has, or how many under each key.
        settings: Constants of the rays and their noise.
        remember: The rule for what State keeps for it.
        memory: How many numbers that are.
        draws: Uniforms a step.
    """

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
        boxes: dict[str, spaces.Space] = {
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
SENSORS = {  # from the slots for pedestrians and obstacles
    "lidar": lambda p, o: Sensor(observation.lidar, 2 * RAYS + 6, _rays()),
    "lidar_stack": lambda p, o: Sensor(observation.lidar_stack, 2 * RAYS + 6, _rays(), observation.keep_scan, RAYS),
    "partial": lambda p, o: Sensor(
        observation.partial, RAYS + 6, _rays(RAYS, 120.0, 3.0) | _NOISE, observation.keep_noise, RAYS, 2 * RAYS
    ),
    "camera": lambda p, o: Sensor(observation.camera, 3 * CAMERA_RAYS + 5, _rays(CAMERA_RAYS, 90.0)),
    "state": lambda p, o: Sensor(observation.everything, 7 + 5 * p + 3 * o, _rays()),
    "dict": lambda p, o: Sensor(observation.parts_by_name, {"lidar": 2 * RAYS, "odometry": 2, "goal": 3}, _rays()),
}
