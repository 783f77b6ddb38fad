"""Agents that step together: their whole training in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..equations import epsilon_greedy, q_update, visit_rate
from ..tables import state_index, table_shape
from .records import Curve, History, QResult

Array = Any

BLOCK_NUMBERS = 2**17
"""Uniforms drawn at once: enough to pay for the call, few enough to stay in the cache."""
CHUNK = 256
"""Steps whose numbers come from one key, so that they do not depend on how many agents share a block."""
NUM_POINTS = 50
"""Points of a learning curve, at most; none is shorter than a chunk."""


class _Carry(NamedTuple):
    """What agents take from one step to the next."""

    env: Any  # the environments' states, rows first
    state: Array  # (N,), int32, number of the state acted on
    table: Array  # (N * states * A,), float32, flat
    visits: Array  # the same shape, int32, or (0,) where nobody counts
    running: Array  # (N,), return of the episode so far
    returns: Array  # (N,), sum of the returns of the episodes that ended in this block
    episodes: Array  # (N,), int32, their number


class _Record(NamedTuple):
    """One step, for a history."""

    state: Array  # (N,)
    action: Array  # (N,)
    reward: Array  # (N,)
    terminated: Array  # (N,)
    truncated: Array  # (N,)


class Setup(NamedTuple):
    """Everything that a compiled loop depends on."""

    env: Any
    num_steps: int
    count_visits: bool
    history_every: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Shape of one agent's table."""
        return table_shape(self.env.observation_space, self.env.action_space)

    @property
    def num_actions(self) -> int:
        """Columns of the table."""
        return self.sizes[-1]

    @property
    def num_states(self) -> int:
        """Rows of the table."""
        return int(np.prod(self.sizes[:-1]))

    @property
    def takes_uniforms(self) -> bool:
        """Whether the environment steps from uniforms, so that these can be drawn for many steps at once."""
        return hasattr(self.env, "step_from") and hasattr(self.env, "num_draws")


class Agents(NamedTuple):
    """What distinguishes agents; each (N,)."""

    key_reset: Array
    key_steps: Array
    learning_rate: Array
    epsilon: Array


def run_together(setup: Setup, tick: Callable[[int], Any] | None, discount: Array, agents: Agents) -> QResult:
    """The whole training of agents that step together."""
    num_agents, num_steps, env = len(agents.epsilon), setup.num_steps, setup.env
    carry = _begin(setup, agents.key_reset)
    numbers = num_agents * (1 + (env.num_draws if setup.takes_uniforms else 2))
    chunks = max(1, min(BLOCK_NUMBERS // (CHUNK * numbers), num_steps // (CHUNK * NUM_POINTS)))  # in a block
    blocks, rest = divmod(num_steps, chunks * CHUNK)
    point_of = np.arange(blocks + 1) * NUM_POINTS // max(blocks + 1, NUM_POINTS)  # the curve's point of each block
    every = setup.history_every
    tables = jnp.zeros((0 if every is None else -(-num_steps // every), *carry.table.shape), jnp.float32)

    def block(whole: Any, index: Array, length: int = chunks * CHUNK) -> tuple[Any, Any]:
        carry, curve, tables = whole
        numbers = jax.tree.map(lambda x: x[:length], _numbers(setup, agents.key_steps, index * chunks, length))

        def step(inner: Any, now: Any) -> tuple[Any, _Record | None]:
            (carry, tables), (t, u) = inner, now
            carry, record = _step(setup, agents, discount, carry, u)
            if every is None:
                return (carry, tables), None
            place = (index * (chunks * CHUNK) + t) // every  # written over until the stretch is complete
            return (carry, jax.lax.dynamic_update_index_in_dim(tables, carry.table, place, 0)), record

        (carry, tables), records = jax.lax.scan(step, (carry, tables), (jnp.arange(length), numbers))
        point = jnp.asarray(point_of)[index]
        curve = tuple(
            total.at[point].add(new) for total, new in zip(curve, (carry.returns, carry.episodes), strict=True)
        )
        if tick is not None:
            jax.debug.callback(lambda _: tick(length * num_agents), carry.episodes[0])
        zeros = jnp.zeros_like(carry.returns), jnp.zeros_like(carry.episodes)
        return (carry._replace(returns=zeros[0], episodes=zeros[1]), curve, tables), records

    last_block = blocks - (not rest)
    ends = np.flatnonzero(np.diff(point_of[: last_block + 1], append=-1)) + 1  # blocks until the end of each point
    curve = tuple(jnp.zeros((NUM_POINTS, num_agents), dtype) for dtype in (jnp.float32, jnp.int32))
    whole, records = jax.lax.scan(block, (carry, curve, tables), jnp.arange(blocks))
    records = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), records)
    if rest:
        whole, last = block(whole, jnp.asarray(blocks), rest)
        records = jax.tree.map(lambda *parts: jnp.concatenate(parts), records, last)
    carry, curve, tables = whole
    steps = jnp.asarray(np.minimum(ends * (chunks * CHUNK), num_steps), jnp.int32)
    return _result(setup, records, carry, Curve(steps, *(sums[: len(ends)] for sums in curve)), tables)


def _begin(setup: Setup, keys: Array) -> _Carry:
    env, num_agents = setup.env, len(keys)
    env_state, obs = jax.vmap(env.reset)(keys)
    entries = num_agents * setup.num_states * setup.num_actions
    return _Carry(
        env_state,
        state_index(env.observation_space, obs).astype(jnp.int32),
        jnp.zeros(entries, jnp.float32),
        jnp.zeros(entries if setup.count_visits else 0, jnp.int32),
        jnp.zeros(num_agents, jnp.float32),
        jnp.zeros(num_agents, jnp.float32),
        jnp.zeros(num_agents, jnp.int32),
    )


def _numbers(setup: Setup, keys: Array, chunk: Array, length: int) -> tuple[Array, Array]:
    """The random numbers of a block: for the actions (length, N), and for the environments."""
    count = -(-length // CHUNK)
    chunks = chunk + jnp.arange(count)

    def own(number: Array) -> Array:  # keys (N, chunks)
        return jax.vmap(lambda key: jax.vmap(partial(jax.random.fold_in, key))(number))(keys)

    if not setup.takes_uniforms:
        for_actions = _over(own(2 * chunks), lambda key: jax.random.uniform(key, (CHUNK,)))
        return for_actions, _over(own(2 * chunks + 1), lambda key: jax.random.key_data(jax.random.split(key, CHUNK)))
    draw = getattr(setup.env, "uniforms", jax.random.uniform)
    u = _over(own(chunks), lambda key: draw(key, (CHUNK, 1 + setup.env.num_draws)))
    return u[..., 0, :], u[..., 1:, :]


def _over(keys: Array, draw: Callable[[Array], Array]) -> Array:
    """Draw for keys (N, chunks): steps first, agents last (or second for keys)."""
    drawn = jax.vmap(jax.vmap(draw), out_axes=-1)(keys)
    return drawn.reshape(-1, *drawn.shape[2:])


def _step(
    setup: Setup, agents: Agents, discount: Array, carry: _Carry, numbers: tuple[Array, Array]
) -> tuple[_Carry, _Record]:
    """Act, move and learn, all agents once."""
    env, (for_actions, for_envs) = setup.env, numbers
    rows = jnp.arange(len(carry.state)) * setup.num_states
    start = (rows + carry.state) * setup.num_actions
    action = epsilon_greedy(_rows_at(setup, carry.table, start), agents.epsilon, for_actions, jnp).astype(jnp.int32)
    if not setup.takes_uniforms:
        for_envs = jax.random.wrap_key_data(jnp.moveaxis(for_envs, -1, 0), impl=jax.random.key_impl(agents.key_steps))
    move = jax.vmap(env.step_from, (-1, 0, 0)) if setup.takes_uniforms else jax.vmap(env.step)
    env_state, obs, reward, terminated, truncated, info = move(
        for_envs, carry.env, action + int(env.action_space.start)
    )
    reward = reward.astype(jnp.float32)  # of a float64 environment too: tables are float32
    true_next = state_index(env.observation_space, info["final_observation"])
    next_q = _rows_at(setup, carry.table, (rows + true_next) * setup.num_actions)
    table, visits = _learn(setup, agents, discount, carry, start + action, reward, terminated, next_q)
    done, running = terminated | truncated, carry.running + reward
    after = _Carry(
        env_state,
        state_index(env.observation_space, obs).astype(jnp.int32),
        table,
        visits,
        jnp.where(done, 0, running),
        carry.returns + jnp.where(done, running, 0),
        carry.episodes + done,
    )
    return after, _Record(carry.state, action, reward, terminated, truncated)


def _learn(
    setup: Setup,
    agents: Agents,
    discount: Array,
    carry: _Carry,
    pair: Array,
    reward: Array,
    terminated: Array,
    next_q: Array,
) -> tuple[Array, Array]:
    """The table, and the visits, after the update of one pair an agent."""
    rate, visits = agents.learning_rate, carry.visits
    if setup.count_visits:
        times = _at(visits, pair) + 1
        visits, rate = _put(visits, pair, times), visit_rate(times.astype(jnp.float32))
    new = q_update(_at(carry.table, pair), reward, terminated, next_q, rate, discount, jnp)
    return _put(carry.table, pair, new), visits


def _rows_at(setup: Setup, table: Array, start: Array) -> Array:
    """The rows (N, A) that begin at these places of a flat table, column by column, which XLA fuses best."""
    return jnp.stack([_at(table, start + action) for action in range(setup.num_actions)], -1)


def _at(table: Array, index: Array) -> Array:
    return table.at[index].get(mode="promise_in_bounds")


def _put(table: Array, index: Array, values: Array) -> Array:
    return table.at[index].set(values, mode="promise_in_bounds", unique_indices=True)


def _result(setup: Setup, records: _Record | None, carry: _Carry, curve: Curve, tables: Array) -> QResult:
    shape = len(carry.state), *setup.sizes
    history = None
    if records is not None:
        complete = setup.num_steps // setup.history_every  # type: ignore[operator]
        tables = tables[:complete].reshape(complete, *shape)
        history = History(_observations(setup, records.state), *records[1:], tables)
    return QResult(
        carry.table.reshape(shape),
        curve.returns.sum(0) + carry.running,
        curve.episodes.sum(0, dtype=jnp.int32),
        curve,
        history,
    )


def _observations(setup: Setup, state: Array) -> Array:
    """The observations with these numbers, (..., *shape)."""
    space = setup.env.observation_space
    parts = jnp.stack(jnp.unravel_index(state, setup.sizes[:-1]), -1).reshape(*state.shape, *space.shape)
    return parts + jnp.asarray(space.start, parts.dtype)
