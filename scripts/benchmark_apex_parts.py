"""Measure what Ape-X adds to its parts: the learner to a bare torch update, an actor to the bare vector env.

Both sides of a ratio take turns, again and again, after a warm-up; medians are shown, and the median of the ratios.
With ``--profile`` the functions in which most time is spent follow.
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import gymnasium as gym
import numpy as np
from extras import extra, run

with extra("agents"):
    import torch

    from agents.apex.actor import Actor, ActorPlan, build_actor
    from agents.apex.config import ApeXConfig
    from agents.apex.envs import resolve, spaces_of
    from agents.apex.inline import InlineChannel
    from agents.apex.learner import Learner
    from agents.apex.mailbox import Mailbox
    from agents.apex.network import make_network, to_arrays
    from agents.replay import PrioritizedMemory
    from agents.types import Transition, Weights
    from gym_custom.programs.arguments import WRONG, Parser, positive, require_id

MEMORY_ROWS = 50_000
UPDATES, STEPS = 200, 500
Run = Callable[[], float]
"""Runs a part for a while; gives units a second."""


def bare_update(env_id: str, config: ApeXConfig) -> Run:
    """Double Q-learning in plain torch on tensors that are there: three forward passes, loss, backward, clip, step."""
    spaces, size = spaces_of(resolve(env_id)), config.batch_size
    online, target = (make_network(*spaces, config.hidden_sizes, config.layer_norm, seed) for seed in (0, 1))
    optimizer = torch.optim.Adam(online.parameters(), lr=config.learning_rate)
    obs, next_obs = torch.randn(2, size, len(online.scale))
    action = torch.randint(int(spaces[1].n), (size, 1))
    reward, discount, weights = torch.rand(size), torch.full((size,), 0.97), torch.rand(size)

    def update() -> None:
        with torch.no_grad():
            value = target(next_obs).gather(1, online(next_obs).argmax(1, keepdim=True)).squeeze(1)
        q = online(obs).gather(1, action).squeeze(1)
        losses = torch.nn.functional.huber_loss(q, reward + discount * value, reduction="none")
        optimizer.zero_grad()
        (weights * losses).mean().backward()
        torch.nn.utils.clip_grad_norm_(online.parameters(), config.max_gradient_norm)
        optimizer.step()

    return lambda: _per_second(update, UPDATES)


def learner(env_id: str, config: ApeXConfig) -> Run:
    """The learner on a filled memory: draw, update, targets, new priorities."""
    spaces, rng = spaces_of(resolve(env_id)), np.random.default_rng(0)
    memory = PrioritizedMemory(*spaces, config.memory_size, seed=0)
    venv = gym.make_vec(env_id, num_envs=MEMORY_ROWS)
    obs = venv.reset(seed=0)[0]
    action, reward = rng.integers(int(spaces[1].n), size=MEMORY_ROWS), rng.random(MEMORY_ROWS)
    memory.append(Transition(obs, action, reward, np.full(MEMORY_ROWS, 0.97), obs), rng.random(MEMORY_ROWS))
    ours = Learner(make_network(*spaces, config.hidden_sizes, config.layer_norm, 0), spaces[0], memory, config)
    return lambda: _per_second(lambda: ours.update(0), UPDATES)


def bare_envs(env_id: str, num_envs: int) -> Run:
    """The vector env alone, with random actions."""
    envs = gym.make_vec(env_id, num_envs=num_envs)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(STEPS)]

    def play() -> None:
        for action in actions:
            envs.step(action)

    return lambda: STEPS * num_envs * _per_second(play, 1)


def actor(env_id: str, config: ApeXConfig) -> Run:
    """An actor on as many rows, with the exploration of an untrained one, up to its finished blocks."""
    source = resolve(env_id)
    network = make_network(*spaces_of(source), config.hidden_sizes, config.layer_norm, 0)
    ours: Actor = build_actor(ActorPlan(source, config, 0, 0, 0), Weights(0, to_arrays(network)))
    channel = InlineChannel(Mailbox())

    def run() -> float:
        start, steps = time.perf_counter(), 0
        while steps < STEPS * config.envs_per_actor:
            steps += ours.collect(channel).steps
        return steps / (time.perf_counter() - start)

    return run


def compare(bare: Run, ours: Run, repeats: int) -> tuple[float, float, float]:
    """Medians of both, and of ours by bare, over repeats in turn."""
    bare(), ours()
    pairs = [(bare(), ours()) for _ in range(repeats)]
    first, second = zip(*pairs, strict=True)
    return statistics.median(first), statistics.median(second), statistics.median(b / a for a, b in pairs)


def _per_second(function: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        function()
    return times / (time.perf_counter() - start)


def _profile(run: Run) -> None:
    with cProfile.Profile() as profile:
        run()
    pstats.Stats(profile).sort_stats("tottime").print_stats(20)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the process's exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument("--env", default="NumpyCartPole-v1", help="an id with a native vector env")
    parser.add_argument("--rows", type=positive, default=32, help="env rows of the actor")
    parser.add_argument("--repeats", type=positive, default=7)
    parser.add_argument("--profile", action="store_true")
    try:
        arguments = parser.parse_args(argv)
        spaces_of(resolve(require_id(arguments.env)))
    except WRONG as error:
        return parser.refuse(error)
    torch.set_num_threads(1)
    preset = ApeXConfig.preset(arguments.env).to_dict() | {"num_actors": 1, "envs_per_actor": arguments.rows}
    config = ApeXConfig.from_dict(preset)
    parts = {
        "updates": (bare_update(arguments.env, config), learner(arguments.env, config)),
        "env steps": (bare_envs(arguments.env, arguments.rows), actor(arguments.env, config)),
    }
    print("| a second | bare | Ape-X | ratio |\n|---|---|---|---|")
    for name, (bare, ours) in parts.items():
        print("| {} | {:.0f} | {:.0f} | {:.2f} |".format(name, *compare(bare, ours, arguments.repeats)))
    if arguments.profile:
        for _, ours in parts.values():
            _profile(ours)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
