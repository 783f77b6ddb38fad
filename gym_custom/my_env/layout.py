"""Starting an episode by hand: reset options, explicit layouts as JSON, and the fixed evaluation cases."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gym_custom.my_env.dynamics import wrap
from gym_custom.my_env.scenarios import SCENARIOS, begin, count_draws
from gym_custom.my_env.state import ABSENT, RUNNING, State

CASE_SEEDS = tuple(range(2_000_000_000, 2_000_000_500))
"""The 500 fixed evaluation cases, far from the small seeds that people train with."""
SELECTION_SEEDS = tuple(range(2_100_000_000, 2_100_000_100))
"""100 others, to choose checkpoints with."""

OPTIONS = ("scenario", "n_pedestrians", "n_obstacles", "notice_prob", "robot_pose", "goal", "layout", "case")
_TOLERANCE = 0.01  # m, by which people may overlap; the robot may not even touch
_LARGEST_ROOM = 15.0  # m, half width; whoever is absent stands far beyond


def reset_with(xp: Any, params: Any, u: Any, options: dict[str, Any], *, initial_state: partial[State]) -> State:
    """The first state of an episode as the options want it.

    Args:
        xp: NumPy.
        params: Constants.
        u: (reset_draws, N) uniforms.
        options: See OPTIONS.
        initial_state: The usual beginning.

    Raises:
        ValueError: An option is unknown, out of range or contradicts another, or things overlap.
    """
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"unknown reset option {name!r}; legal are {', '.join(OPTIONS)}")
    if "case" in options:
        u = _case_draws(options["case"], u)
    settings = initial_state.keywords
    people, things = settings["slots"]
    sensor_draws = u[count_draws(people, things, 0) :]
    if "layout" in options:
        if len(options) > 1 + ("case" in options):
            raise ValueError("options['layout'] says where everything is and goes with no other option but 'case'")
        state = _from_layout(params, options["layout"], settings["slots"], u.shape[1:])
        empty = np.zeros((settings["memory"], *u.shape[1:]))
        return begin(xp, params, state._replace(sensor=empty), sensor_draws, settings["remember"])
    changed = _changed_params(params, options, settings["slots"])
    if "scenario" in options:
        initial_state = partial(initial_state, place=SCENARIOS[legal_scenario(options["scenario"])])
    state = initial_state(xp, changed, u)
    if "robot_pose" in options or "goal" in options:
        state = _moved(xp, params, state, options)
        state = begin(xp, params, state, sensor_draws, settings["remember"])
    return state


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


def legal_scenario(name: Any) -> str:
    """The name of a scenario, if it is one."""
    if not isinstance(name, str) or name not in SCENARIOS:
        raise ValueError(f"scenario must be one of {', '.join(map(repr, SCENARIOS))}, not {name!r}")
    return name


def legal_count(name: str, value: Any, most: int) -> int:
    """A count from 0 to the most that fit."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be an integer from 0 to {most}, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} must be an integer from 0 to {most}, not {value}")
    return int(value)


def legal_number(name: str, value: Any, low: float, high: float) -> float:
    """A number within bounds."""
    number = _number(name, value)
    if not low <= number <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {value!r}")
    return number


def _case_draws(case: Any, u: np.ndarray) -> np.ndarray:
    """The uniforms that ``reset(seed=CASE_SEEDS[case])`` would draw, the same for every row."""
    seed = CASE_SEEDS[legal_count("options['case']", case, len(CASE_SEEDS) - 1)]
    drawn: Any = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random(u.shape[0])
    return np.broadcast_to(drawn.reshape(-1, *(1,) * (u.ndim - 1)), u.shape)


def _changed_params(params: Any, options: dict[str, Any], slots: tuple[int, int]) -> SimpleNamespace:
    changed = dict(vars(params))
    for name, most in zip(("n_pedestrians", "n_obstacles"), slots, strict=True):
        if name in options:
            changed[name] = float(legal_count(f"options[{name!r}]", options[name], most))
    if "notice_prob" in options:
        changed["notice_prob"] = legal_number("options['notice_prob']", options["notice_prob"], 0.0, 1.0)
    return SimpleNamespace(**changed)


def _moved(xp: Any, params: Any, state: State, options: dict[str, Any]) -> State:
    """The state with the robot or the goal elsewhere."""
    batch = state.heading.shape
    if "robot_pose" in options:
        x, y, heading = _numbers("options['robot_pose']", options["robot_pose"], 3)
        state = state._replace(
            position=_repeated([x, y], batch), heading=_repeated(wrap(np, np.float64(heading)), batch)
        )
    if "goal" in options:
        state = state._replace(goal=_repeated(_numbers("options['goal']", options["goal"], 2), batch))
    rows = [State(*(leaf[..., row] for leaf in state)) for row in range(batch[0])] if batch else [state]
    for row in rows:
        _refuse_overlaps(params, row)
        _refuse_no_way(row)
    return state


def _from_layout(params: Any, layout: Any, slots: tuple[int, int], batch: tuple[int, ...]) -> State:
    """The state that a layout describes, for each row."""
    known = ("robot", "robot_velocity", "goal", "room", "pedestrians", "obstacles")
    layout = _record("layout", layout, known, needed=("robot", "goal"))
    x, y, heading = _numbers("layout['robot']", layout["robot"], 3)
    speed, turn_rate = _numbers("layout['robot_velocity']", layout.get("robot_velocity", [0, 0]), 2)
    legal_number("layout['robot_velocity'][0]", speed, 0.0, params.max_speed)
    legal_number("layout['robot_velocity'][1]", turn_rate, -params.max_turn_rate, params.max_turn_rate)
    room = _numbers("layout['room']", layout.get("room", [params.half_width] * 2), 2)
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
    numbers = {
        name: np.array([float(person[name]) for person in people]) for name in ("speed", "radius", "notices", "walks")
    }
    obstacles = np.array(things).reshape(-1, 3).T
    state = State(
        position=np.array([x, y]),
        heading=wrap(np, np.float64(heading)),
        speed=np.float64(speed),
        turn_rate=np.float64(turn_rate),
        goal=np.array(_numbers("layout['goal']", layout["goal"], 2)),
        room=np.array(room),
        pedestrians=pairs["position"],
        velocities=pairs["velocity"],
        way_points=pairs["waypoint"],
        next_way_points=pairs["next"],
        desired_speeds=numbers["speed"],
        pedestrian_radii=numbers["radius"],
        notices=numbers["notices"],
        walks=numbers["walks"],
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
    _refuse_overlaps(params, state)
    _refuse_no_way(state)
    return State(*(_repeated(leaf, batch) for leaf in state))


def _pedestrian(number: int, person: Any) -> dict[str, Any]:
    where = f"layout['pedestrians'][{number}]"
    known = ("position", "velocity", "waypoints", "speed", "radius", "notices")
    person = _record(where, person, known, needed=("position",))
    position = _numbers(f"{where}['position']", person["position"], 2)
    velocity = _numbers(f"{where}['velocity']", person.get("velocity", [0.0, 0.0]), 2)
    points = person.get("waypoints", [position, position])
    if not isinstance(points, (list, tuple)) or len(points) != 2:
        raise ValueError(f"{where}['waypoints'] must be two points, not {points!r}")
    now, then = (_numbers(f"{where}['waypoints']", point, 2) for point in points)
    notices = person.get("notices", True)
    if not isinstance(notices, bool):
        raise ValueError(f"{where}['notices'] must be true or false, not {notices!r}")
    return {
        "position": position,
        "velocity": velocity,
        "waypoint": now,
        "next": then,
        "speed": legal_number(f"{where}['speed']", person.get("speed", 0.9), 0.0, 3.0),
        "radius": legal_number(f"{where}['radius']", person.get("radius", 0.3), 0.05, 1.0),
        "notices": notices,
        "walks": not (position == now == then and velocity == [0.0, 0.0]),
    }


def _obstacle(number: int, thing: Any) -> list[float]:
    x, y, radius = _numbers(f"layout['obstacles'][{number}]", thing, 3)
    return [x, y, legal_number(f"layout['obstacles'][{number}][2]", radius, 0.05, 3.0)]


def _record(where: str, value: Any, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be a dictionary, not {value!r}")
    for name in value:
        if name not in known:
            raise ValueError(f"{where} has no entry {name!r}; legal are {', '.join(known)}")
    for name in needed:
        if name not in value:
            raise ValueError(f"{where} needs an entry {name!r}")
    return value


def _listed(name: str, layout: dict[str, Any], most: int) -> list[Any]:
    found = layout.get(name, [])
    if not isinstance(found, (list, tuple)):
        raise ValueError(f"layout[{name!r}] must be a list, not {found!r}")
    if len(found) > most:
        raise ValueError(f"layout[{name!r}] has {len(found)} entries, but this environment was made for {most}")
    return list(found)


def _numbers(where: str, value: Any, count: int) -> list[float]:
    if not isinstance(value, (list, tuple, np.ndarray)) or np.shape(value)[:1] != (count,):
        raise ValueError(f"{where} must be {count} numbers, not {value!r}")
    return [_number(where, part) for part in value]


def _repeated(leaf: Any, batch: tuple[int, ...]) -> np.ndarray:
    """A leaf with the same value in every row."""
    leaf = np.asarray(leaf)
    return np.array(np.broadcast_to(leaf.reshape(leaf.shape + (1,) * len(batch)), (*leaf.shape, *batch)))[()]


def _refuse_no_way(state: Any) -> None:
    """Refuses one state without batch axis in which the robot stands on the goal: progress is a share of the way."""
    if not np.hypot(*(state.goal - state.position)) > 0.0:
        raise ValueError(f"the goal must not be the robot's own place, {state.position.tolist()}")


def _refuse_overlaps(params: Any, state: State) -> None:
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
