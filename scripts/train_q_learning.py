"""Train tabular Q-learning in one of three ways, and draw what was learnt.

`python` plays one environment in a readable loop of NumPy; `scan` runs one agent in one compiled loop of JAX;
`parallel` runs many agents at once in the same loop. Each prints its steps and steps a second; the pictures show the
largest value in each cell with the greedy moves, and the learning curve with the spread over the agents.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from extras import extra, run
from jax_device import on_device

import gym_custom
from agents.tabular import QLearning
from gym_custom.programs.arguments import (
    WRONG,
    Parser,
    WrongArguments,
    find_own_modules,
    natural,
    pair,
    positive,
    require_folder,
    require_id,
)

assert gym_custom.World  # the import registers the ids

EXAMPLES = """examples:
  python scripts/train_q_learning.py --mode python --num-episodes 1000
  python scripts/train_q_learning.py --mode scan --num-steps 1000000
  python scripts/train_q_learning.py --mode parallel --num-agents 30
  python scripts/train_q_learning.py --env-kwargs layout:maze slip:0.1 --learning-rate visits
"""


class Trained(NamedTuple):
    """What came of a training, whichever loop it was."""

    q_values: np.ndarray  # (*sizes, A), mean over the agents
    steps: np.ndarray  # (points,), steps of each agent
    rewards: np.ndarray  # (points, agents), return of the episodes that ended around each point, by steps


def learning_rate(text: str) -> float | str:
    """A number or "visits"."""
    try:
        return text if text == "visits" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'must be a number in [0, 1] or "visits", not {text!r}') from None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parse = Parser(prog="train_q_learning.py", description=__doc__, epilog=EXAMPLES)
    add = parse.add_argument
    add("--mode", choices=["python", "scan", "parallel"], default="parallel", help="(default: parallel)")
    add("--env", default="GridWorld-v0", metavar="ID", help="with finite spaces (default: GridWorld-v0)")
    add("--env-kwargs", nargs="+", default=[], type=pair, metavar="NAME:VALUE", help="arguments of the environment")
    add("--num-agents", type=positive, metavar="N", help="agents of the parallel mode (default: 30)")
    add("--num-steps", type=positive, metavar="N", help="steps of each agent (default: 100000)")
    add("--num-episodes", type=positive, metavar="N", help="of the python mode, in place of --num-steps")
    add("--learning-rate", type=learning_rate, default=0.1, metavar="X", help='in [0, 1], or "visits" (default: 0.1)')
    add("--discount", type=float, default=0.9, metavar="X", help="in [0, 1] (default: 0.9)")
    add("--epsilon", type=float, default=0.1, metavar="X", help="share of random actions (default: 0.1)")
    add("--seed", type=natural, default=0, metavar="N", help="(default: 0)")
    add("--device", choices=["cpu", "gpu"], help="where JAX runs (default: its own choice)")
    add(
        "--output",
        type=Path,
        default=Path("results/q_learning"),
        metavar="FOLDER",
        help="for pictures and values, beside older ones",
    )
    return parse


def main(argv: list[str] | None = None) -> int:
    """Trains, prints and draws; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    find_own_modules()
    parse = parser()
    try:
        arguments = parse.parse_args(argv)
        require_id(arguments.env)
        if arguments.mode != "python" and arguments.num_episodes:
            raise WrongArguments("--num-episodes is for --mode python; the compiled loops count --num-steps")
        if arguments.mode != "parallel" and (arguments.num_agents or 1) > 1:
            raise WrongArguments("--num-agents is for --mode parallel; the other modes train one agent")
        prepare_pictures()
        require_folder(arguments.output)
        trained = train_in_python(arguments) if arguments.mode == "python" else train_in_jax(arguments)
        write(arguments, trained)
    except WRONG as error:
        return parse.refuse(error)
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return 130
    return 0


def train_in_python(arguments: argparse.Namespace) -> Trained:
    """One agent, one readable loop."""
    env = gym.make(arguments.env, **dict(arguments.env_kwargs))
    agent = QLearning(env, arguments.learning_rate, arguments.discount, arguments.epsilon, arguments.seed)
    steps = None if arguments.num_episodes else arguments.num_steps or 100_000
    begin = time.perf_counter()
    agent.learn(steps, arguments.num_episodes, progress_bar=True)
    report(1, agent.num_timesteps, time.perf_counter() - begin)
    edges = np.linspace(0, agent.num_timesteps, 101)
    sums, _ = np.histogram(np.cumsum(agent.episode_lengths), edges, weights=agent.episode_returns)
    return Trained(agent.q_values, edges[1:], (sums / np.diff(edges))[:, None])


def train_in_jax(arguments: argparse.Namespace) -> Trained:
    """One agent or many, one compiled loop."""
    jax = on_device(arguments.device)
    with extra("agents"):
        from tqdm import tqdm

    from agents.tabular import parallel
    from gym_custom import functional

    agents = 1 if arguments.mode == "scan" else arguments.num_agents or 30
    steps = arguments.num_steps or 100_000
    env = functional.make(arguments.env, **dict(arguments.env_kwargs))
    bars: list[Any] = []
    watched = parallel.Watched(lambda n: bars[0].update(n))

    def training(key: Any) -> parallel.QResult:
        settings = arguments.learning_rate, arguments.discount, arguments.epsilon
        return parallel.train(env, key, agents, steps, *settings, progress_bar=watched)

    begin = time.perf_counter()
    key = jax.random.key(arguments.seed)
    compiled = jax.jit(training).lower(key).compile()
    print(f"Compiled in {time.perf_counter() - begin:.1f} s")
    with tqdm(total=agents * steps, unit="step", unit_scale=True) as bar:
        bars.append(bar)
        begin = time.perf_counter()
        result = watched.run(lambda: compiled(key))
        seconds = time.perf_counter() - begin
    report(agents, steps, seconds)
    ends = np.asarray(result.curve.steps)
    rewards = np.asarray(result.curve.returns) / np.diff(ends, prepend=0)[:, None]
    return Trained(np.asarray(result.q_values).mean(0), ends, rewards)


def report(agents: int, steps: int, seconds: float) -> None:
    """How many steps it were, and how fast."""
    each = f"{steps:,}" if agents == 1 else f"{steps:,} * {agents} = {steps * agents:,}"
    print(f"Total number of steps: {each}")
    print(f"Number of steps per second: {steps * agents / seconds:,.0f}")


# --- pictures


def prepare_pictures() -> None:
    """Loads what draws, before anything is trained for nothing."""
    with extra("report"):
        import matplotlib
    matplotlib.use("Agg")


def write(arguments: argparse.Namespace, trained: Trained) -> None:
    """The values as an array and both pictures."""
    from matplotlib import pyplot as plt

    arguments.output.mkdir(parents=True, exist_ok=True)
    picture, values = new_files(arguments.output, arguments.mode)
    np.save(values, trained.q_values)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    draw_values(axes[0], arguments, trained.q_values)
    draw_curve(axes[1], trained)
    figure.savefig(picture, dpi=150)
    plt.close(figure)
    print(f"Wrote {picture} and {values}")


def new_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Where the picture and the values go: beside what earlier runs have left there."""
    stems = chain([name], (f"{name}-{k}" for k in count(2)))
    pairs = ((folder / f"{stem}.png", folder / f"{stem}.npy") for stem in stems)
    return next(pair for pair in pairs if not any(path.exists() for path in pair))


def draw_values(axes: Any, arguments: argparse.Namespace, q_values: np.ndarray) -> None:
    """The largest value of each cell with the greedy moves; a plain image of the table where there is no map."""
    axes.set_title("largest value in each cell, greedy moves")
    axes.set_axis_off()
    env = gym.make(arguments.env, render_mode="rgb_array", **dict(arguments.env_kwargs))
    if not hasattr(env.unwrapped, "draw_values"):
        axes.set_title("largest value in each state")
        best = q_values.max(-1)
        axes.imshow(best if best.ndim == 2 else best.reshape(1, -1), aspect="auto")
        return
    env.reset(seed=0)
    axes.imshow(env.unwrapped.draw_values(q_values))
    env.close()


def draw_curve(axes: Any, trained: Trained) -> None:
    """Reward per step, which grows as episodes earn more or get shorter, with the middle 80 % of the agents."""
    axes.plot(trained.steps, trained.rewards.mean(1), label="mean over the agents")
    if trained.rewards.shape[1] > 1:
        low, high = np.quantile(trained.rewards, (0.1, 0.9), axis=1)
        axes.fill_between(trained.steps, low, high, alpha=0.25, label="10th to 90th percentile of the agents")
        axes.legend(loc="lower right")
    axes.set(xlabel="steps of each agent", ylabel="reward per step", title="learning curve")
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    sys.exit(run(main))
