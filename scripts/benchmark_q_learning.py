"""Measure how many steps a second tabular Q-learning makes on a 5x5 grid, training included.

Three contestants learn the same task in turn, again and again. The *recipe* is the usual one of JAX tutorials, written
afresh: one key an agent that is split in every step, `random.choice` for ties, and the whole table kept at every step.
*Ours* is `agents.tabular.parallel.train`. The *compiled loop* is Numba over agents and steps, which knows this grid
alone: about as fast as the processor can be. Compilation is outside the clock; shown is the median of the repeats.
"""

from __future__ import annotations

import csv
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmark_envs import machine
from extras import run
from jax_device import on_device

from gym_custom.programs.arguments import Parser, WrongArguments, positive, require_folder

SIZES = [1, 30, 256, 2_048, 16_384]
SIDE, ACTIONS = 5, 4
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
RATE, DISCOUNT, EPSILON, LIMIT = 0.1, 0.9, 0.1, 100
Learn = Callable[[int], None]
"""Trains once from a seed; how many agents and steps is settled."""


class Measurement(NamedTuple):
    """One contestant at one number of agents."""

    name: str
    agents: int
    steps: int  # of each agent
    rates: list[float]  # agent steps a second, one a repeat


# --- the recipe of the tutorials


def recipe(agents: int, steps: int) -> Learn:
    """History kept, keys split in the step; its known faults (ends ignored, one cell too many) are not copied."""
    import jax
    import jax.numpy as jnp
    from jax import lax, random

    moves, goal, home = jnp.array(MOVES), jnp.array([0, 0]), jnp.array([SIDE - 1, SIDE - 1])

    def policy(key: Any, cell: Any, q_values: Any) -> Any:
        key, key_explore, key_action = random.split(key, 3)

        def explore(key: Any) -> Any:
            return random.choice(key, jnp.arange(ACTIONS))

        def exploit(key: Any) -> Any:
            q = q_values[cell[0], cell[1]]
            best = q == q.max()
            return random.choice(key, jnp.arange(ACTIONS), p=best / best.sum())

        return lax.cond(random.uniform(key_explore) < EPSILON, explore, exploit, key_action), key

    def move(cell: Any, action: Any) -> Any:
        last = jnp.clip(cell + moves[action], 0, SIDE - 1)
        done = jnp.all(last == goal)
        return jnp.where(done, home, last), last, done.astype(jnp.float32), done

    def update(q_values: Any, cell: Any, action: Any, reward: Any, done: Any, last: Any) -> Any:
        old = q_values[cell[0], cell[1], action]
        target = reward + jnp.where(done, 0.0, DISCOUNT * q_values[last[0], last[1]].max())
        return q_values.at[cell[0], cell[1], action].set(old + RATE * (target - old))

    def body(i: Any, carry: Any) -> Any:
        cells, keys, all_cells, all_rewards, all_done, all_q = carry
        q_values = all_q[i]
        actions, keys = jax.vmap(policy)(keys, cells, q_values)
        after, last, rewards, done = jax.vmap(move)(cells, actions)
        q_values = jax.vmap(update)(q_values, cells, actions, rewards, done, last)
        all_cells, all_rewards = all_cells.at[i].set(after), all_rewards.at[i].set(rewards)
        return after, keys, all_cells, all_rewards, all_done.at[i].set(done), all_q.at[i + 1].set(q_values)

    @jax.jit
    def run(key: Any) -> Any:
        cells, keys = jnp.tile(home, (agents, 1)), random.split(key, agents)
        kept = jnp.zeros((steps, agents, 2), jnp.int32), jnp.zeros((steps, agents)), jnp.zeros((steps, agents), bool)
        tables = jnp.zeros((steps + 1, agents, SIDE, SIDE, ACTIONS))
        return lax.fori_loop(0, steps, body, (cells, keys, *kept, tables))[2:]

    return lambda seed: jax.block_until_ready(run(random.key(seed)))


# --- ours


def ours(agents: int, steps: int) -> Learn:
    """The package's own loop."""
    import jax

    from agents.tabular import parallel
    from gym_custom import functional

    env = functional.make("GridWorld-v0", size=SIDE, max_episode_steps=LIMIT)
    return lambda seed: jax.block_until_ready(
        parallel.train(env, jax.random.key(seed), agents, steps, RATE, DISCOUNT, EPSILON)
    )


def ours_memory(agents: int, steps: int) -> int:
    """Bytes that the compiled training needs beside its results."""
    import jax

    from agents.tabular import parallel
    from gym_custom import functional

    env = functional.make("GridWorld-v0", size=SIDE, max_episode_steps=LIMIT)
    run = jax.jit(lambda key: parallel.train(env, key, agents, steps, RATE, DISCOUNT, EPSILON))
    return run.lower(jax.random.key(0)).compile().memory_analysis().temp_size_in_bytes


# --- a compiled loop


def compiled_loop(agents: int, steps: int) -> Learn:
    """Numba over agents (on all processors) and steps; a 64-bit xorshift generator for each agent."""
    import numba

    @numba.njit(inline="always")
    def draw(state: Any) -> Any:
        state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        state ^= state >> np.uint64(7)
        state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        return state

    @numba.njit(parallel=True, fastmath=True)
    def learn(tables: Any, seeds: Any, next_cell: Any, steps: int) -> None:
        for agent in numba.prange(len(tables)):
            table, state, cell, taken = tables[agent], seeds[agent], SIDE * SIDE - 1, 0
            for _ in range(steps):
                state = draw(state)
                u = (state >> np.uint64(40)) * np.float32(2.0**-24)
                action = 0
                if u < EPSILON:
                    action = int(u / EPSILON * ACTIONS)
                else:
                    best, ties = table[cell, 0], 1
                    for other in range(1, ACTIONS):
                        if table[cell, other] > best:
                            best, ties, action = table[cell, other], 1, other
                        elif table[cell, other] == best:
                            ties += 1
                    if ties > 1:
                        left = int((u - EPSILON) / (1.0 - EPSILON) * ties)
                        for other in range(ACTIONS):
                            if table[cell, other] == best:
                                if left == 0:
                                    action = other
                                    break
                                left -= 1
                after = next_cell[cell * ACTIONS + action]
                done = after == 0
                bootstrap = 0.0 if done else table[after].max()
                target = (1.0 if done else 0.0) + DISCOUNT * bootstrap
                table[cell, action] += RATE * (target - table[cell, action])
                taken += 1
                cell = after
                if done or taken == LIMIT:
                    cell, taken = SIDE * SIDE - 1, 0

    rows, cols = np.divmod(np.arange(SIDE * SIDE), SIDE)
    moved = [np.clip(rows + r, 0, SIDE - 1) * SIDE + np.clip(cols + c, 0, SIDE - 1) for r, c in MOVES]
    next_cell = np.stack(moved, 1).ravel()

    def run(seed: int) -> None:
        seeds = np.random.default_rng(seed).integers(1, 2**63, agents).astype(np.uint64)
        learn(np.zeros((agents, SIDE * SIDE, ACTIONS), np.float32), seeds, next_cell, steps)

    return run


# --- measuring


def measure(sizes: list[int], repeats: int, steps: int) -> list[Measurement]:
    """All contestants in turn, at each number of agents; ``steps`` are those of all agents together."""
    found = []
    for agents in sizes:
        counts = {
            "recipe": min(steps // 20, 600_000) // agents,
            "ours": steps // agents,
            "compiled loop": steps // agents,
        }
        makers: dict[str, Callable[[int, int], Learn]] = {
            "recipe": recipe,
            "ours": ours,
            "compiled loop": compiled_loop,
        }
        if importlib.util.find_spec("numba") is None:
            del makers["compiled loop"]
        if agents > 256:
            del makers["recipe"]  # its history would fill the memory
        learners = {name: make(agents, max(1, counts[name])) for name, make in makers.items()}
        for learn in learners.values():
            learn(0)  # compiles
        seconds: dict[str, list[float]] = {name: [] for name in learners}
        for repeat in range(repeats):
            for name, learn in learners.items():
                begin = time.perf_counter()
                learn(repeat)
                seconds[name].append(time.perf_counter() - begin)
        for name, taken in seconds.items():
            each = max(1, counts[name])
            found.append(Measurement(name, agents, each, [agents * each / s for s in taken]))
            print(line(found[-1], found), flush=True)
    return found


def line(one: Measurement, found: list[Measurement]) -> str:
    """One line of the table, with the ratio to the recipe at the same number of agents."""
    speed = statistics.median(one.rates)
    base = [statistics.median(m.rates) for m in found if m.agents == one.agents and m.name == "recipe"]
    ratio = f"{speed / base[0]:8.1f}x" if base else " " * 9
    spread = (max(one.rates) - min(one.rates)) / speed
    return f"{one.name:14} {one.agents:7,d} {one.steps:11,d} {speed:15,.0f} {spread:7.0%} {ratio}"


def summary(found: list[Measurement]) -> list[str]:
    """The sentences that people want to read."""
    best = {
        name: max((statistics.median(m.rates), m.agents) for m in found if m.name == name)
        for name in dict.fromkeys(m.name for m in found)
    }
    lines = [
        f"best of {name}: {speed / 1e6:.1f} M steps/s at {agents:,} agents" for name, (speed, agents) in best.items()
    ]
    if "compiled loop" in best:
        lines.append(f"ours / compiled loop, each at its best: {best['ours'][0] / best['compiled loop'][0]:.2f}")
    return lines


def parser() -> Parser:
    """The command line."""
    parse = Parser(prog="benchmark_q_learning.py", description=__doc__)
    add = parse.add_argument
    add("--num-agents", nargs="+", type=positive, default=SIZES, metavar="N", help="numbers of agents")
    add("--repeats", type=positive, default=5, metavar="N", help="repeats of every measurement (default: 5)")
    add("--steps", type=positive, default=8_000_000, metavar="N", help="steps of one repeat, all agents (default: 8e6)")
    add("--device", choices=["cpu", "gpu"], help="where JAX runs (default: its own choice)")
    add("--output", type=Path, default=Path("results/benchmark_q_learning"), metavar="FOLDER", help="for the CSV")
    return parse


def main(argv: list[str] | None = None) -> int:
    """Measures, prints and writes; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    parse = parser()
    try:
        arguments = parse.parse_args(argv)
        require_folder(arguments.output)
        jax = on_device(arguments.device)
        print(f"{machine()}; JAX on {jax.devices()[0] if arguments.device is None else arguments.device}")
        print(f"{'':14} {'agents':>7} {'steps each':>11} {'steps/s':>15} {'spread':>7} {'to recipe':>9}")
        found = measure(arguments.num_agents, arguments.repeats, arguments.steps)
        print("\n".join(summary(found)))
        memory = [ours_memory(1_000, steps) for steps in (1_000, 1_000_000)]
        print(f"working memory of 1,000 agents: {memory[0]:,} bytes for 1,000 steps, {memory[1]:,} for 1,000,000")
        write_csv(arguments.output, found)
    except (WrongArguments, OSError) as error:
        return parse.refuse(error)
    except KeyboardInterrupt:
        return 130
    return 0


def write_csv(folder: Path, found: list[Measurement]) -> None:
    """One line a repeat."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "benchmark_q_learning.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "agents", "steps_each", "repeat", "steps_per_second"])
        for one in found:
            writer.writerows([one.name, one.agents, one.steps, i, f"{rate:.0f}"] for i, rate in enumerate(one.rates))
    print(f"Wrote {path}")


if __name__ == "__main__":
    sys.exit(run(main))
