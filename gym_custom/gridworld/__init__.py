"""GridWorld: a walker that looks for the goal of a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from gym_custom.arguments import legal_choice, legal_flag, legal_number
from gym_custom.gridworld import dynamics
from gym_custom.gridworld import layout as maps
from gym_custom.gridworld.arguments import legal_cell, legal_layout
from gym_custom.gridworld.draw import ansi, draw
from gym_custom.gridworld.model import transition_model
from gym_custom.single import SingleEnv
from gym_custom.vector import BatchEnv
from gym_custom.world import World

_OBSERVATIONS = {
    "position": dynamics.observe_position,
    "index": dynamics.observe_index,
    "goal": dynamics.observe_goal,
}
_REWARDS = {"step_reward": 0.0, "goal_reward": 1.0, "pit_reward": 0.0}


def make_world(
    layout: str | Sequence[str] = "empty",
    size: int | Sequence[int] | None = None,
    start: Sequence[int] | None = None,
    goal: Sequence[int] | None = None,
    random_start: bool | None = None,
    random_goal: bool = False,
    slip: float = 0.0,
    step_reward: float | None = None,
    goal_reward: float | None = None,
    pit_reward: float | None = None,
    observation: str = "position",
) -> World:
    """Makes the world; the arguments are described at `GridWorldEnv`.

    Raises:
        ValueError: An argument has no legal value, or the map cannot be solved.
        TypeError: An argument is of another type.
    """
    land = legal_layout(layout, size)
    own = maps.SETTINGS.get(layout, {}) if isinstance(layout, str) else {}
    if random_start is None:
        random_start = own.get("random_start", False) and start is None
    for name, fixed, drawn in (("start", start, random_start), ("goal", goal, random_goal)):
        if legal_flag(f"random_{name}", drawn) and fixed is not None:
            raise ValueError(f"{name}={fixed!r} and random_{name}=True exclude each other")
    ends = (legal_cell(land, "start", start), legal_cell(land, "goal", goal), random_start, random_goal)
    places = maps.settle(land, *ends)
    observation = legal_choice("observation", observation, _OBSERVATIONS)
    asked = {"step_reward": step_reward, "goal_reward": goal_reward, "pit_reward": pit_reward}
    rewards: dict[str, Any] = {
        name: legal_number(name, own.get(name, _REWARDS[name]) if value is None else value)
        for name, value in asked.items()
    }
    several_goals = places.goal < 0 and not random_goal
    if observation == "goal" and several_goals:
        raise ValueError(
            f"observation 'goal' needs a single goal, the layout has {places.goals.size}: give goal=[r, c]"
        )
    return World(
        params=dynamics.Params(
            next_cell=land.next_cell.ravel(),
            is_pit=land.is_pit,
            is_goal=np.isin(np.arange(land.is_pit.size), places.goals),
            cols=land.cols,
            **_tables(land, places),
            slip=legal_number("slip", slip, 0.0, 1.0),
            **rewards,
        ),
        initial_state=partial(dynamics.initial_state, random_start=random_start, random_goal=random_goal),
        transition=dynamics.transition,
        outcome=partial(dynamics.outcome, several_goals=several_goals, pits=bool(land.is_pit.any())),
        observe=_OBSERVATIONS[observation],
        action_space=spaces.Discrete(4),
        observation_space=_observation_space(land, observation),
        reset_draws=int(random_start) + int(random_goal),
        step_draws=int(slip > 0),
        max_step_draws=1,
        info=dynamics.success if observation == "goal" else None,
        reset_with=partial(reset_with, land, *ends),
        draw=partial(draw, land),
        ansi=partial(ansi, land),
        scalar=True,
        dtype=np.int64,
        render_fps=8,
    )


def reset_with(
    land: maps.Layout,
    start: int | None,
    goal: int | None,
    random_start: bool,
    random_goal: bool,
    xp: Any,
    params: Any,
    u: Any,
    options: dict[str, Any],
) -> dynamics.State:
    """Begins an episode on the options' ``start`` and ``goal``; what they leave open is as constructed."""
    for name in options:
        if name not in ("start", "goal"):
            raise ValueError(f"options of a reset may hold 'start' and 'goal', not {name!r}")
    asked_start, asked_goal = (legal_cell(land, f"options[{name!r}]", options.get(name)) for name in ("start", "goal"))
    places = maps.settle(
        land,
        start if asked_start is None else asked_start,
        goal if asked_goal is None else asked_goal,
        random_start and asked_start is None,
        random_goal and asked_goal is None,
    )
    tables = {name: np.asarray(table) for name, table in _tables(land, places).items()}
    if xp is not np:  # a single env runs on Python numbers
        tables = {name: table.tolist() for name, table in tables.items()}
    begin: Any = SimpleNamespace(**tables)  # all of the parameters that the rule reads
    return dynamics.initial_state(xp, begin, u, random_start=random_start, random_goal=random_goal)


def _tables(land: maps.Layout, places: maps.Places) -> dict[str, Any]:
    """The parameters that say where episodes begin and end."""
    rank = np.full(land.is_pit.size + 1, places.starts.size)
    rank[places.starts] = np.arange(places.starts.size)
    return {**places._asdict(), "start_rank": rank}


def _observation_space(land: maps.Layout, observation: str) -> spaces.Space:
    if observation == "index":
        return spaces.Discrete(land.rows * land.cols)
    position = spaces.MultiDiscrete([land.rows, land.cols])
    if observation == "position":
        return position
    return spaces.Dict({"achieved_goal": position, "desired_goal": position, "observation": position})


class GridWorldEnv(SingleEnv):
    """A walker looks for the goal of a map, by steps to the right, down, left and up.

    ## Description

    The grid world of the textbooks (Sutton & Barto 2018, chapters 3 to 8), for tabular methods, for first runs of
    deep ones, and for hindsight replay. A map is a table of next cells, so a step costs the same on every map.

    Places are `(row, column)` everywhere: in arguments, observations, text and pictures. Row 0 is at the top.

    ## Action Space

    `Discrete(4)`: 0 right, 1 down, 2 left, 3 up. A move into a wall or over the edge leaves the walker where it is.
    With probability `slip` a move is replaced by one of the two perpendicular ones, half each.

    ## Observation Space

    | `observation` | space | what it holds |
    |---|---|---|
    | `"position"` | `MultiDiscrete([rows, cols])` | row and column of the walker |
    | `"index"` | `Discrete(rows * cols)` | `row * cols + column` |
    | `"goal"` | `Dict` of `observation`, `achieved_goal`, `desired_goal` | positions of walker, walker and goal |

    The first two do not show the goal: under `random_goal` they tell a part of the state only.

    ## Rewards

    `goal_reward` (1) on the step that enters the goal, `pit_reward` (0) on one that enters a pit, `step_reward` (0) on
    any other. The map `"small"` costs 1 a step, the last one included, and so does `"cliff"`, where a fall costs 100.

    ## Starting State

    On the map's `S` (the cell at the bottom right of `"empty"`), on `start`, or with `random_start` anywhere from where
    the goal can be reached. A random start is never the goal. With neither randomness episodes begin alike, whatever
    the seed.

    ## Episode End

    Terminated in a goal or a pit; after that the walker stays and earns nothing. Truncated after 100 steps
    (`max_episode_steps` of `gymnasium.make`).

    ## Arguments

    | name | default | meaning |
    |---|---|---|
    | `layout` | `"empty"` | `"empty"`, `"small"`, `"four_rooms"`, `"cliff"`, `"maze"`, or lines of text as below |
    | `size` | 5 | of `"empty"`: an integer, or [rows, columns] |
    | `start`, `goal` | the map's | [row, column] |
    | `random_start` | `False` | draws the start at each reset (`"small"` has no start of its own: `True`) |
    | `random_goal` | `False` | draws the goal at each reset, among the cells that can be reached |
    | `slip` | 0.0 | probability of a slip |
    | `step_reward`, `goal_reward`, `pit_reward` | 0, 1, 0 | see above |
    | `observation` | `"position"` | see above |

    A map of one's own is a list of equally long strings of `S` start, `G` goal (one or more), `#` wall, `.` free and
    `O` pit. Maps whose goal cannot be reached are refused.

    ```python
    env = gymnasium.make("GridWorld-v0", layout=["S..O", ".#..", "...G"], slip=0.1, step_reward=-0.04)
    ```

    `reset(options={"start": (r, c), "goal": (r, c)})` moves either or both for one episode.

    ## Information

    Empty, but for the observation `"goal"`, where `is_success` says whether the walker is on the goal. That variant
    also has `compute_reward` and `compute_terminated`, as hindsight replay needs them.

    ## Version History

    - v0: first version
    """

    world = "gym_custom.gridworld:make_world"

    def transition_model(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and mean rewards of the present episode, before the first reset those of the constructor.

        Returns:
            P of shape (cells, 4, cells) and R of shape (cells, 4), float64. Goals, pits and walls lead to themselves
            and earn nothing, so that `Q = R + discount * P @ Q.max(axis=1)` holds for the optimal values.

        Raises:
            ResetNeeded: The goal is random, and there was no reset yet.
        """
        goal = self._world.params.goal if self._state is None else self._state.goal
        if self._state is None and self._world.initial_state.keywords["random_goal"]:  # type: ignore[attr-defined]
            raise ResetNeeded("the goal is random: call reset() before transition_model()")
        return transition_model(self._world, int(goal))

    def draw_values(self, q: Any) -> np.ndarray:
        """A picture of the map with the value of each cell's best move, and arrows along the best moves.

        Args:
            q: Values of the moves, of shape (cells, 4) or (rows, columns, 4).

        Returns:
            A frame of shape (height, width, 3), uint8; the walker is in it after a reset.
        """
        values, cells = np.asarray(q, dtype=float), self._world.params.is_pit.size
        if values.size != cells * 4 or values.shape[-1] != 4 or not np.isfinite(values).all():
            raise ValueError(f"q must be finite, of shape ({cells}, 4) or (rows, columns, 4), not {values.shape}")
        assert self._world.draw is not None
        painter = partial(self._world.draw, values=values.reshape(cells, 4))
        return self._drawn().frame(painter, self._params, self._state, self._steps, self._return)

    @property
    def compute_reward(self) -> Callable[..., Any]:
        """`compute_reward(achieved_goal, desired_goal, info)`, of one position (2,) or many (k, 2).

        Only where the observation is `"goal"`: its presence tells others that this is a goal environment.
        """
        return self._landing("compute_reward", 0)

    @property
    def compute_terminated(self) -> Callable[..., Any]:
        """`compute_terminated(achieved_goal, desired_goal, info=None)`, of one position (2,) or many (k, 2)."""
        return self._landing("compute_terminated", 1)

    def _landing(self, name: str, part: int) -> Callable[..., Any]:
        if not isinstance(self.observation_space, spaces.Dict):
            raise AttributeError(f"{name} needs the observation 'goal'")
        return partial(_landing, self._world, part)


def _landing(world: World, part: int, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
    """Reward (part 0) or end (part 1) of arriving at positions (..., 2), as a Python number for a single one."""
    cell, goal = (np.asarray(place) @ [world.params.cols, 1] for place in (achieved_goal, desired_goal))
    arrival = dynamics.State(cell, goal)
    found = world.outcome(np, world.params, arrival, None, arrival)[part]
    return found.item() if np.ndim(found) == 0 else found


class GridWorldVectorEnv(BatchEnv):
    """Many GridWorlds at once; arguments, spaces and rewards are those of `GridWorldEnv`."""

    world = "gym_custom.gridworld:make_world"
