"""Hindsight experience replay (Andrychowicz et al. 2017, arXiv:1707.01495) over a uniform or prioritized memory."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from agents.replay.checks import check_choice, check_fraction, check_integer
from agents.replay.episodes import EpisodeIndex
from agents.replay.memory import ReplayMemory
from agents.replay.prioritized import PrioritizedMemory
from agents.replay.uniform import UniformMemory
from agents.replay.windows import fold, follow
from agents.trees import tree_map
from agents.types import Batch, Experience, Transition

STRATEGIES = ("future", "final", "episode")


def _setting(name: str) -> Any:
    """A property that is the wrapped memory's."""

    def assign(self: HindsightMemory, value: Any) -> None:
        getattr(self.memory, name)  # AttributeError where the wrapped memory has no such setting
        setattr(self.memory, name, value)

    return property(lambda self: getattr(self.memory, name), assign)


def _checked(name: str, check: Callable[..., Any], *legal: Any) -> Any:
    """A property of hindsight's own that may be assigned at any time."""

    def assign(self: HindsightMemory, value: Any) -> None:
        self.__dict__[f"_{name}"] = check(name, value, *legal)

    return property(operator.attrgetter(f"_{name}"), assign)


class HindsightMemory(ReplayMemory):
    """Replay memory that replaces goals by what the same episode achieved later.

    Of the rows of a batch, a share of num_goal_samples / (num_goal_samples + 1) gets another goal: what was achieved
    after a random later step of its episode ("future"), after its last step ("final") or after any step ("episode").
    Reward and termination of every step of the window are then worked out anew for that one goal, and the window is
    cut where the goal is reached; all rows of a sequence have one goal, and the mask ends there. Rows whose episode has
    not ended keep their goal; ``num_open`` counts them.

    Goals are replaced when rows are drawn, so priorities belong to the stored rows.

    Args:
        memory: A UniformMemory or PrioritizedMemory over a Dict observation space. It may hold Experiences only.
        achieved: Function from a batch of observations to goals (k, ...), which is given next observations, or the
            key of the observation's entry that says what is achieved.
        desired: Key of the entry that is the goal: replaced in obs and next_obs.
        reward_function: f(achieved_next, goal, info) -> rewards (k,) of batches (k, ...); info is None.
        termination_function: g(achieved_next, goal) -> bool (k,).
        discount: Gamma of ``sample`` where none is given. May be assigned at any time, like the following.
        strategy: "future", "final" or "episode".
        num_goal_samples: Rows with another goal for each row with its own, at least 1.

    Raises:
        ValueError: If an argument is out of its range or names no entry.
        TypeError: If the memory is none of these two or a function cannot be called.
    """

    def __init__(
        self,
        memory: UniformMemory | PrioritizedMemory,
        *,
        achieved: str | Callable[[Any], np.ndarray],
        desired: str,
        reward_function: Callable[[np.ndarray, np.ndarray, None], np.ndarray],
        termination_function: Callable[[np.ndarray, np.ndarray], np.ndarray],
        discount: float = 0.99,
        strategy: str = "future",
        num_goal_samples: int = 4,
    ):
        if not isinstance(memory, (UniformMemory, PrioritizedMemory)):
            raise TypeError(f"memory must be a UniformMemory or a PrioritizedMemory, got {type(memory).__name__}")
        space = memory.observation_space
        if not isinstance(space, spaces.Dict):
            raise ValueError(f"hindsight needs a Dict observation space, got {space}")
        for name, key in (("achieved", achieved), ("desired", desired)):
            if not callable(key) and key not in space.keys():  # noqa: SIM118 (a Dict space is no dict)
                raise ValueError(f"{name} must be one of the keys {sorted(space.keys())}, got {key!r}")
        if isinstance(space[desired], (spaces.Dict, spaces.Tuple)):
            raise ValueError(f"{desired!r}, the entry named desired, must be one array, got {space[desired]}")
        for name, function in (("reward", reward_function), ("termination", termination_function)):
            if not callable(function):
                raise TypeError(f"{name}_function must be callable, got {function!r}")
        self.memory, self.desired, self._goal_shape = memory, desired, space[desired].shape or ()
        self.achieved = achieved if callable(achieved) else operator.itemgetter(achieved)
        self.reward_function, self.termination_function = reward_function, termination_function
        self.discount, self.strategy, self.num_goal_samples = discount, strategy, num_goal_samples
        self.num_open = 0
        self._episodes = EpisodeIndex(memory.ring)

    discount = _checked("discount", check_fraction)
    strategy = _checked("strategy", check_choice, STRATEGIES)
    num_goal_samples = _checked("num_goal_samples", check_integer, 1)
    priority_exponent = _setting("priority_exponent")
    initial_importance_sampling_exponent = _setting("initial_importance_sampling_exponent")
    num_annealing_steps = _setting("num_annealing_steps")
    num_samples = _setting("num_samples")
    rng = _setting("rng")

    def __len__(self) -> int:
        return len(self.memory)

    def __getattr__(self, name: str) -> Any:
        """What hindsight does not touch is the wrapped memory's: exponents, spaces, resize, all_experiences, ..."""
        if name.startswith("_") or name == "memory":
            raise AttributeError(name)
        return getattr(self.memory, name)

    @property
    def capacity(self) -> int:
        """Most rows that are held."""
        return self.memory.capacity

    def append(self, rows: Experience | Transition, priorities: Any = None, source: Any = 0) -> np.ndarray:
        """Store Experiences, as the wrapped memory does."""
        if not isinstance(rows, Experience):
            raise TypeError(f"hindsight needs rows of kind Experience, got {type(rows).__name__}")
        return self.memory.append(rows, priorities, source)

    def update_priorities(self, ids: Any, abs_td_errors: Any) -> int:
        """Give rows new priorities, as the wrapped memory does."""
        return self.memory.update_priorities(ids, abs_td_errors)

    def _mark(self) -> Any:
        return super()._mark(), self.num_open

    def _return_to(self, mark: Any) -> None:
        state, self.num_open = mark
        super()._return_to(state)

    def state_dict(self) -> dict[str, np.ndarray]:
        """The wrapped memory's state; the functions are the caller's to give again."""
        return self.memory.state_dict()

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Take over a saved memory. An episode that was open stays without an end."""
        self.memory.load_state_dict(state)

    def _batch(
        self, batch_size: int, n_step: int, discount: float | None, sequence_length: int, source: int | None
    ) -> Batch:
        gamma = self.discount if discount is None else check_fraction("discount", discount)
        drawn = self.memory.draw(batch_size, source)
        batch = self.memory.gather(drawn, n_step, gamma, sequence_length)
        slots = drawn[0]
        rows = self._choose(slots)
        if rows.size:
            goals = self._goals(slots[rows])
            new, mask = self._relabel(slots[rows], goals, n_step, gamma, sequence_length)
            tree_map(lambda old, part: old.__setitem__(rows, part), tuple(batch.transition), tuple(new))
            if batch.mask is not None:
                batch.mask[rows] = mask
        return batch

    def _choose(self, slots: np.ndarray) -> np.ndarray:
        """Which rows of the batch (N,) get another goal."""
        count = round(len(slots) * self.num_goal_samples / (self.num_goal_samples + 1))
        chosen = np.sort(self.memory.rng.permutation(len(slots))[:count])
        if self._episodes.ring is not self.memory.ring:  # resized or loaded
            self._episodes = EpisodeIndex(self.memory.ring)
        self._episodes.update()
        finished = self._episodes.in_episode(slots[chosen])
        self.num_open += int(count - finished.sum())
        return chosen[finished]

    def _goals(self, slots: np.ndarray) -> np.ndarray:
        if self.strategy == "final":
            later = self._episodes.final(slots)
        elif self.strategy == "future":
            later = self._episodes.future(slots, self.memory.rng)
        else:
            later = self._episodes.any(slots, self.memory.rng)
        goals = np.asarray(self.achieved(self.memory.ring.next_obs(later)))
        return _shaped("achieved", goals, (len(slots), *self._goal_shape))

    def _relabel(
        self, slots: np.ndarray, goals: np.ndarray, n_step: int, gamma: float, sequence_length: int
    ) -> tuple[Transition, np.ndarray]:
        """Windows for these goals (k, ...): the transition (k, ...) or (k, T, ...), and the mask (k, T)."""
        steps = follow(self.memory.ring, slots, sequence_length)
        starts, num = steps.slots.T.ravel(), steps.slots.shape[::-1]
        rows, reached = self._windows(starts, np.repeat(goals, sequence_length, 0), n_step, gamma)
        before = np.cumsum(reached.reshape(num), axis=1) - reached.reshape(num)
        mask = steps.valid.T & (before == 0)
        if sequence_length == 1:
            return rows, mask
        rows = Transition(*tree_map(lambda leaf: leaf.reshape(*num, *leaf.shape[1:]), tuple(rows)))
        return rows._replace(reward=np.where(mask, rows.reward, 0.0), discount=np.where(mask, rows.discount, 0.0)), mask

    def _windows(
        self, slots: np.ndarray, goals: np.ndarray, n_step: int, gamma: float
    ) -> tuple[Transition, np.ndarray]:
        """n-step windows for these goals, and whether the first step reaches the goal, (k,)."""
        ring = self.memory.ring
        steps = follow(ring, slots, n_step)
        achieved = np.asarray(self.achieved(ring.next_obs(steps.slots.ravel())))  # (K * k, ...)
        repeated = np.concatenate([goals] * n_step)
        reward = np.asarray(self.reward_function(achieved, repeated, None), float)
        ended = np.asarray(self.termination_function(achieved, repeated), bool)
        for name, values in (("reward_function", reward), ("termination_function", ended)):
            _shaped(name, values, repeated.shape[:1])
        reward, ended = (values.reshape(steps.slots.shape) for values in (reward, ended))
        reward, carried, length = fold(reward, ended, steps.valid, gamma)
        obs, next_obs = ring.obs(slots), ring.next_obs(steps.slots[length - 1, np.arange(len(slots))])
        obs[self.desired][...] = next_obs[self.desired][...] = goals
        return Transition(obs, ring.action(slots), reward, carried, next_obs), ended[0]


def _shaped(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What a function of the caller's gave, if it has this shape; else ValueError."""
    if values.shape != shape:
        raise ValueError(f"{name} must give an array of shape {shape} here, got {values.shape}")
    return values
