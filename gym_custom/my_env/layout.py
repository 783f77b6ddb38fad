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
    """The state that a layout describes, for each row."""
    known = ("robot", "robot_velocity", "goal", "room", "pedestrians", "obstacles")
    layout = _record("layout", layout, known, needed=("robot", "goal"))
    x, y, heading = numbers("layout['robot']", layout["robot"], 3)
    speed, turn_rate = numbers("layout['robot_velocity']", layout.get("robot_velocity", [0, 0]), 2)
    legal_number("layout['robot_velocity'][0]", speed, 0.0, params.max_speed)
    legal_number("layout['robot_velocity'][1]", turn_rate, -params.max_turn_rate, params.max_turn_rate)
    room = numbers("layout['room']", layout.get("room", [params.half_width] * 2), 2)
    for half in room:
        legal_number("layout['room']", half, 2 * params.robot_radius, _LARGEST_ROOM)
    people = [_pedestrian(k, person) for k, person in enumerate(_listed("pedestrians", layout, slots[0]))]
    things = [_obstacle(k, thing) for k, thing in enumerate(_listed("obstacles", layout, slots[1]))]
    absent = slots[0] - len(people)
    away = [ABSENT, ABSENT]
    people += [_pedestrian(-1, {"position": away}) | {"radius": 0.0} for _ in range(absent)]
    things += [[ABSENT, ABSENT, 0.0]] * (slots[1] - len(things))
    pairs = {
        name: np.array([person[name] for person in people]).reshape(-1, 2).T
        for name in ("position", "velocity", "waypoint", "next")
    }
    single = {
        name: np.array([float(person[name]) for person in people]) for name in ("speed", "radius", "notices", "walks")
    }
    obstacles = np.array(things).reshape(-1, 3).T
    state = State(
        position=np.array([x, y]),
        heading=wrap(np, np.float64(heading)),
        speed=np.float64(speed),
        turn_rate=np.float64(turn_rate),
        goal=np.array(numbers("layout['goal']", layout["goal"], 2)),
        room=np.array(room),
        pedestrians=pairs["position"],
        velocities=pairs["velocity"],
        way_points=pairs["waypoint"],
        next_way_points=pairs["next"],
        desired_speeds=single["speed"],
        pedestrian_radii=single["radius"],
        notices=single["notices"],
        walks=single["walks"],
        obstacles=obstacles[:2],
        obstacle_radii=obstacles[2],
        sensor=np.zeros(0),
        goal_distance=np.float64(0.0),
        first_goal_distance=np.float64(0.0),
        min_gap=np.float64(0.0),
        outcome=np.int64(RUNNING),
        steps=np.float64(0.0),
        discomfort_steps=np.float64(0.0),
        path_length=np.float64(0.0),
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
        "position": position,
        "velocity": velocity,
        "waypoint": now,
        "next": then,
        "speed": legal_number(f"{where}['speed']", person.get("speed", 0.9), 0.0, 3.0),
        "radius": legal_number(f"{where}['radius']", person.get("radius", 0.3), 0.05, 1.0),
        "notices": legal_flag(f"{where}['notices']", person.get("notices", True)),
        "walks": not (position == now == then and velocity == [0.0, 0.0]),
    }


def _obstacle(number: int, thing: Any) -> list[float]:
    x, y, radius = numbers(f"layout['obstacles'][{number}]", thing, 3)
    return [x, y, legal_number(f"layout['obstacles'][{number}][2]", radius, 0.05, 3.0)]


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
