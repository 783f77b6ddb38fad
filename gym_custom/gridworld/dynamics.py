"""GridWorld: a walker on a map of cells, one step right, down, left or up at a time (Sutton & Barto 2018, chapter 3).

A cell is numbered row by row, ``cell = row * cols + col``. The map is a flat table of next cells, so walls and edges
need no rule of their own. Slipping is that of Russell & Norvig's 4x3 world (2021, section 17.1): the walker then goes
to the one or the other side of where it was told to go.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any


class Params(NamedTuple):
    """The map and the rules of the game."""

    next_cell: Array  # (cells * 4,), where each of the four moves leads
    is_pit: Array  # (cells,), bool
    is_goal: Array  # (cells,), bool, the map's own goals; they count where State.goal is -1
    cols: int  # cells in a row
    start: int  # cell where episodes begin
    goal: int  # cell where they end, -1 for the map's own goals
    starts: Array  # cells where episodes may begin under a random start
    start_rank: Array  # (cells + 1,), place of a cell in starts, len(starts) for any other and for the last entry
    goals: Array  # cells where the goal may be under a random goal
    slip: float  # probability that a move is replaced by a perpendicular one, half each side
    step_reward: float
    goal_reward: float
    pit_reward: float


class State(NamedTuple):
    """Where the walker is and where it should go; each of shape (...)."""

    cell: Array
    goal: Array  # -1 where the map's own goals count


def initial_state(xp: Any, params: Params, u: Array, *, random_start: bool = False, random_goal: bool = False) -> State:
    """Walker and goal on their cells or, where random, each uniform over the cells that it may have.

    Args:
        xp: The array namespace.
        params: The map.
        u: Uniforms of shape (draws, ...): the goal's first, then the start's, of those that are random.
        random_start: Whether the start is drawn; it never is the goal.
        random_goal: Whether the goal is drawn.
    """
    goal = params.goal
    if random_goal:
        goal = params.goals[_index(xp, u[0], len(params.goals))]
    if not random_start:
        return State(params.start, goal)
    count = len(params.starts)
    rank = params.start_rank[goal]  # the goal's place in the list is left out
    index = _index(xp, u[-1], count - xp.where(rank < count, 1, 0))
    return State(params.starts[index + xp.where(index >= rank, 1, 0)], goal)


def _index(xp: Any, u: Array, count: Array) -> Array:
    """An index below count; the product of a uniform below 1 and a count rounds below the count in any precision."""
    return xp.astype(xp.floor(u * count), int)


def transition(xp: Any, params: Params, state: State, action: Array, u: Array | None = None) -> State:
    """One move; into a wall or over the edge it leads nowhere.

    Args:
        xp: The array namespace.
        params: The map.
        state: Of shape (...).
        action: Of shape (...), 0 right, 1 down, 2 left, 3 up.
        u: Uniforms of shape (1, ...) that decide whether the move slips, or None where nothing slips.
    """
    move = action if u is None else (action + _turn(xp, params.slip, u[0])) & 3
    return State(params.next_cell[state.cell * 4 + move], state.goal)


def _turn(xp: Any, slip: float, u: Array) -> Array:
    """Quarter turns to the right: 3 and 1 with probability slip / 2 each, else 0."""
    return xp.where(u < slip, xp.where(u < 0.5 * slip, 3, 1), 0)


def outcome(
    xp: Any,
    params: Params,
    state: State,
    action: Array,
    next_state: State,
    *,
    several_goals: bool = False,
    pits: bool = True,
) -> tuple[Array, Array]:
    """The reward for the cell that was entered, and whether it is a goal or a pit."""
    return landing(xp, params, next_state.cell, next_state.goal, several_goals=several_goals, pits=pits)


def landing(
    xp: Any, params: Params, cell: Array, goal: Array, *, several_goals: bool = False, pits: bool = True
) -> tuple[Array, Array]:
    """The reward for entering a cell under a goal, and whether that ends the episode.

    Args:
        xp: The array namespace.
        params: The map.
        cell: The cell, of shape (...).
        goal: The goal's cell, of shape (...), -1 for the map's own goals.
        several_goals: Whether the goal may be -1.
        pits: Whether the map has pits.
    """
    arrived = cell == goal
    if several_goals:
        arrived = arrived | ((goal < 0) & params.is_goal[cell])
    if not pits:
        return xp.where(arrived, params.goal_reward, params.step_reward), arrived
    fell = params.is_pit[cell]
    reward = xp.where(arrived, params.goal_reward, xp.where(fell, params.pit_reward, params.step_reward))
    return reward, arrived | fell


def position(params: Params, cell: Array) -> tuple[Array, Array]:
    """Row and column of a cell."""
    row = cell // params.cols
    return row, cell - row * params.cols


def observe_position(xp: Any, params: Params, state: State) -> tuple[Array, ...]:
    """Row and column of the walker."""
    return position(params, state.cell)


def observe_index(xp: Any, params: Params, state: State) -> tuple[Array, ...]:
    """Number of the walker's cell."""
    return (state.cell,)


def observe_goal(xp: Any, params: Params, state: State) -> tuple[Array, ...]:
    """Row and column of the walker (as the goal achieved), of the goal, and of the walker (as the observation)."""
    place = position(params, state.cell)
    return (*place, *position(params, state.goal), *place)


def success(xp: Any, params: Params, state: State) -> dict[str, Array]:
    """Whether the walker stands on the goal, under the name that stable-baselines3 logs."""
    return {"is_success": state.cell == state.goal}
