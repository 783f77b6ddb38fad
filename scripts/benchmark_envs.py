"""Measure how many transitions a second the environments make, beside their peers.

Actions are random and drawn before the clock starts; resets are inside the clock, warm-up is not. Only real transitions
count: the rows that a vector environment spends on beginning anew do not. At each number of environments all
contestants run in turn, again and again; the table shows the median, the spread of the repeats, and the median of the
ratios to the first contestant of the same group within one repeat.
"""

from __future__ import annotations

import csv
import importlib.metadata
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.environments import CONTESTANTS, Contestant, Play, installed_peers
from comparison.provenance import processor
from extras import run
from jax_device import on_device

from gym_custom.programs.arguments import Parser, WrongArguments, positive

SIZES = [1, 16, 128, 1_024, 8_192, 65_536]

EXAMPLES = """examples:
  python scripts/benchmark_envs.py
  python scripts/benchmark_envs.py --num-envs 1 1024 65536 --repeats 7
  python scripts/benchmark_envs.py --peers --output results/speed
"""


class Measurement(NamedTuple):
    """What one contestant did at one number of environments; rates are transitions a second, one a repeat."""

    group: str
    name: str
    num_envs: int
    rates: list[float]
    ratios: list[float]


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

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    axes.set_prop_cycle(color=[*matplotlib.color_sequences["tab10"], "black", "gold"])  # a color a line
    vectors = [found for found in measurements if "single" not in found.group]
    for name in dict.fromkeys(found.name for found in vectors):
        points = [found for found in vectors if found.name == name]
        sizes, medians = [p.num_envs for p in points], [statistics.median(p.rates) for p in points]
        ours = name.startswith(("Numpy", "Grid", "MyEnv"))
        (line,) = axes.loglog(sizes, medians, marker="o" if ours else "s", ls="-" if ours else "--", label=name)
        axes.fill_between(
            sizes, [min(p.rates) for p in points], [max(p.rates) for p in points], color=line.get_color(), alpha=0.15
        )
    axes.set(xlabel="number of environments", ylabel="transitions a second", title="Vector environments, random play")
    axes.grid(which="major", alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small")
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
