"""Measure how fast replay memories are, beside their peers.

A round is: draw a batch with importance weights, gather its rows, give them new priorities. The memories are full and
overwrite their oldest rows; "append" gives priorities, "default" leaves them to the memory: the largest there is. All
contestants run in turn, again and again, after a warm-up; the table shows medians in microseconds and the median of the
ratios within one repeat, of the processor's time. cpprb and stable-baselines3 take part where they are installed.
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

import numpy as np
from extras import run as run_script
from gymnasium.spaces import Box, Discrete

from agents.replay import PrioritizedMemory
from agents.types import Transition
from gym_custom.programs.arguments import Parser, WrongArguments, positive, require_folder

OBS, ACTION = Box(-np.inf, np.inf, (4,), np.float32), Discrete(2)
Run = Callable[[], object]
FIELDS = ["what", "capacity", "batch", "contestant", "microseconds", "ours is faster by"]


def rows(rng: np.random.Generator, count: int) -> Transition:
    """Random rows with observations of four float32 numbers."""
    obs = rng.normal(size=(count + 1, 4)).astype(np.float32)
    return Transition(obs[:-1], rng.integers(0, 2, count), np.ones(count), np.full(count, 0.99), obs[1:])


class Ours:
    """PrioritizedMemory."""

    def __init__(self, capacity: int):
        self.memory = PrioritizedMemory(OBS, ACTION, capacity, seed=0)

    def append(self, part: Transition, priorities: np.ndarray | None) -> None:
        """Store rows."""
        self.memory.append(part, priorities)

    def round(self, priorities: np.ndarray) -> None:
        """Draw, gather, give new priorities."""
        self.memory.update_priorities(self.memory.sample(len(priorities)).ids, priorities)


class Cpprb:
    """The prioritized buffer of cpprb, in C++."""

    def __init__(self, capacity: int):
        from cpprb import PrioritizedReplayBuffer

        vector = {"shape": 4}
        fields = {"obs": vector, "act": {"dtype": np.int64}, "rew": {}, "next_obs": vector, "done": {}}
        self.buffer = PrioritizedReplayBuffer(capacity, fields, alpha=0.6)

    def append(self, part: Transition, priorities: np.ndarray | None) -> None:
        """Store rows."""
        obs, action, reward, discount, next_obs = part
        self.buffer.add(obs=obs, act=action, rew=reward, next_obs=next_obs, done=discount, priorities=priorities)

    def round(self, priorities: np.ndarray) -> None:
        """Draw, gather, give new priorities."""
        batch = self.buffer.sample(len(priorities), beta=0.4)
        self.buffer.update_priorities(batch["indexes"], priorities)


class Sb3Uniform:
    """The uniform buffer of stable-baselines3: drawing and gathering alone, since it has no priorities."""

    def __init__(self, capacity: int):
        from stable_baselines3.common.buffers import ReplayBuffer

        self.buffer = ReplayBuffer(capacity, OBS, ACTION, device="cpu")
        self.buffer.full = True

    def append(self, part: Transition, priorities: np.ndarray | None) -> None:
        """Nothing: its rows come one step at a time, and zeros are gathered as fast."""

    def round(self, priorities: np.ndarray) -> None:
        """Draw and gather."""
        self.buffer.sample(len(priorities))


CONTESTANTS = {"ours": (Ours, "numpy"), "cpprb": (Cpprb, "cpprb"), "SB3 uniform": (Sb3Uniform, "stable_baselines3")}


def timed(run: Run, calls: int) -> float:
    """Microseconds a call, of the processor: other programs on the machine take none of it."""
    start = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - start) / calls * 1e6


def compete(runs: dict[str, Run], repeats: int, calls: int) -> dict[str, tuple[float, float]]:
    """Median microseconds of each contestant, and the median of its ratios to the first one."""
    for run in runs.values():
        timed(run, max(2, calls // 4))
    times = [{name: timed(run, calls) for name, run in runs.items()} for _ in range(repeats)]
    first = next(iter(runs))
    return {
        name: (statistics.median(t[name] for t in times), statistics.median(t[name] / t[first] for t in times))
        for name in runs
    }


def measure(capacity: int, batches: list[int], repeats: int) -> list[dict]:
    """All figures of one capacity."""
    rng = np.random.default_rng(0)
    field = {name: make for name, (make, package) in CONTESTANTS.items() if importlib.util.find_spec(package)}
    entered = {name: make(capacity) for name, make in field.items()}
    size = min(4000, capacity)
    for _ in range(-(-capacity // size) + 1):  # more than fits: from here on old rows are overwritten, as in a long run
        part, priorities = rows(rng, size), rng.random(size) + 0.01
        for contestant in entered.values():
            contestant.append(part, priorities)
    table = []
    for batch in batches:
        priorities = rng.random(batch) + 0.01
        runs = {name: lambda one=one, p=priorities: one.round(p) for name, one in entered.items()}
        table += entries("round", capacity, batch, compete(runs, repeats, max(5, 20_000 // (batch + 100))))
    part, priorities = rows(rng, 50), rng.random(50) + 0.01
    adding = {name: one for name, one in entered.items() if name != "SB3 uniform"}
    for what, given in (("append", priorities), ("default", None)):
        runs = {name: lambda one=one, given=given: one.append(part, given) for name, one in adding.items()}
        table += entries(what, capacity, 50, compete(runs, repeats, 100))
    return table


def entries(what: str, capacity: int, batch: int, figures: dict[str, tuple[float, float]]) -> list[dict]:
    """Lines of the table."""
    return [
        dict(zip(FIELDS, (what, capacity, batch, name, round(micros, 1), round(ratio, 2)), strict=True))
        for name, (micros, ratio) in figures.items()
    ]


def draw(table: list[dict], path: Path) -> None:
    """Plot rounds against the batch size, one panel a capacity."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    capacities = sorted({line["capacity"] for line in table})
    figure, axes = pyplot.subplots(1, len(capacities), figsize=(4.2 * len(capacities), 3.6), sharey=True, squeeze=False)
    for axis, capacity in zip(axes[0], capacities, strict=True):
        for name in CONTESTANTS:
            lines = [e for e in table if (e["what"], e["capacity"], e["contestant"]) == ("round", capacity, name)]
            if lines:
                axis.loglog([e["batch"] for e in lines], [e["microseconds"] for e in lines], marker="o", label=name)
        sizes = sorted({e["batch"] for e in table if e["what"] == "round"})
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
        axis.set(title=f"capacity {capacity:,}", xlabel="batch size")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("microseconds a round")
    axes[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def versions() -> str:
    """What was measured on what."""
    packages = [name for name in ("numpy", "cpprb", "stable_baselines3", "torch") if importlib.util.find_spec(name)]
    found = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"Python {platform.python_version()}, {found}; {platform.processor() or platform.machine()}"


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, write CSV and plot; gives the exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument("--capacities", type=positive, nargs="+", default=[2**14, 2**17, 2**20])
    parser.add_argument("--batches", type=positive, nargs="+", default=[32, 256, 512, 4096])
    parser.add_argument("--repeats", type=positive, default=7)
    parser.add_argument(
        "--output", type=Path, default=Path("results/replay"), help="folder of replay.csv and replay.png"
    )
    try:
        arguments = parser.parse_args(argv)
        require_folder(arguments.output)
    except (WrongArguments, OSError) as error:
        return parser.refuse(error)
    print(versions())
    print(f"{'what':8}{'capacity':>10}{'batch':>7}  {'contestant':14}{'us':>10}{'ours is faster by':>20}")
    table = []
    for capacity in arguments.capacities:
        for line in measure(capacity, arguments.batches, arguments.repeats):
            table.append(line)
            what, size, batch, name, micros, ratio = line.values()
            print(f"{what:8}{size:>10}{batch:>7}  {name:14}{micros:>10.1f}{ratio:>19.2f}x", flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    with (arguments.output / "replay.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(table)
    if importlib.util.find_spec("matplotlib"):
        draw(table, arguments.output / "replay.png")
    print(f"written to {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
