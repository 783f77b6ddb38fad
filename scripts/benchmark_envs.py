"""Measure how many transitions a second the environments make, beside their peers.

Actions are random and drawn before the clock starts; resets are inside the clock, warm-up is not. Only real transitions
count: the rows that a vector environment spends on beginning anew do not. At each number of environments all
contestants run in turn, again and again; the table shows the median, the spread of the repeats, and the median of the
ratios to the first contestant of the same group within one repeat.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from comparison.provenance import processor
from extras import run
from jax_device import on_device

import gym_custom
from gym_custom.programs.arguments import Parser, WrongArguments, positive

assert gym_custom.World  # the import registers the ids

SIZES = [1, 16, 128, 1_024, 8_192, 65_536]
Play = Callable[[int], float]
"""Makes so many steps and returns how many transitions that were."""

EXAMPLES = """examples:
  python scripts/benchmark_envs.py
  python scripts/benchmark_envs.py --num-envs 1 1024 65536 --repeats 7
  python scripts/benchmark_envs.py --peers --output results/speed
"""


class Contestant(NamedTuple):
    """Something to be measured."""

    group: str  # ratios are to the first of the same group
    name: str
    make: Callable[[int], Play]  # from the number of environments
    most: int = 65_536  # environments that are worth the wait


class Measurement(NamedTuple):
    """What one contestant did at one number of environments; rates are transitions a second, one a repeat."""

    group: str
    name: str
    num_envs: int
    rates: list[float]
    ratios: list[float]


# --- contestants


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

    @jax.jit
    def run(key):
        _, state = reset(jax.random.split(key, num_envs), params)

        def body(carry, key):
            state, total = carry
            key, other = jax.random.split(key)
            actions = jax.random.randint(other, (num_envs,), 0, 2)
            obs, state, reward, *_ = step(jax.random.split(key, num_envs), state, actions, params)
            return (state, total + reward.sum() + obs.sum()), None

        return jax.lax.scan(body, (state, 0.0), jax.random.split(key, 256))[0][1]

    return compiled(run, num_envs)


def own_jax(name: str) -> Callable[[int], Play]:
    """Our own rules in JAX, by `functional.rollout`."""

    def make(num_envs: int) -> Play:
        import jax
        import jax.numpy as jnp

        from gym_custom import functional

        env = functional.make(name)

        def act(obs, u):
            return jnp.floor(u * env.action_space.n).astype(jnp.int32)

        return compiled(jax.jit(lambda key: functional.rollout(env, act, key, num_envs, 256).reward_sum), num_envs)

    return make


def compiled(run: Any, num_envs: int) -> Play:
    """Plays a compiled function of 256 steps."""
    import jax

    def play(steps: int) -> float:
        rounds = max(1, steps // 256)
        for i in range(rounds):
            jax.block_until_ready(run(jax.random.PRNGKey(i)))
        return rounds * 256 * num_envs

    return play


CONTESTANTS = [
    Contestant("CartPole, single", "Gymnasium CartPole-v1", single("CartPole-v1"), most=1),
    Contestant("CartPole, single", "NumpyCartPole-v1", single("NumpyCartPole-v1"), most=1),
    Contestant("grid, single", "Gymnasium FrozenLake-v1", single("FrozenLake-v1"), most=1),
    Contestant("grid, single", "GridWorld-v0", single("GridWorld-v0"), most=1),
    Contestant("robot, single", "MyEnv-v0", single("MyEnv-v0"), most=1),
    Contestant("vector", "Gymnasium CartPoleVectorEnv", vector("CartPole-v1")),
    Contestant("vector", "NumpyCartPole-v1", vector("NumpyCartPole-v1")),
    Contestant("vector", "NumpyCartPole-v1, float32", vector("NumpyCartPole-v1", precision="float32")),
    Contestant(
        "vector", "NumpyCartPole-v1, SyncVectorEnv", vector("NumpyCartPole-v1", vectorization_mode="sync"), most=1_024
    ),
    Contestant("vector", "GridWorld-v0", vector("GridWorld-v0")),
    Contestant("vector", "MyEnv-v0", vector("MyEnv-v0"), most=8_192),
]
PEERS = [
    ("envpool", Contestant("vector", "EnvPool CartPole-v1", envpool, most=8_192)),
    ("gymnax", Contestant("vector", "gymnax CartPole-v1 (JAX)", gymnax_cartpole)),
    ("jax", Contestant("vector", "NumpyCartPole-v1 (JAX)", own_jax("NumpyCartPole-v1"))),
    ("jax", Contestant("vector", "MyEnv-v0 (JAX)", own_jax("MyEnv-v0"), most=8_192)),
]


# --- measuring


def measure(contestants: list[Contestant], num_envs: int, repeats: int, seconds: float) -> list[Measurement]:
    """All contestants of this size in turn, ``repeats`` times about so many seconds each."""
    taking_part = [c for c in contestants if num_envs <= c.most]
    plays = [c.make(num_envs) for c in taking_part]
    steps = [enough_steps(play, seconds) for play in plays]
    rates = [[rate(play, count) for play, count in zip(plays, steps, strict=True)] for _ in range(repeats)]
    columns = list(zip(*rates, strict=True))
    first = {c.group: i for i, c in reversed(list(enumerate(taking_part)))}
    return [
        Measurement(c.group, c.name, num_envs, list(columns[i]), [r[i] / r[first[c.group]] for r in rates])
        for i, c in enumerate(taking_part)
    ]


def enough_steps(play: Play, seconds: float) -> int:
    """Steps that take about so long; finding out is the warm-up."""
    steps = 1
    play(steps)  # what is compiled is compiled now
    while True:
        begin = time.perf_counter()
        play(steps)
        taken = time.perf_counter() - begin
        if taken >= seconds / 4:
            return max(1, round(steps * seconds / taken))
        steps *= 2


def rate(play: Play, steps: int) -> float:
    """Transitions a second."""
    begin = time.perf_counter()
    transitions = play(steps)
    return transitions / (time.perf_counter() - begin)


# --- showing


def machine() -> str:
    """Processor and versions, in one line."""
    names = ("gymnasium", "numpy", "envpool", "gymnax", "jax")
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{processor()}; Python {platform.python_version()}, {', '.join(versions)}"


def row(found: Measurement) -> str:
    """One line of the table."""
    spread = (max(found.rates) - min(found.rates)) / statistics.median(found.rates)
    return (
        f"{found.group:17} {found.name:33} {found.num_envs:7,d} {statistics.median(found.rates):14,.0f} "
        f"{spread:7.0%} {statistics.median(found.ratios):8.2f}x"
    )


def write_csv(path: Path, measurements: list[Measurement]) -> None:
    """One line a repeat."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "name", "num_envs", "repeat", "transitions_per_second", "ratio_to_first"])
        for found in measurements:
            for i, (speed, ratio) in enumerate(zip(found.rates, found.ratios, strict=True)):
                writer.writerow([found.group, found.name, found.num_envs, i, f"{speed:.1f}", f"{ratio:.4f}"])


def draw_plot(path: Path, measurements: list[Measurement]) -> None:
    """Transitions a second against the number of environments, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for name in dict.fromkeys(found.name for found in measurements if found.group == "vector"):
        points = [found for found in measurements if found.name == name and found.group == "vector"]
        sizes, medians = [p.num_envs for p in points], [statistics.median(p.rates) for p in points]
        ours = name.startswith(("Numpy", "Grid", "MyEnv"))
        (line,) = axes.loglog(sizes, medians, marker="o" if ours else "s", ls="-" if ours else "--", label=name)
        axes.fill_between(
            sizes, [min(p.rates) for p in points], [max(p.rates) for p in points], color=line.get_color(), alpha=0.15
        )
    axes.set(xlabel="number of environments", ylabel="transitions a second", title="Vector environments, random play")
    axes.grid(which="major", alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def parser() -> Parser:
    """The command line."""
    parse = Parser(prog="benchmark_envs.py", description=__doc__, epilog=EXAMPLES)
    add = parse.add_argument
    add("--num-envs", nargs="+", type=positive, default=SIZES, metavar="N", help="numbers of environments")
    add("--repeats", type=positive, default=5, metavar="N", help="repeats of every measurement (default: 5)")
    add("--seconds", type=float, default=0.3, metavar="S", help="length of one repeat, about (default: 0.3)")
    add("--peers", action="store_true", help="EnvPool, gymnax and our JAX environment too, where installed")
    add("--device", choices=["cpu", "gpu"], help="where JAX runs (default: its own choice)")
    add("--output", type=Path, default=Path("results/benchmark_envs"), metavar="FOLDER", help="for CSV and plot")
    return parse


def installed_peers() -> list[Contestant]:
    """The peers that can be imported; of each other one a line says so."""
    found = []
    for library, contestant in PEERS:
        if importlib.util.find_spec(library) is None:
            print(f"without {contestant.name}: {library} is not installed")
        else:
            found.append(contestant)
    return found


def main(argv: list[str] | None = None) -> int:
    """Measures, prints and writes; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    parse = parser()
    try:
        arguments = parse.parse_args(argv)
        if not arguments.seconds > 0:
            raise WrongArguments(f"--seconds must be positive, not {arguments.seconds}")
        if arguments.device is not None:
            on_device(arguments.device)
        arguments.output.mkdir(parents=True, exist_ok=True)
    except (WrongArguments, OSError) as error:
        return parse.refuse(error)
    contestants = CONTESTANTS + (installed_peers() if arguments.peers else [])
    print(machine())
    print(f"{'group':17} {'contestant':33} {'envs':>7} {'transitions/s':>14} {'spread':>7} {'ratio':>9}")
    measurements: list[Measurement] = []
    try:
        for num_envs in sorted(set(arguments.num_envs)):
            for found in measure(contestants, num_envs, arguments.repeats, arguments.seconds):
                print(row(found), flush=True)
                measurements.append(found)
    except KeyboardInterrupt:
        print("benchmark_envs.py: stopped; what there is was written")
        return 130
    finally:
        write_csv(arguments.output / "benchmark_envs.csv", measurements)
    try:
        draw_plot(arguments.output / "benchmark_envs.png", measurements)
    except ImportError:
        print("no plot: matplotlib is not installed")
    print(f"written to {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
