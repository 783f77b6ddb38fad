"""Tabular Q-learning in JAX: from one to many thousands of independent agents in one compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .q_learning import check_settings, epsilon_greedy, q_update, state_index, table_shape, visit_rate

Array = Any

BLOCK_NUMBERS = 2**17
"""Uniforms drawn at once: enough to pay for the call, few enough to stay in the cache."""
CHUNK = 256
"""Steps whose numbers come from one key, so that they do not depend on how many agents share a block."""
GROUP = 256
"""Agents that a CPU trains together, one group after the other: their tables stay in the cache."""
NUM_POINTS = 50
"""Points of a learning curve, at most; none is shorter than a chunk."""


class Curve(NamedTuple):
    """A learning curve: ``returns / episodes`` is the mean return of the episodes that ended around each point."""

    steps: Array  # (points,), int32, steps of each agent at the end of a point's stretch
    returns: Array  # (points, N), sum over the episodes that ended
    episodes: Array  # (points, N), int32, number of episodes that ended


class History(NamedTuple):
    """Every step of a short run; this, and only this, grows with the number of steps."""

    observations: Array  # (T, N, ...), that the actions were chosen on
    actions: Array  # (T, N), int32
    rewards: Array  # (T, N)
    terminated: Array  # (T, N), bool
    truncated: Array  # (T, N), bool
    q_values: Array  # (T // history_every, N, *sizes, A), after each history_every-th step


class QResult(NamedTuple):
    """What came of N agents."""

    q_values: Array  # (N, *sizes, A), float32
    reward_sum: Array  # (N,), of all rewards
    episodes: Array  # (N,), int32, episodes that ended
    curve: Curve
    history: History | None = None


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


class _Setup(NamedTuple):
    """Everything that a compiled loop depends on."""

    env: Any
    num_steps: int
    count_visits: bool
    history_every: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        return table_shape(self.env.observation_space, self.env.action_space)

    @property
    def num_actions(self) -> int:
        return self.sizes[-1]

    @property
    def num_states(self) -> int:
        return int(np.prod(self.sizes[:-1]))

    @property
    def takes_uniforms(self) -> bool:
        return hasattr(self.env, "step_from") and hasattr(self.env, "num_draws")


class _Agents(NamedTuple):
    """What distinguishes agents; each (N,)."""

    key_reset: Array
    key_steps: Array
    learning_rate: Array
    epsilon: Array


def train(
    env: Any,
    key: Array,
    num_agents: int,
    num_steps: int,
    learning_rate: Any = 0.1,
    discount: float = 0.99,
    epsilon: Any = 0.1,
    history_every: int | None = None,
    progress_bar: bool | Callable[[int], Any] = False,
    devices: Sequence[Any] | None = None,
) -> QResult:
    """Train independent agents, each on an environment and with a table of its own.

    An agent's run depends on the key and on its number alone: neither on how many agents train beside it nor on the
    devices. Ties are broken uniformly among the exact maxima; termination masks the bootstrap, truncation does not.
    Memory does not grow with the number of steps, unless a history is kept.

    Args:
        env: functional environment with autoreset: ``reset(key) -> (state, obs)``, ``step(key, state, action) ->
            (state, obs, reward, terminated, truncated, info)`` with ``info["final_observation"]``, and the two spaces.
            With ``step_from(u, state, action)`` and ``num_draws`` too, random numbers are drawn for many steps at
            once, by ``env.uniforms(key, shape)`` if there is one.
        key: of either of JAX's key types.
        num_agents: N, positive; a multiple of the number of devices.
        num_steps: T, steps of each agent, positive.
        learning_rate: in [0, 1], a number, an array (N,), or "visits" for 1 / visits^0.8 of each pair.
        discount: in [0, 1].
        epsilon: probability of a uniform action, in [0, 1], a number or an array (N,).
        history_every: keep every step, and the tables after each so many steps.
        progress_bar: show a bar of the agents' steps while the compiled loop runs; or a function that is told of each
            stretch how many steps it had, all agents together.
        devices: spread the agents over these, for example ``jax.devices()``.

    Raises:
        TypeError: where a space is not finite.
        ValueError: where a setting is out of range.
    """
    for name, value in {"num_agents": num_agents, "num_steps": num_steps, "history_every": history_every or 1}.items():
        if value < 1:
            raise ValueError(f"{name} must be positive, got {value}")
    if devices is not None and num_agents % len(devices):
        raise ValueError(f"num_agents must be a multiple of the {len(devices)} devices, got {num_agents}")
    if not any(isinstance(value, jax.core.Tracer) for value in (learning_rate, discount, epsilon)):
        check_settings(learning_rate, discount, epsilon, num_agents)
    setup = _Setup(env, num_steps, isinstance(learning_rate, str), history_every)
    if num_agents * setup.num_states * setup.num_actions >= 2**31:
        raise ValueError(f"the tables of {num_agents} agents have more than 2**31 entries: train fewer at once")
    rate = 0.0 if setup.count_visits else learning_rate
    numbers = [jnp.broadcast_to(jnp.asarray(value, jnp.float32), num_agents) for value in (rate, epsilon)]
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.wrap_key_data(key)
    key_reset, key_steps = jax.random.split(key)
    keys = [jax.vmap(partial(jax.random.fold_in, one))(jnp.arange(num_agents)) for one in (key_reset, key_steps)]
    arguments = _Agents(*keys, *numbers), jnp.asarray(discount, jnp.float32)
    spread = None if devices is None else tuple(devices)
    if not progress_bar:
        return _compiled(setup, spread)(*arguments)
    if callable(progress_bar):
        return _compile(setup, spread, progress_bar)(*arguments)
    from tqdm import tqdm

    with tqdm(total=num_agents * num_steps, unit="step", unit_scale=True) as bar:
        result = jax.block_until_ready(_compile(setup, spread, bar.update)(*arguments))
        jax.effects_barrier()
    return result


def _compile(setup: _Setup, devices: tuple[Any, ...] | None, tick: Callable[[int], Any] | None = None) -> Callable:
    run = partial(_run, setup, tick)
    if devices is None:
        return jax.jit(run)
    first, second = PartitionSpec("agents"), PartitionSpec(None, "agents")
    history = None if setup.history_every is None else second
    out = QResult(first, first, first, Curve(PartitionSpec(), second, second), history)  # type: ignore[arg-type]
    return jax.jit(_sharded(run, Mesh(np.array(devices), ("agents",)), (first, PartitionSpec()), out))


_compiled = lru_cache(maxsize=16)(_compile)


def _sharded(run: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """shard_map of new and of older JAX; agents never talk, so there is nothing to check between devices."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(run, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    from jax.experimental.shard_map import shard_map

    return shard_map(run, mesh, in_specs, out_specs, check_rep=False)


def _run(setup: _Setup, tick: Callable[[int], Any] | None, agents: _Agents, discount: Array) -> QResult:
    """The whole training of these agents, group after group on a CPU."""
    count = len(agents.epsilon)
    groups = -(-count // GROUP) if jax.default_backend() == "cpu" else 1
    if groups == 1:
        return _run_group(setup, tick, discount, agents)
    size = -(-count // groups)
    numbers = jnp.arange(groups * size) % count  # the last group is filled up with agents that ran before
    grouped = jax.tree.map(lambda x: x[numbers.reshape(groups, size)], agents)
    results = jax.lax.map(partial(_run_group, setup, tick, discount), grouped)
    steps = results.curve.steps[0]
    first = _joined(results._replace(curve=None, history=None), 0, count)
    second = _joined((results.curve._replace(steps=None), results.history), 1, count)
    return first._replace(curve=second[0]._replace(steps=steps), history=second[1])


def _joined(tree: Any, axis: int, count: int) -> Any:
    """Leaves (groups, ..., size, ...) with the agents on one axis again."""

    def join(leaf: Array) -> Array:
        leaf = jnp.moveaxis(leaf, 0, axis)
        leaf = leaf.reshape(*leaf.shape[:axis], -1, *leaf.shape[axis + 2 :])
        return jax.lax.slice_in_dim(leaf, 0, count, axis=axis)

    return jax.tree.map(join, tree)


def _run_group(setup: _Setup, tick: Callable[[int], Any] | None, discount: Array, agents: _Agents) -> QResult:
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


def _begin(setup: _Setup, keys: Array) -> _Carry:
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


def _numbers(setup: _Setup, keys: Array, chunk: Array, length: int) -> tuple[Array, Array]:
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
    setup: _Setup, agents: _Agents, discount: Array, carry: _Carry, numbers: tuple[Array, Array]
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
    setup: _Setup,
    agents: _Agents,
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


def _rows_at(setup: _Setup, table: Array, start: Array) -> Array:
    """The rows (N, A) that begin at these places of a flat table, column by column, which XLA fuses best."""
    return jnp.stack([_at(table, start + action) for action in range(setup.num_actions)], -1)


def _at(table: Array, index: Array) -> Array:
    return table.at[index].get(mode="promise_in_bounds")


def _put(table: Array, index: Array, values: Array) -> Array:
    return table.at[index].set(values, mode="promise_in_bounds", unique_indices=True)


def _result(setup: _Setup, records: _Record | None, carry: _Carry, curve: Curve, tables: Array) -> QResult:
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


def _observations(setup: _Setup, state: Array) -> Array:
    """The observations with these numbers, (..., *shape)."""
    space = setup.env.observation_space
    parts = jnp.stack(jnp.unravel_index(state, setup.sizes[:-1]), -1).reshape(*state.shape, *space.shape)
    return parts + jnp.asarray(space.start, parts.dtype)
