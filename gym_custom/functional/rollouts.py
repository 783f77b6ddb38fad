"""Many environments played for many steps within one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gym_custom.arguments import shown
from gym_custom.drivers.resets import legal_count
from gym_custom.functional.arguments import available, legal_key
from gym_custom.functional.environment import EnvState, JaxEnv
from gym_custom.functional.random_numbers import numbered, uniforms, words

Array = Any

BLOCK_NUMBERS = 2**17
"""Uniforms that ``rollout`` draws at once: enough to pay for the call, few enough to stay in the cache."""
MANY_DRAWS = 16
"""A reset of more uniforms than this costs so much that it is worked out only where episodes end."""
FEW = 16
"""Where that happens, one row in so many is thought to end at most; more of them cost more."""


class Rollout(NamedTuple):
    """Sums over all rows and steps of a rollout, and where it ended."""

    reward_sum: Array  # (), of all rewards
    num_episodes: Array  # (), int32, episodes that ended
    return_sum: Array  # (), of the rewards of the episodes that ended
    length_sum: Array  # (), int32, steps of the episodes that ended
    state: EnvState  # leaves with the rows first, (num_envs, ...)


class _Sums(NamedTuple):
    """Of each row, (num_envs,), or of all, ()."""

    reward: Array
    episodes: Array
    returns: Array
    lengths: Array


class _Plan(NamedTuple):
    """Where the random numbers of a rollout come from."""

    key_reset: Array
    key_steps: Array
    num_envs: int
    length: int  # steps in a block
    blocks: int  # whole blocks; what is left is shorter than their number


def rollout(env: JaxEnv, policy: Callable[[Any, Array], Array], key: Array, num_envs: int, num_steps: int) -> Rollout:
    """Play many rows for many steps, all within one compiled loop.

    The random numbers of many steps are drawn at once outside the inner loop, so that XLA fuses a step into few
    kernels; they are those of ``rollout_uniforms``, and the sums are those that ``step_from`` gives for them.

    Args:
        env: with autoreset.
        policy: (obs (num_envs, ...), u (num_envs,)) -> actions (num_envs, ...); u are uniforms in [0, 1).
        key: of either of JAX's key types.
        num_envs: rows, positive.
        num_steps: steps of each row, positive.

    Raises:
        TypeError: an argument of another type.
        ValueError: without autoreset, for counts below 1, or for actions of another shape.
    """
    plan = _plan(env, key, num_envs, num_steps)
    floats, counts = jnp.zeros(num_envs, env.dtype), jnp.zeros(num_envs, jnp.int32)

    def step(numbers: _Numbers, carry: Any, t: Array) -> Any:  # rows on the last axis throughout
        state, running, sums = carry
        u = numbers.of_step(t)  # (1 + num_step_draws, num_envs)
        after, reward, truncated = env.advance(u[1:], state, _actions(env, policy, state, u[0]))
        done, running = after.terminated | truncated, running + reward
        sums = _Sums(
            sums.reward + reward,
            sums.episodes + done,
            sums.returns + jnp.where(done, running, 0),
            sums.lengths + jnp.where(done, after.steps, 0),
        )
        return _begin_anew(env, numbers, t, done, after), jnp.where(done, 0, running), sums

    def block(carry: Any, index: Array, length: int = plan.length) -> tuple[Any, None]:
        numbers = _Numbers(env, plan, index, length)
        state, running, totals = carry  # totals grow by block sums, which float32 holds longer than single rewards
        inner = state, running, _Sums(floats, counts, floats, counts)
        inner, _ = jax.lax.scan(lambda carry, t: (step(numbers, carry, t), None), inner, jnp.arange(length))
        state, running, sums = inner
        return (state, running, jax.tree.map(lambda x, part: x + part.sum(dtype=part.dtype), totals, sums)), None

    first = env.begin(uniforms(plan.key_reset, (env.num_reset_draws, num_envs), env.dtype))
    carry: Any = first, floats, _Sums(floats[0], counts[0], floats[0], counts[0])
    carry, _ = jax.lax.scan(block, carry, jnp.arange(plan.blocks))
    if rest := num_steps - plan.blocks * plan.length:
        carry, _ = block(carry, jnp.asarray(plan.blocks), rest)
    state, _, sums = carry
    rows_first = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), state)
    return Rollout(sums.reward, sums.episodes, sums.returns, sums.lengths, rows_first)


def rollout_uniforms(env: JaxEnv, key: Array, num_envs: int, num_steps: int) -> tuple[Array, Array]:
    """The random numbers of a rollout, to replay it step by step.

    Returns:
        For ``reset_from``: (num_reset_draws, num_envs); and for each step the policy's number, then those for
        ``step_from``: (num_steps, 1 + num_draws, num_envs).
    """
    plan = _plan(env, key, num_envs, num_steps)
    lengths = [plan.length] * plan.blocks + [num_steps - plan.length * plan.blocks]

    def block(index: int, length: int) -> Array:
        numbers = _Numbers(env, plan, jnp.asarray(index), length)
        of_step = jax.vmap(lambda t: jnp.concatenate([numbers.of_step(t), numbers.of_resets(t)]))
        return of_step(jnp.arange(length))

    steps = [block(index, length) for index, length in enumerate(lengths) if length]
    return uniforms(plan.key_reset, (env.num_reset_draws, num_envs), env.dtype), jnp.concatenate(steps)


def _plan(env: JaxEnv, key: Array, num_envs: int, num_steps: int) -> _Plan:
    if not isinstance(env, JaxEnv):
        raise TypeError(f"env must be made by functional.make, not {shown(env)}")
    if not env.autoreset:
        raise ValueError("rollout needs an environment with autoreset")
    num_envs, num_steps = legal_count("num_envs", num_envs), legal_count("num_steps", num_steps)
    available(env.dtype)
    key_reset, key_steps = jax.random.split(legal_key(key))
    longest = max(1, BLOCK_NUMBERS // (_draws_ahead(env) * num_envs))
    blocks = -(-num_steps // longest)
    return _Plan(key_reset, key_steps, num_envs, num_steps // blocks, blocks)


def _actions(env: JaxEnv, policy: Callable[[Any, Array], Array], state: EnvState, u: Array) -> Array:
    """What the policy does in each row, rows last."""
    actions = jnp.asarray(policy(env.observe_rows(state), u))
    if actions.shape != (shape := (*u.shape, *env.action_space.shape)):  # type: ignore[misc]
        raise ValueError(f"the policy must return actions of shape {shape}, not {actions.shape}")
    return jnp.moveaxis(actions, 0, -1)


def _draws_ahead(env: JaxEnv) -> int:
    """Numbers of a row and step that are drawn before they are needed: the policy's, the step's, the reset's."""
    return 1 + (env.num_step_draws if _resets_seldom(env) else env.num_draws)


def _resets_seldom(env: JaxEnv) -> bool:
    """Whether resets are worked out for some rows only; float32 numbers alone can be had one by one."""
    return env.num_reset_draws > MANY_DRAWS and env.dtype == np.float32


class _Numbers:
    """The uniforms of a block: a table of (1 + num_draws, length * num_envs), of which not all is drawn ahead.

    The table is flat in steps and rows, so that its last axis is long even for one row.
    """

    def __init__(self, env: JaxEnv, plan: _Plan, index: Array, length: int) -> None:
        self._env, self._num_envs, self._width = env, plan.num_envs, length * plan.num_envs
        key = jax.random.fold_in(plan.key_steps, index)
        if not _resets_seldom(env):
            self._ahead = uniforms(key, (_draws_ahead(env), self._width), env.dtype)
            return
        if (1 + env.num_draws) * self._width >= 2**32:
            raise ValueError(f"{plan.num_envs} rows need more than 2**32 random numbers a step: play fewer at once")
        self._words = words(key)
        self._ahead = self._numbered(0, _draws_ahead(env), jnp.arange(self._width))

    def of_step(self, t: Array) -> Array:
        """The policy's and the step's at a time of the block: (1 + num_step_draws, num_envs)."""
        return self._columns(t)[: 1 + self._env.num_step_draws]

    def of_reset(self, t: Array, rows: Array) -> Array:
        """Those of the reset of some rows that a step may contain: (num_reset_draws, m)."""
        if not _resets_seldom(self._env):
            return self._columns(t)[1 + self._env.num_step_draws :, rows]
        return self._numbered(1 + self._env.num_step_draws, self._env.num_reset_draws, t * self._num_envs + rows)

    def of_resets(self, t: Array) -> Array:
        """Those of all rows, (num_reset_draws, num_envs)."""
        if not _resets_seldom(self._env):
            return self._columns(t)[1 + self._env.num_step_draws :]
        return self.of_reset(t, jnp.arange(self._num_envs))

    def _columns(self, t: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(self._ahead, t * self._num_envs, self._num_envs, 1)

    def _numbered(self, first: int, count: int, columns: Array) -> Array:
        lines = first + jnp.arange(count, dtype=jnp.uint32)
        return numbered(self._words, lines[:, None] * np.uint32(self._width) + columns.astype(jnp.uint32))


def _begin_anew(env: JaxEnv, numbers: _Numbers, t: Array, done: Array, state: EnvState) -> EnvState:
    """The states with a new episode wherever one is done."""

    def everywhere(state: EnvState) -> EnvState:
        fresh = env.begin(numbers.of_resets(t))
        return jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, state)

    def where_done(state: EnvState) -> EnvState:
        (rows,) = jnp.nonzero(done, size=few, fill_value=len(done))
        fresh = env.begin(numbers.of_reset(t, rows))
        return jax.tree.map(lambda new, old: old.at[..., rows].set(new, mode="drop"), fresh, state)

    if not _resets_seldom(env):
        return everywhere(state)
    few = -(-len(done) // FEW)
    case = (done.any()).astype(jnp.int32) + (done.sum() > few)
    return jax.lax.switch(case, (lambda state: state, where_done, everywhere), state)
