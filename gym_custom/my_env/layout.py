"""Explicit layouts: where everything is, as JSON types, to and from a state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gym_custom.arguments import legal_flag, legal_number, shown
from gym_custom.my_env.dynamics import wrap
from gym_custom.my_env.state import ABSENT, RUNNING, State

_TOLERANCE = 0.01  # m, by which people may overlap; the robot may not even touch
_LARGEST_ROOM = 15.0  # m, half width; whoever is absent stands far beyond
_FARTHEST = 100.0  # m, coordinate of a way-point
_FASTEST = 10.0  # m/s, component of a pedestrian's velocity
_SHORTEST_WAY = 1e-3  # m, from the robot to the goal
_ENTRIES = ("robot", "robot_velocity", "goal", "room", "pedestrians", "obstacles")


def to_layout(state: State) -> dict[str, Any]:
    """The layout of one state without batch axis, as JSON types."""
    people = range(int((state.pedestrian_radii > 0.0).sum()))
    things = range(int((state.obstacle_radii > 0.0).sum()))
    return {
        "robot": [*state.position.tolist(), float(state.heading)],
        "robot_velocity": [float(state.speed), float(state.turn_rate)],
        "goal": state.goal.tolist(),
        "room": state.room.tolist(),
        "pedestrians": [
            {
                "position": state.pedestrians[:, k].tolist(),
                "velocity": state.velocities[:, k].tolist(),
                "waypoints": [state.way_points[:, k].tolist(), state.next_way_points[:, k].tolist()],
                "speed": float(state.desired_speeds[k]),
                "radius": float(state.pedestrian_radii[k]),
                "notices": bool(state.notices[k] > 0.0),
            }
            for k in people
        ],
        "obstacles": [[*state.obstacles[:, k].tolist(), float(state.obstacle_radii[k])] for k in things],
    }


def from_layout(params: Any, layout: Any, slots: tuple[int, int], batch: tuple[int, ...]) -> State:
    """The state that a layout describes, for each row; distances and the smallest gap are left to `begin`."""
    layout = _record("layout", layout, _ENTRIES, needed=("robot", "goal"))
    state = State(
        **_robot(params, layout), **_people(layout, slots[0]), **_obstacles(layout, slots[1]), **_at_the_start()
    )
    refuse_overlaps(params, state)
    refuse_no_way(state)
    return State(*(repeated(leaf, batch) for leaf in state))


def refuse_overlaps(params: Any, state: State) -> None:
    """Refuses one state without batch axis in which things cover each other or leave the room."""
    people = int((state.pedestrian_radii > 0.0).sum())
    things = int((state.obstacle_radii > 0.0).sum())
    names = ["the robot", *(f"pedestrian {k}" for k in range(people)), *(f"obstacle {k}" for k in range(things))]
    centres = np.concatenate(
        [state.position[:, None], state.pedestrians[:, :people], state.obstacles[:, :things]], axis=1
    )
    radii = np.concatenate([[params.robot_radius], state.pedestrian_radii[:people], state.obstacle_radii[:things]])
    for i in range(len(names)):
        inside = np.abs(centres[:, i]) + (radii[i] if i <= people else 0.0) <= state.room + _TOLERANCE * (i > 0)
        if not inside.all():
            raise ValueError(
                f"{names[i]} at {centres[:, i].tolist()} is not inside the room of half width {state.room.tolist()}"
            )
        for j in range(i):
            gap = np.hypot(*(centres[:, i] - centres[:, j])) - radii[i] - radii[j]
            if gap <= (1e-6 if j == 0 else -_TOLERANCE):
                raise ValueError(f"{names[j]} and {names[i]} overlap, or touch: the gap is {gap:.3f} m")
    if not (np.abs(state.goal) <= state.room).all():
        raise ValueError(f"the goal {state.goal.tolist()} is not inside the room of half width {state.room.tolist()}")


def refuse_no_way(state: Any) -> None:
    """Refuses one state without batch axis in which the robot stands on the goal: progress is a share of the way."""
    if np.hypot(*(state.goal - state.position)) < _SHORTEST_WAY:
        raise ValueError(f"the goal {state.goal.tolist()} must not be the robot's own place")


def repeated(leaf: Any, batch: tuple[int, ...]) -> np.ndarray:
    """A leaf with the same value in every row."""
    leaf = np.asarray(leaf)
    return np.array(np.broadcast_to(leaf.reshape(leaf.shape + (1,) * len(batch)), (*leaf.shape, *batch)))[()]


def _robot(params: Any, layout: dict[str, Any]) -> dict[str, Any]:
    """Where the robot is, how it moves, and the room in which it looks for the goal."""
    x, y, heading = numbers("layout['robot']", layout["robot"], 3)
    speed, turn_rate = numbers("layout['robot_velocity']", layout.get("robot_velocity", [0, 0]), 2)
    room = numbers("layout['room']", layout.get("room", [params.half_width] * 2), 2)
    return {
        "position": np.array([x, y]),
        "heading": wrap(np, np.float64(heading)),
        "speed": legal_number("layout['robot_velocity'][0]", speed, 0.0, params.max_speed),
        "turn_rate": legal_number(
            "layout['robot_velocity'][1]", turn_rate, -params.max_turn_rate, params.max_turn_rate
        ),
        "goal": np.array(numbers("layout['goal']", layout["goal"], 2)),
        "room": np.array(
            [legal_number("layout['room']", half, 2 * params.robot_radius, _LARGEST_ROOM) for half in room]
        ),
    }


def _people(layout: dict[str, Any], count: int) -> dict[str, np.ndarray]:
    """All pedestrians, (2, P) or (P,) each; those who are absent stand far away and have no radius."""
    people = [_pedestrian(k, person) for k, person in enumerate(_listed("pedestrians", layout, count))]
    absent = _pedestrian(-1, {"position": [ABSENT, ABSENT]}) | {"pedestrian_radii": 0.0}
    people += [absent] * (count - len(people))
    return {
        name: np.array([person[name] for person in people], float).reshape(count, *np.shape(absent[name])).T
        for name in absent
    }


def _pedestrian(number: int, person: Any) -> dict[str, Any]:
    where = f"layout['pedestrians'][{number}]"
    known = ("position", "velocity", "waypoints", "speed", "radius", "notices")
    person = _record(where, person, known, needed=("position",))
    position = numbers(f"{where}['position']", person["position"], 2)
    velocity = numbers(f"{where}['velocity']", person.get("velocity", [0.0, 0.0]), 2, _FASTEST)
    points = person.get("waypoints", [position, position])
    if not isinstance(points, (list, tuple)) or len(points) != 2:
        raise ValueError(f"{where}['waypoints'] must be two points, not {shown(points)}")
    now, then = (numbers(f"{where}['waypoints']", point, 2, _FARTHEST) for point in points)
    return {
        "pedestrians": position,
        "velocities": velocity,
        "way_points": now,
        "next_way_points": then,
        "desired_speeds": legal_number(f"{where}['speed']", person.get("speed", 0.9), 0.0, 3.0),
        "pedestrian_radii": legal_number(f"{where}['radius']", person.get("radius", 0.3), 0.05, 1.0),
        "notices": legal_flag(f"{where}['notices']", person.get("notices", True)),
        "walks": not (position == now == then and velocity == [0.0, 0.0]),
    }


def _obstacles(layout: dict[str, Any], count: int) -> dict[str, np.ndarray]:
    """All obstacles, (2, O) and (O,)."""
    things = [_obstacle(k, thing) for k, thing in enumerate(_listed("obstacles", layout, count))]
    things += [[ABSENT, ABSENT, 0.0]] * (count - len(things))
    columns = np.array(things).reshape(count, 3).T
    return {"obstacles": columns[:2], "obstacle_radii": columns[2]}


def _obstacle(number: int, thing: Any) -> list[float]:
    x, y, radius = numbers(f"layout['obstacles'][{number}]", thing, 3)
    return [x, y, legal_number(f"layout['obstacles'][{number}][2]", radius, 0.05, 3.0)]


def _at_the_start() -> dict[str, Any]:
    """The clock and the sums of an episode that begins."""
    sums = ("goal_distance", "first_goal_distance", "min_gap", "steps", "discomfort_steps", "path_length")
    return {"sensor": np.zeros(0), "outcome": np.int64(RUNNING)} | dict.fromkeys(sums, np.float64(0.0))


def _record(where: str, value: Any, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a dictionary, not {shown(value)}")
    for name in value:
        if name not in known:
            raise ValueError(f"{where} has no entry {shown(name)}; legal are {', '.join(known)}")
    for name in needed:
        if name not in value:
            raise ValueError(f"{where} needs an entry {name!r}")
    return value


def _listed(name: str, layout: dict[str, Any], most: int) -> list[Any]:
    found = layout.get(name, [])
    if not isinstance(found, (list, tuple)):
        raise ValueError(f"layout[{name!r}] must be a list, not {shown(found)}")
    if len(found) > most:
        raise ValueError(f"layout[{name!r}] has {len(found)} entries, but this environment was made for {most}")
    return list(found)


def numbers(where: str, value: Any, count: int, most: float = math.inf) -> list[float]:
    """So many finite numbers, of magnitude at most `most`: the parts of a point, a velocity or a pose."""
    listed = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if not listed or len(value) != count:
        raise ValueError(f"{where} must be {count} numbers, not {shown(value)}")
    return [legal_number(where, part, -most, most) for part in value]
