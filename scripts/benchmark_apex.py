"""Measure how long Ape-X, DQN and PPO take to solve a task, the start of their processes included.

Each run is a process of its own. After every 1,000 env steps it plays 20 greedy episodes, outside the clock, until the
second evaluation in a row whose mean reaches the threshold. A run that does not get there within its algorithm's steps
counts with its whole time and is marked. Ape-X's runs then go on to their last step, to see what is kept. DQN and PPO
are stable-baselines3's with rl-zoo3's settings on the same native envs. Runs take turns, seed after seed; runs that the
CSV already holds are not repeated.

Examples:
  python scripts/benchmark_apex.py
  python scripts/benchmark_apex.py --env NumpyCartPole-v0 --algorithms apex
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from extras import run

from gym_custom.programs.arguments import WRONG, Parser, WrongArguments, natural, positive, require_folder, require_id

STEPS = {"apex": 100_000, "dqn": 50_000, "ppo": 100_000}
GOES_ON = ("apex",)  # once it has solved the task
EVALUATION_INTERVAL, EPISODES, LAST, KEPT = 1_000, 20, 5, 0.95
INTERRUPTED = 130


class Result(NamedTuple):
    """One run; times in seconds since its process was started, evaluations left out."""

    env_id: str
    algorithm: str
    seed: int
    solved: bool
    seconds: float
    env_steps: int
    last_over_best: float  # mean of the last five evaluations by the best one; NaN in runs that end once solved


class Solved(Exception):
    """The run has nothing left to show."""


class Stopwatch:
    """Time since the process was asked for, evaluations left out, until two of them in a row reach the threshold.

    Args:
        started: ``time.monotonic()`` of the parent when it started this process.
        threshold: mean return to be reached.
        whole: whether the run goes on once it is solved.
    """

    def __init__(self, started: float, threshold: float, whole: bool) -> None:
        self._started, self._threshold, self._whole = started, threshold, whole
        self._paused = 0.0
        self.returns: list[float] = []
        self.solved: tuple[float, int] | None = None

    @property
    def seconds(self) -> float:
        """Time so far."""
        return time.monotonic() - self._started - self._paused

    def evaluated(self, mean_return: float, began: float, env_steps: int) -> None:
        """Note an evaluation that began at a time of ``time.monotonic()`` and ends now."""
        self._paused += time.monotonic() - began
        self.returns.append(mean_return)
        if self.solved is None and len(self.returns) > 1 and min(self.returns[-2:]) >= self._threshold:
            self.solved = (self.seconds, env_steps)
        if self.solved is not None and not self._whole:
            raise Solved

    def result(self, env_id: str, algorithm: str, seed: int, env_steps: int) -> Result:
        """Give what is to be told."""
        solved = self.solved is not None
        seconds, steps = self.solved if self.solved is not None else (self.seconds, env_steps)
        last = float(np.mean(self.returns[-LAST:]) / max(self.returns)) if self._whole else float("nan")
        return Result(env_id, algorithm, seed, solved, round(seconds, 2), steps, round(last, 4))


def run_apex(env_id: str, seed: int, steps: int, watch: Stopwatch) -> int:
    """Train Ape-X with two actors in processes; gives the env steps."""
    from agents.apex import ApeX, ApeXConfig

    class Watched(ApeX):
        """Tells the stopwatch of each evaluation, from its first greedy action to the judgement."""

        began: float | None = None

        def greedy(self, network: Any, obs: Any) -> np.ndarray:
            self.began = time.monotonic() if self.began is None else self.began
            return super().greedy(network, obs)

        def judge(self, mean_return: float) -> bool:
            better, began = super().judge(mean_return), self.began
            assert began is not None
            self.began = None
            watch.evaluated(mean_return, began, self.num_timesteps)
            return better

    with tempfile.TemporaryDirectory() as folder:
        changes = {"num_actors": 2, "evaluation_interval": EVALUATION_INTERVAL, "evaluation_episodes": EPISODES}
        preset = ApeXConfig.preset(env_id).to_dict() | changes | {"run_folder": str(Path(folder) / "run")}
        agent = Watched(env_id, ApeXConfig.from_dict(preset), seed=seed)
        with contextlib.suppress(Solved):
            agent.learn(steps)
        return agent.num_timesteps


def run_sb3(algorithm: str, env_id: str, seed: int, steps: int, watch: Stopwatch) -> int:
    """Train an algorithm of stable-baselines3; gives the env steps."""
    import torch
    from comparison.cells import EVALUATION_SEED, Cell
    from comparison.evaluation import greedy_episodes, seed_block
    from comparison.sb3_runs import build, greedy
    from comparison.settings import settings_for
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    cell = Cell(algorithm, env_id, seed, steps, EVALUATION_INTERVAL, EPISODES, settings=settings_for(algorithm, env_id))

    class Watcher(BaseCallback):
        """Evaluates as soon as so many steps have been taken."""

        def _on_step(self) -> bool:
            if self.num_timesteps // EVALUATION_INTERVAL > len(watch.returns):
                began = time.monotonic()
                episodes = greedy_episodes(greedy(self.model), env_id, seed_block(EVALUATION_SEED, EPISODES))
                watch.evaluated(float(episodes.returns.mean()), began, self.num_timesteps)
            return True

    model = build(cell)
    with contextlib.suppress(Solved):
        model.learn(steps, callback=Watcher())
    return model.num_timesteps


def run_one(env_id: str, algorithm: str, seed: int, started: float) -> Result:
    """Run in this process."""
    import gymnasium as gym

    import gym_custom  # noqa: F401  # registers the ids

    threshold = gym.spec(env_id).reward_threshold
    assert threshold is not None
    watch, steps = Stopwatch(started, threshold, algorithm in GOES_ON), STEPS[algorithm]
    runs: dict[str, Callable[[], int]] = {"apex": lambda: run_apex(env_id, seed, steps, watch)}
    env_steps = runs.get(algorithm, lambda: run_sb3(algorithm, env_id, seed, steps, watch))()
    return watch.result(env_id, algorithm, seed, env_steps)


def in_own_process(env_id: str, algorithm: str, seed: int) -> Result:
    """Start a process and wait for its result.

    Raises:
        RuntimeError: it failed; the message holds what it said.
    """
    command = [sys.executable, __file__, "--env", env_id, "--child", algorithm, str(seed)]
    command += ["--started", repr(time.monotonic())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{algorithm} with seed {seed} failed:\n{done.stderr}")
    return Result(*json.loads(done.stdout.splitlines()[-1]))


def read(path: Path) -> list[Result]:
    """Results of an earlier call; none where there is no file."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [_result(row) for row in rows]


def _result(row: dict[str, str]) -> Result:
    solved, seconds, last = row["solved"] == "True", float(row["seconds"]), float(row["last_over_best"])
    return Result(row["env_id"], row["algorithm"], int(row["seed"]), solved, seconds, int(row["env_steps"]), last)


def append(path: Path, result: Result) -> None:
    """Write one row; a new file begins with a line of provenance."""
    from comparison.provenance import provenance

    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with open(path, "a", encoding="utf-8", newline="") as file:
        if fresh:
            file.write(f"#{json.dumps(provenance())}\n")
            csv.writer(file).writerow(Result._fields)
        csv.writer(file).writerow(result)


def table(results: Sequence[Result]) -> str:
    """Seconds per seed and algorithm, and their medians, as Markdown; * marks runs that did not get there."""
    algorithms = [name for name in STEPS if any(r.algorithm == name for r in results)]
    lines = ["| seed | " + " | ".join(algorithms) + " |", "|---|" + "---|" * len(algorithms)]
    cells = {(r.seed, r.algorithm): f"{r.seconds:.1f}{'' if r.solved else '*'}" for r in results}
    for seed in sorted({r.seed for r in results}):
        lines.append(f"| {seed} | " + " | ".join(cells.get((seed, name), "") for name in algorithms) + " |")
    medians = [statistics.median(r.seconds for r in results if r.algorithm == name) for name in algorithms]
    return "\n".join([*lines, "| median | " + " | ".join(f"{median:.1f}" for median in medians) + " |"])


def findings(results: Sequence[Result]) -> list[str]:
    """What the table says: how many runs got there, how much they kept, and Ape-X's median by the others'."""
    lines, medians = [], {}
    for name in dict.fromkeys(r.algorithm for r in results):
        runs = [r for r in results if r.algorithm == name]
        medians[name] = statistics.median(r.seconds for r in runs)
        lines.append(f"{name}: {sum(r.solved for r in runs)} of {len(runs)} got there within {STEPS[name]:,} steps")
        if name in GOES_ON:
            kept = sum(r.last_over_best >= KEPT for r in runs)
            lines.append(f"{name}: {kept} of {len(runs)} end with five evaluations of {KEPT:.0%} of the best")
    others = [name for name in medians if name != "apex" and "apex" in medians]
    return lines + [f"median of apex by that of {name}: {medians['apex'] / medians[name]:.2f}" for name in others]


def parser() -> Parser:
    """The command line."""
    result = Parser(description=__doc__)
    result.add_argument("--env", default="NumpyCartPole-v1", help="an id with a reward threshold")
    result.add_argument("--algorithms", nargs="+", choices=STEPS, default=list(STEPS))
    result.add_argument("--seeds", nargs="+", type=natural, default=list(range(10)))
    result.add_argument("--max-seconds", type=positive, help="begin no further run after so many seconds")
    result.add_argument("--out", type=Path, default=Path("results/benchmark_apex.csv"))
    result.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    result.add_argument("--started", type=float, help=argparse.SUPPRESS)
    return result


def require_threshold(env_id: str) -> None:
    """Refuse an id that no run could solve.

    Raises:
        WrongArguments: there is no such id, or nothing counts as solved there.
    """
    import gymnasium as gym

    if gym.spec(require_id(env_id)).reward_threshold is None:
        raise WrongArguments(f"{env_id} has no reward threshold, so nothing counts as solved")


def measure(arguments: argparse.Namespace) -> None:
    """Run what is missing, and show the table."""
    begun, there = time.monotonic(), read(arguments.out)
    done = {(r.env_id, r.algorithm, r.seed) for r in there}
    todo = [(a, s) for s in arguments.seeds for a in arguments.algorithms if (arguments.env, a, s) not in done]
    for algorithm, seed in todo:
        if arguments.max_seconds is not None and time.monotonic() - begun > arguments.max_seconds:
            break
        result = in_own_process(arguments.env, algorithm, seed)
        append(arguments.out, result)
        there.append(result)
        print(f"{algorithm} {seed}: {result.seconds} s, {result.env_steps} steps, solved: {result.solved}", flush=True)
    here = [r for r in there if r.env_id == arguments.env]
    print(table(here), *findings(here), sep="\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the script; returns the process's exit code."""
    parse = parser()
    try:
        arguments = parse.parse_args(argv)
        if arguments.child is not None:
            algorithm, seed = arguments.child
            result = run_one(arguments.env, algorithm, int(seed), arguments.started)
            print(json.dumps(result))
        else:
            require_threshold(arguments.env)
            require_folder(arguments.out.parent)
            measure(arguments)
    except KeyboardInterrupt:
        print("Stopped; the same command goes on where it was")
        return INTERRUPTED
    except (*WRONG, RuntimeError) as error:
        return parse.refuse(error)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
