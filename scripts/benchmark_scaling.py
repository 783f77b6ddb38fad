"""Measure how many actors can feed one Ape-X learner: ``python scripts/benchmark_scaling.py --env NumpyCartPole-v1``.

Three times of one thread each: of an actor for a row, of the learner to take a row in (from the pipe into the memory),
and of one update. The learner takes in and trains by turns, so that with r trained rows per collected row and batches
of b it has room for 1 / (take + r / b * update) rows a second, whatever the number of actors; docs/scaling.md goes on
from there. With ``--run`` whole trainings with actors in processes follow, on as many cores as there are.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from extras import extra, run

with extra("agents"):
    import torch

    from agents.apex import ApeX, ApeXConfig
    from agents.apex.actor import Actor, ActorPlan, build_actor
    from agents.apex.config import CLUSTERS
    from agents.apex.envs import resolve, spaces_of
    from agents.apex.inline import InlineChannel
    from agents.apex.mailbox import Mailbox, SharedMailbox
    from agents.types import Weights
    from gym_custom.programs.arguments import WRONG, Parser, positive, require_id

BLOCKS, UPDATES = 60, 100


def settings(env_id: str, **changes: object) -> ApeXConfig:
    """The id's preset, with changes."""
    return ApeXConfig.from_dict(ApeXConfig.preset(env_id).to_dict() | changes)


def make_actor(env_id: str, config: ApeXConfig, weights: Weights) -> Actor:
    """One actor in this process, whose weights count as trained."""
    return build_actor(ActorPlan(resolve(env_id), config, 0, 0, 0), weights._replace(version=1))


def seconds_of(function: Callable[[], object], times: int, repeats: int) -> float:
    """Median seconds of one call."""
    function()
    measured = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(times):
            function()
        measured.append((time.perf_counter() - start) / times)
    return statistics.median(measured)


def parts(env_id: str, config: ApeXConfig, repeats: int) -> dict[str, float]:
    """Seconds: of an actor a row, of taking in a row, of an update, of publishing weights."""
    agent = ApeX(env_id, config)
    actor, channel = make_actor(env_id, config, agent.learner.weights()), InlineChannel(Mailbox())
    rows = config.block_steps * config.envs_per_actor
    block = actor.collect(channel)
    one, other = multiprocessing.Pipe()

    def take() -> None:
        one.send(block)
        agent.learner.store(other.recv())

    figures = {"act": seconds_of(lambda: actor.collect(channel), BLOCKS // 4, repeats) / rows}
    figures["take"] = seconds_of(take, BLOCKS, repeats) / rows
    while len(agent.memory) < config.warmup_steps:
        take()
    figures["update"] = seconds_of(lambda: agent.learner.update(0), UPDATES, repeats)
    mailbox = SharedMailbox(agent.learner.weights())
    figures["publish"] = seconds_of(lambda: mailbox.publish(agent.learner.weights()), UPDATES, repeats)
    return figures


def model(figures: dict[str, float], config: ApeXConfig) -> dict[str, float]:
    """Rows a second that an actor gives and the learner has room for, and the actors that fill it."""
    updates_per_row = config.samples_per_insert / config.batch_size
    block = config.block_steps * config.envs_per_actor
    learner = figures["take"] + updates_per_row * figures["update"] + figures["publish"] / block
    room, given = 1 / learner, 1 / figures["act"]
    return {"rows_an_actor": given, "rows_the_learner": room, "actors": room / given}


def whole_run(env_id: str, cluster: str, actors: int, steps: int, ratio: float) -> float:
    """Env steps a second of a training, its start left out."""
    with tempfile.TemporaryDirectory() as folder:
        changes = {"evaluation_interval": 10**9, "checkpoint_interval": 10**9, "run_folder": f"{folder}/run"}
        config = settings(env_id, cluster=cluster, num_actors=actors, samples_per_insert=ratio, **changes)
        agent = ApeX(env_id, config)
        began: list[float] = []
        receive = agent.cluster.receive

        def watched(timeout: float) -> object:
            block = receive(timeout)
            if block is not None and not began and agent.num_timesteps >= config.warmup_steps:
                began.extend((time.perf_counter(), agent.num_timesteps))
            if agent.num_timesteps >= config.warmup_steps + steps and len(began) == 2:
                began.extend((time.perf_counter(), agent.num_timesteps))
            return block

        agent.cluster.receive = watched  # type: ignore[method-assign]
        agent.learn(config.warmup_steps + steps + 2 * config.block_steps * config.envs_per_actor * actors)
    return (began[3] - began[1]) / (began[2] - began[0])


def place(text: str) -> tuple[str, int]:
    """CLUSTER:ACTORS: where a training takes place, and with how many actors."""
    cluster, _, actors = text.partition(":")
    if cluster not in CLUSTERS:
        raise argparse.ArgumentTypeError(f"must be CLUSTER:ACTORS with {', '.join(CLUSTERS)}, not {text!r}")
    return cluster, positive(actors)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the process's exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument("--env", default="NumpyCartPole-v1")
    parser.add_argument("--repeats", type=positive, default=5)
    parser.add_argument(
        "--run", nargs="*", default=[], type=place, metavar="CLUSTER:ACTORS", help="such as local:1 local:2 ray:2"
    )
    parser.add_argument("--steps", type=positive, default=20_000, help="env steps of each run")
    parser.add_argument("--ratio", type=float, help="samples_per_insert (default: the preset's)")
    try:
        arguments = parser.parse_args(argv)
        config = settings(arguments.env)
        ratio = config.samples_per_insert if arguments.ratio is None else arguments.ratio
        config = settings(arguments.env, samples_per_insert=ratio)
        spaces_of(resolve(require_id(arguments.env)))
    except WRONG as error:
        return parser.refuse(error)
    torch.set_num_threads(1)
    figures = parts(arguments.env, config, arguments.repeats)
    print(", ".join(f"{name} {1e6 * value:.2f} us" for name, value in figures.items()))
    print(", ".join(f"{name} {value:.1f}" for name, value in model(figures, config).items()))
    for cluster, actors in arguments.run:
        rate = whole_run(arguments.env, cluster, actors, arguments.steps, ratio)
        print(f"{cluster}:{actors} {rate:.0f} rows a second")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
