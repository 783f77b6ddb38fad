"""Ape-X with one fault at a time: which of the faults of a recipe that did not learn keeps it from learning?

``python scripts/ablate_apex.py`` trains the agent as it is, then with each fault alone and with all together. Writes
``results/ablation.csv`` and ``docs/images/ablation.png``. A fault is put in by replacing one function of the package
while the agent trains; the package itself knows nothing of faults.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from extras import extra, run

with extra("agents"):
    from torch.nn.functional import layer_norm, linear, relu

    from agents.apex import ApeX, ApeXConfig, actor, inline
    from agents.apex.mailbox import Mailbox
    from agents.apex.network import DuelingNetwork
    from agents.nstep import NStepAccumulator
    from agents.replay import PrioritizedMemory
    from agents.types import Transition
    from gym_custom.programs.arguments import WRONG, Parser, WrongArguments, positive, require_folder

ENV = "NumpyCartPole-v1"
ROOT = Path(__file__).resolve().parents[1]


class NoEnd(NStepAccumulator):
    """Every window goes on with the value of its last observation, also after the pole has fallen."""

    def push_steps(self, obs: Any, action: Any, reward: Any, terminated: Any, *rest: Any) -> Transition:
        """Take the steps as if none had ended its episode for good."""
        truncated, *rest = rest
        return super().push_steps(obs, action, reward, np.zeros_like(terminated), terminated | truncated, *rest)


class FirstTwice(NStepAccumulator):
    """A window begins with its first step twice: r + gamma r + gamma^2 r', and reaches one step less far."""

    def __init__(self, n: int, discount: float, num_envs: int = 1) -> None:
        super().__init__(n - 1, discount, num_envs)

    def push_steps(self, obs: Any, action: Any, reward: Any, *rest: Any) -> Transition:
        """Put the first reward in front of each window once more."""
        windows = super().push_steps((obs, reward), action, reward, *rest)
        obs, first = windows.obs
        total = first + self.discount * windows.reward
        return windows._replace(obs=obs, reward=total, discount=self.discount * windows.discount)


def plus_for_minus(q: Any, action: Any, reward: Any, discount: Any, q_next: Any, q_next_target: Any) -> Any:
    """The actors' first priorities: target plus estimate."""
    rows = np.arange(len(q))
    return reward + discount * q_next_target[rows, q_next.argmax(1)] + q[rows, action]


def batch_wide_mean(self: DuelingNetwork, x: Any, noise: None = None) -> Any:
    """The dueling network's forward pass with one mean for all rows and actions, and no gradient through it."""
    x = x * self.scale + self.offset
    for layer, norm in zip(self.body, self.norms, strict=True):
        x = relu(layer_norm(linear(x, layer.weight, layer.bias), norm.normalized_shape, norm.weight, norm.bias))
    a = linear(x, self.advantage.weight, self.advantage.bias)
    return linear(x, self.value.weight, self.value.bias) + a - a.mean().detach()


class RawPriorities(PrioritizedMemory):
    """Rows are drawn by their bare errors, and no weight corrects for it."""

    def _leaves(self, raw: np.ndarray) -> np.ndarray:
        return raw

    def draw(self, *arguments: Any) -> Any:
        """Give each row the weight 1."""
        slots, ids, weights, probabilities = super().draw(*arguments)
        return slots, ids, np.ones_like(weights), probabilities


class Queue(Mailbox):
    """Weights wait in line: as many as there are actors, and new ones only where there is room."""

    length = ApeXConfig().num_actors

    def __init__(self) -> None:
        self._line: list[Any] = []

    def publish(self, weights: Any) -> None:
        """Put weights at the end, or drop them if the line is full."""
        if len(self._line) < self.length:
            self._line.append(weights)

    def newer_than(self, version: int) -> Any:
        """Take the oldest; the first ones stay until there are others."""
        return self._line.pop(0) if len(self._line) > 1 else self._line[0]


class Fault(NamedTuple):
    """What is replaced by what."""

    title: str
    where: Any
    name: str
    by: Any


FAULTS = {
    "end": Fault("no end flag", actor, "NStepAccumulator", NoEnd),
    "sign": Fault("plus for minus", actor, "td_error", plus_for_minus),
    "mean": Fault("mean over the batch", DuelingNetwork, "forward", batch_wide_mean),
    "twice": Fault("first reward twice", actor, "NStepAccumulator", FirstTwice),
    "raw": Fault("no exponent, no weights", "agents.apex.building", "PrioritizedMemory", RawPriorities),
    "stale": Fault("weights from a queue", inline, "Mailbox", Queue),
}


class BothWindows(NoEnd, FirstTwice):
    """No end flag, and the first reward twice."""


@contextmanager
def faulty(names: Sequence[str]) -> Iterator[None]:
    """Agents that are made and trained in here have these faults."""
    with ExitStack() as stack:
        for fault in (FAULTS[name] for name in names):
            by = BothWindows if fault.name == "NStepAccumulator" and {"end", "twice"} <= set(names) else fault.by
            target = f"{fault.where}.{fault.name}" if isinstance(fault.where, str) else None
            patch = mock.patch(target, by) if target else mock.patch.object(fault.where, fault.name, by)
            stack.enter_context(patch)
        yield


def train(names: Sequence[str], seed: int, steps: int) -> list[tuple[int, float]]:
    """Train one agent; gives (env steps, mean greedy return) of its evaluations."""
    with tempfile.TemporaryDirectory() as folder, faulty(names):
        config = ApeXConfig(cluster="inline", run_folder=f"{folder}/run", checkpoint_interval=10 * steps)
        ApeX(ENV, config, seed).learn(steps)
        with open(f"{folder}/run/evaluations.csv", newline="") as file:
            return [(int(row["env_steps"]), float(row["mean_return"])) for row in csv.DictReader(file)]


VARIANTS = {"repaired": ()} | {name: (name,) for name in FAULTS} | {"all": tuple(FAULTS)}
TITLES = {"repaired": "as it is", **{name: fault.title for name, fault in FAULTS.items()}, "all": "all six together"}
COLUMNS = ("variant", "seed", "env_steps", "mean_return")


def measure(path: Path, seeds: int, steps: int, say: Callable[[str], None]) -> None:
    """Train all variants and write one row an evaluation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for variant, names in VARIANTS.items():
            for seed in range(seeds):
                curve = train(names, seed, steps)
                writer.writerows((variant, seed, at, f"{value:.6g}") for at, value in curve)
                file.flush()
                say(f"{TITLES[variant]}, seed {seed}: best {max(v for _, v in curve):.1f}, last {curve[-1][1]:.1f}")


def read(path: Path) -> dict[str, list[np.ndarray]]:
    """Curves (evaluations, 2) of each variant's seeds.

    Raises:
        ValueError: The file holds none.
    """
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            of_seed = curves.setdefault(row["variant"], {}).setdefault(row["seed"], [])
            of_seed.append((float(row["env_steps"]), float(row["mean_return"])))
    if not curves:
        raise ValueError(f"{path} holds no evaluations")
    return {variant: [np.array(curve) for curve in seeds.values()] for variant, seeds in curves.items()}


def draw(curves: dict[str, list[np.ndarray]], path: Path) -> None:
    """Draw one panel a fault, each over the curves of the agent as it is."""
    with extra("report"):
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib.figure import Figure
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    variants = [name for name in VARIANTS if name != "repaired" and name in curves]
    panels = figure.subplots(2, (len(variants) + 1) // 2, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, variant in zip(panels, variants, strict=False):
        for name, color in (("repaired", "#9aa5b1"), (variant, "#c8443c")):
            for curve in curves[name]:
                panel.plot(curve[:, 0] / 1000, curve[:, 1], color=color, lw=1.6, alpha=0.9)
        panel.axhline(475, color="black", lw=0.7, ls=":")
        panel.set_title(TITLES[variant], loc="left", fontsize=11)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(variants) :]:
        panel.axis("off")
        panel.plot([], [], color="#9aa5b1", label="as it is")
        panel.plot([], [], color="#c8443c", label="with the fault")
        panel.plot([], [], color="black", lw=0.7, ls=":", label="solved (475)")
        panel.legend(frameon=False, loc="center")
    figure.supxlabel("env steps (thousands)", fontsize=10)
    figure.supylabel("greedy return", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the process's exit code."""
    import gym_custom  # noqa: F401  # registers the env

    parser = Parser(description=__doc__)
    parser.add_argument("--steps", type=positive, default=8_000, help="env steps of each run (default 8000)")
    parser.add_argument("--seeds", type=positive, default=3, help="runs of each variant (default 3)")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "ablation.csv")
    parser.add_argument("--figure", type=Path, default=ROOT / "docs" / "images" / "ablation.png")
    parser.add_argument("--draw-only", action="store_true", help="draw the figure from the results that are there")
    try:
        options = parser.parse_args(argv)
        if options.steps <= ApeXConfig().warmup_steps:
            raise WrongArguments(f"--steps must be more than the warm-up's {ApeXConfig().warmup_steps}")
        for path in (options.results, options.figure):
            require_folder(path.parent)
        if not options.draw_only:
            measure(options.results, options.seeds, options.steps, lambda sentence: print(sentence, flush=True))
        draw(read(options.results), options.figure)
    except WRONG as error:
        return parser.refuse(error)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
