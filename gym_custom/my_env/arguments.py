"""What MyEnv's constructor and options accept, and one sentence for what they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from gym_custom.my_env.layout import legal_number
from gym_custom.my_env.scenarios import SCENARIOS, least_distance_on_ring


def legal_count(name: str, value: Any, most: int) -> int:
    """A count from 0 to the most that fit."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer from 0 to {most}, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} must be an integer from 0 to {most}, not {value}")
    return int(value)


def legal_scenario(name: Any) -> str:
    """The name of a scenario, if it is one."""
    if not isinstance(name, str) or name not in SCENARIOS:
        raise ValueError(f"scenario must be one of {', '.join(map(repr, SCENARIOS))}, not {name!r}")
    return name


def legal_speeds(value: Any) -> tuple[float, ...]:
    """Mean, deviation, low and high of the desired speeds."""
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        raise ValueError(f"pedestrian_speed must be mean, deviation, low and high in m/s, not {value!r}")
    mean, deviation, low, high = (legal_number("pedestrian_speed", part, 0.0, 3.0) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_speed must have low <= high, not {value!r}")
    return mean, deviation, low, high


def legal_radii(value: Any, count: int) -> tuple[float, float]:
    """Least and largest radius of pedestrians; so many must fit on the circle."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"pedestrian_radius must be low and high in m, not {value!r}")
    low, high = (legal_number("pedestrian_radius", part, 0.1, 0.35) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_radius must have low <= high, not {value!r}")
    room = least_distance_on_ring(count)
    if 2.0 * high > room:
        raise ValueError(f"{count} pedestrians of radius {high:g} m do not fit on the circle; at most {room / 2:.3f} m")
    return low, high
