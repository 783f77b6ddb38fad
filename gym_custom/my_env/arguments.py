"""What MyEnv's constructor accepts besides single numbers, and one sentence for what it does not."""

from __future__ import annotations

from typing import Any

from gym_custom.arguments import legal_number, shown
from gym_custom.my_env.scenarios import least_distance_on_ring


def legal_speeds(value: Any) -> dict[str, float]:
    """Mean, deviation, low and high of the desired speeds, by their names in `Params`."""
    if not isinstance(value, (list, tuple)) or len(value) != 4:
        raise ValueError(f"pedestrian_speed must be mean, deviation, low and high in m/s, not {shown(value)}")
    names = ("speed_mean", "speed_deviation", "speed_low", "speed_high")
    speeds = {name: legal_number("pedestrian_speed", part, 0.0, 3.0) for name, part in zip(names, value, strict=True)}
    if speeds["speed_low"] > speeds["speed_high"]:
        raise ValueError(f"pedestrian_speed must have low <= high, not {shown(value)}")
    return speeds


def legal_radii(value: Any, count: int) -> dict[str, float]:
    """Least and largest radius of pedestrians, by their names in `Params`; so many must fit on the circle."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"pedestrian_radius must be low and high in m, not {shown(value)}")
    low, high = (legal_number("pedestrian_radius", part, 0.1, 0.35) for part in value)
    if low > high:
        raise ValueError(f"pedestrian_radius must have low <= high, not {shown(value)}")
    room = least_distance_on_ring(count)
    if 2.0 * high > room:
        raise ValueError(f"{count} pedestrians of radius {high:g} m do not fit on the circle; at most {room / 2:.3f} m")
    return {"radius_low": low, "radius_high": high}


def legal_weights(**weights: Any) -> dict[str, float]:
    """What a step earns; what a penalty or a weight is worth is never negative."""
    return {name: legal_number(name, value, 0.0, 1e6) for name, value in weights.items()}
