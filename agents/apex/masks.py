"""Action masks: envs say in ``info["action_mask"]`` which actions are legal now, and nobody chooses another.

A mask travels and is stored beside its observation, as an entry of a Dict that the network does not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

MASK = "action_mask"
"""Key of the mask in infos, and of its entry in observations."""
OBSERVATION = "observation"
"""Key of an observation that was no dict, beside its mask."""


class ActionMask(spaces.MultiBinary):
    """Space of a mask: 1 where an action is legal."""


def with_mask(space: spaces.Space, num_actions: int) -> spaces.Dict:
    """Give the space of observations with their masks.

    Raises:
        ValueError: the observations have an entry of that name already.
    """
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {OBSERVATION: space}
    if MASK in parts:
        raise ValueError(f"the env gives {MASK!r} both in its infos and as an entry of its observations: one will do")
    return spaces.Dict({**parts, MASK: ActionMask(num_actions)})


def carries_mask(space: spaces.Space) -> bool:
    """Whether observations of this space have masks beside them."""
    return isinstance(space, spaces.Dict) and isinstance(space.spaces.get(MASK), ActionMask)


def join(obs: Any, mask: np.ndarray) -> dict[str, Any]:
    """Put masks (N, A) beside a batch of observations (N, ...)."""
    return {**(obs if isinstance(obs, dict) else {OBSERVATION: obs}), MASK: mask}


def masks_of(infos: dict[str, Any], num_envs: int, num_actions: int) -> np.ndarray:
    """Read the masks of all env rows from a vector env's infos; where a row gives none, all its actions are legal.

    Args:
        infos: of one reset or step; a mask may be an array, list or tuple of A zeros and ones.
        num_envs: E.
        num_actions: A.

    Returns:
        (E, A), int8.

    Raises:
        ValueError: a mask has another shape, or other values than 0 and 1.
    """
    masks = np.ones((num_envs, num_actions), np.int8)
    found = infos.get(MASK)
    if found is not None:
        given = np.asarray(infos.get(f"_{MASK}", np.ones(num_envs, bool)))
        for row in np.flatnonzero(given) if np.ndim(found) != 2 or not given.all() else [slice(None)]:
            masks[row] = _checked(found[row], num_actions)
    return masks


def _checked(mask: Any, num_actions: int) -> np.ndarray:
    values = np.asarray(mask)
    if values.shape[-1:] != (num_actions,):
        raise ValueError(f"an action mask must have shape ({num_actions},), one value an action, not {values.shape}")
    if not ((values == 0) | (values == 1)).all():
        raise ValueError(f"an action mask must hold ones (legal) and zeros, not {mask}")
    return values


def refuse_dead_ends(mask: np.ndarray, goes_on: np.ndarray) -> None:
    """Raise a ValueError where an episode goes on, (E,), and its mask (E, A) leaves no action."""
    if not (mask.any(axis=1) | ~goes_on).all():
        raise ValueError(f"info[{MASK!r}] allows no action, but the episode has not ended")


def penalty(space: spaces.Space, obs: Any) -> np.ndarray | None:
    """Give ``barrier`` of the masks in a batch of observations, or None where the space has none."""
    return barrier(obs[MASK], space[MASK].n) if carries_mask(space) else None  # type: ignore[index]


def barrier(masks: Any, num_actions: int) -> np.ndarray:
    """Say what to add to action values so that an illegal action is never the best.

    Args:
        masks: (N, A), 1 or True where an action is legal.
        num_actions: A.

    Returns:
        (N, A), float32: 0 where an action is legal, minus infinity where not; 0 in a row without any legal action,
        which ends an episode.
    """
    legal = _checked(masks, num_actions).astype(bool)
    return np.where(legal | ~legal.any(axis=1, keepdims=True), np.float32(0), np.float32(-np.inf))
