"""Training: settings are checked, agents get their keys, and groups of them their devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from ..settings import check_settings, legal_count
from .loop import Agents, Setup, run_together
from .records import Curve, QResult
from .watching import Watched

Array = Any

GROUP = 256
"""Agents that a CPU trains together, one group after the other: their tables stay in the cache."""


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
        TypeError: where a space is not finite, or an argument of another type.
        ValueError: where a setting is out of range.
    """
    _check_env(env)
    num_agents, num_steps = legal_count("num_agents", num_agents), legal_count("num_steps", num_steps)
    if history_every is not None:
        history_every = legal_count("history_every", history_every)
    spread = None if devices is None else _legal_devices(devices, num_agents)
    if not any(isinstance(value, jax.core.Tracer) for value in (learning_rate, discount, epsilon)):
        check_settings(learning_rate, discount, epsilon, num_agents)
    setup = Setup(env, num_steps, isinstance(learning_rate, str), history_every)
    if num_agents * setup.num_states * setup.num_actions >= 2**31:
        raise ValueError(f"the tables of {num_agents} agents have more than 2**31 entries: train fewer at once")
    rate = 0.0 if setup.count_visits else learning_rate
    numbers = [jnp.broadcast_to(jnp.asarray(value, jnp.float32), num_agents) for value in (rate, epsilon)]
    key_reset, key_steps = jax.random.split(_new_key(key))
    keys = [jax.vmap(partial(jax.random.fold_in, one))(jnp.arange(num_agents)) for one in (key_reset, key_steps)]
    arguments = Agents(*keys, *numbers), jnp.asarray(discount, jnp.float32)
    if not progress_bar:
        return compiled(setup, spread)(*arguments)
    if callable(progress_bar):
        return compile_training(setup, spread, progress_bar)(*arguments)
    from tqdm import tqdm

    with tqdm(total=num_agents * num_steps, unit="step", unit_scale=True) as bar:
        watched = Watched(bar.update)
        run = compile_training(setup, spread, watched).lower(*arguments).compile()
        return watched.run(lambda: run(*arguments))


def _check_env(env: Any) -> None:
    """Refuse what is no functional environment, and one that stands still after the end of an episode.

    Raises:
        TypeError: it lacks something, or is one of Gymnasium's envs.
        ValueError: it has no autoreset.
    """
    needed = ("reset", "step", "observation_space", "action_space")
    if hasattr(env, "metadata") or not all(hasattr(env, name) for name in needed):
        raise TypeError(f"env must be a functional environment with {', '.join(needed)}, got {env!r}")
    if not getattr(env, "autoreset", True):
        raise ValueError("env must begin anew by itself, but its autoreset is off")


def _new_key(key: Any) -> Array:
    """The key as one of the new type."""
    if hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if getattr(key, "dtype", None) != np.uint32:
        raise TypeError(f"key must be one of JAX's keys, such as jax.random.key(0), got {key!r}")
    return jax.random.wrap_key_data(key)


def _legal_devices(devices: Any, num_agents: int) -> tuple[Any, ...]:
    if not isinstance(devices, (list, tuple)) or not devices or not all(isinstance(d, jax.Device) for d in devices):
        raise TypeError(f"devices must be a list of JAX's devices, such as jax.devices(), got {devices!r}")
    if num_agents % len(devices):
        raise ValueError(f"num_agents must be a multiple of the {len(devices)} devices, got {num_agents}")
    return tuple(devices)


def compile_training(setup: Setup, devices: tuple[Any, ...] | None, tick: Callable[[int], Any] | None = None) -> Any:
    """The training of agents as one compiled function (agents, discount) -> QResult; it tells ``tick`` of its steps."""
    run = partial(_run, setup, tick)
    if devices is None:
        return jax.jit(run)
    first, second = PartitionSpec("agents"), PartitionSpec(None, "agents")
    history = None if setup.history_every is None else second
    out = QResult(first, first, first, Curve(PartitionSpec(), second, second), history)  # type: ignore[arg-type]
    return jax.jit(_sharded(run, Mesh(np.array(devices), ("agents",)), (first, PartitionSpec()), out))


compiled = lru_cache(maxsize=16)(compile_training)


def _sharded(run: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """shard_map of new and of older JAX; agents never talk, so there is nothing to check between devices."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(run, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    from jax.experimental.shard_map import shard_map

    return shard_map(run, mesh, in_specs, out_specs, check_rep=False)


def _run(setup: Setup, tick: Callable[[int], Any] | None, agents: Agents, discount: Array) -> QResult:
    """The whole training of these agents, group after group on a CPU."""
    count = len(agents.epsilon)
    groups = -(-count // GROUP) if jax.default_backend() == "cpu" else 1
    if groups == 1:
        return run_together(setup, tick, discount, agents)
    size = -(-count // groups)
    numbers = jnp.arange(groups * size) % count  # the last group is filled up with agents that ran before
    grouped = jax.tree.map(lambda x: x[numbers.reshape(groups, size)], agents)
    results = jax.lax.map(partial(run_together, setup, tick, discount), grouped)
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
