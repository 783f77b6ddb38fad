"""Who takes part in the benchmark of environments: ours, and the peers that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import gym_custom

assert gym_custom.World  # the import registers the ids

Play = Callable[[int], float]
"""Makes so many steps and returns how many transitions that were."""


class Contestant(NamedTuple):
    """Something to be measured."""

    group: str  # ratios are to the first of the same group
    name: str
    make: Callable[[int], Play]  # from the number of environments
    most: int = 65_536  # environments that are worth the wait


def single(env_id: str) -> Callable[[int], Play]:
    """One environment, without wrappers."""

    def make(num_envs: int) -> Play:
        env = gym.make(env_id).unwrapped
        choices = np.random.default_rng(0).integers(env.action_space.n, size=4_096).tolist()  # type: ignore[attr-defined]
        env.reset(seed=0)

        def play(steps: int) -> float:
            step, reset = env.step, env.reset
            for t in range(steps):
                result = step(choices[t % 4_096])
                if result[2] or result[3]:
                    reset()
            return steps

        return play

    return make


def vector(env_id: str, **kwargs: Any) -> Callable[[int], Play]:
    """A vector environment in NEXT_STEP mode."""

    def make(num_envs: int) -> Play:
        return steps_of(gym.make_vec(env_id, num_envs=num_envs, **kwargs), num_envs)

    return make


def envpool(num_envs: int) -> Play:
    """EnvPool's CartPole on all processors."""
    import envpool as pool

    return steps_of(pool.make("CartPole-v1", env_type="gymnasium", num_envs=num_envs, seed=0), num_envs, seeded=False)


def steps_of(env: Any, num_envs: int, seeded: bool = True) -> Play:
    """Plays a vector environment; how many of its rows begin anew is counted once, before the clock starts."""
    space = getattr(env, "single_action_space", env.action_space)
    choices = np.random.default_rng(0).integers(space.n, size=(16, num_envs))
    env.reset(seed=0) if seeded else env.reset()
    counted = max(50, min(1_000, 100_000 // num_envs))
    ended = sum(int(np.sum(result[2] | result[3])) for result in (env.step(choices[t % 16]) for t in range(counted)))
    real = 1.0 - ended / (counted * num_envs)

    def play(steps: int) -> float:
        step = env.step
        for t in range(steps):
            step(choices[t % 16])
        return steps * num_envs * real

    return play


def gymnax_cartpole(num_envs: int) -> Play:
    """Gymnax's CartPole in a compiled scan."""
    import gymnax
    import jax

    env, params = gymnax.make("CartPole-v1")
    reset, step = jax.vmap(env.reset, (0, None)), jax.vmap(env.step, (0, 0, 0, None))

    def begin(keys):
        return reset(keys, params)[1]

    def move(keys, state, actions):
        obs, state, reward, *_ = step(keys, state, actions, params)
        return state, obs, reward

    return scanned(begin, move, 2, num_envs)


def jax_step(name: str) -> Callable[[int], Play]:
    """Our own rules in JAX, by `env.step` in a compiled scan."""

    def make(num_envs: int) -> Play:
        import jax

        from gym_custom import functional

        env = functional.make(name)
        reset, step = jax.vmap(env.reset), jax.vmap(env.step)
        return scanned(lambda keys: reset(keys)[0], lambda *args: step(*args)[:3], env.action_space.n, num_envs)

    return make


def scanned(begin: Callable[..., Any], move: Callable[..., Any], num_actions: int, num_envs: int) -> Play:
    """A compiled scan: ``begin(keys)`` gives states, ``move(keys, state, actions)`` state, obs and reward of all."""
    import jax

    length = scan_length(num_envs)

    @jax.jit
    def run(key):
        def body(carry, key):
            state, total = carry
            key, other = jax.random.split(key)
            actions = jax.random.randint(other, (num_envs,), 0, num_actions)
            state, obs, reward = move(jax.random.split(key, num_envs), state, actions)
            return (state, total + reward.sum() + obs.sum()), None

        state = begin(jax.random.split(key, num_envs))
        return jax.lax.scan(body, (state, 0.0), jax.random.split(key, length))[0][1]

    return compiled(run, num_envs)


def jax_rollout(name: str) -> Callable[[int], Play]:
    """Our own rules in JAX, by `functional.rollout`."""

    def make(num_envs: int) -> Play:
        import jax
        import jax.numpy as jnp

        from gym_custom import functional

        env = functional.make(name)

        def act(obs, u):
            return jnp.floor(u * env.action_space.n).astype(jnp.int32)

        length = scan_length(num_envs)
        return compiled(jax.jit(lambda key: functional.rollout(env, act, key, num_envs, length).reward_sum), num_envs)

    return make


def compiled(run: Any, num_envs: int) -> Play:
    """Plays a compiled function of ``scan_length`` steps."""
    import jax

    length = scan_length(num_envs)

    def play(steps: int) -> float:
        rounds = max(1, steps // length)
        for i in range(rounds):
            jax.block_until_ready(run(jax.random.PRNGKey(i)))
        return rounds * length * num_envs

    return play


def scan_length(num_envs: int) -> int:
    """Steps in a call of a compiled loop: enough that neither the call nor the first reset matters."""
    return min(max(2**20 // num_envs, 64), 2**14)


CONTESTANTS = [
    Contestant("CartPole, single", "Gymnasium CartPole-v1", single("CartPole-v1"), most=1),
    Contestant("CartPole, single", "NumpyCartPole-v1", single("NumpyCartPole-v1"), most=1),
    Contestant("grid, single", "Gymnasium FrozenLake-v1", single("FrozenLake-v1"), most=1),
    Contestant("grid, single", "GridWorld-v0", single("GridWorld-v0"), most=1),
    Contestant("robot, single", "MyEnv-v0", single("MyEnv-v0"), most=1),
    Contestant("CartPole, vector", "Gymnasium CartPoleVectorEnv", vector("CartPole-v1")),
    Contestant("CartPole, vector", "NumpyCartPole-v1", vector("NumpyCartPole-v1")),
    Contestant("CartPole, vector", "NumpyCartPole-v1, float32", vector("NumpyCartPole-v1", precision="float32")),
    Contestant(
        "CartPole, vector",
        "NumpyCartPole-v1, SyncVectorEnv",
        vector("NumpyCartPole-v1", vectorization_mode="sync"),
        most=1_024,
    ),
    Contestant("grid, vector", "GridWorld-v0", vector("GridWorld-v0")),
    Contestant("robot, vector", "MyEnv-v0", vector("MyEnv-v0"), most=8_192),
]
PEERS = [
    ("envpool", Contestant("CartPole, vector", "EnvPool CartPole-v1", envpool, most=8_192)),
    ("gymnax", Contestant("CartPole, JAX", "gymnax CartPole-v1", gymnax_cartpole)),
    ("jax", Contestant("CartPole, JAX", "NumpyCartPole-v1, JAX step", jax_step("NumpyCartPole-v1"))),
    ("jax", Contestant("CartPole, JAX", "NumpyCartPole-v1, JAX rollout", jax_rollout("NumpyCartPole-v1"))),
    ("jax", Contestant("robot, vector", "MyEnv-v0, JAX rollout", jax_rollout("MyEnv-v0"), most=8_192)),
]


def installed_peers() -> list[Contestant]:
    """The peers that can be imported; of each other one a line says so."""
    found = []
    for library, contestant in PEERS:
        if importlib.util.find_spec(library) is None:
            print(f"without {contestant.name}: {library} is not installed")
        else:
            found.append(contestant)
    return found
