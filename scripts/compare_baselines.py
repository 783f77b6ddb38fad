"""Compare algorithms on env ids over seeds, and write a report.

    python scripts/compare_baselines.py --quick
    python scripts/compare_baselines.py --algo apex dqn ppo --env NumpyCartPole-v1 --seed 0 1 2 3 4 -n 50000

Flags are rl-zoo3's where it has them. Every run trains in its own process and leaves its folder
``LOG_FOLDER/ALGO/ENV_SEED/`` with configuration, learning curve, monitor file, TensorBoard events and checkpoints.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from extras import extra, run

with extra("agents,report"):
    from comparison.algorithms import ALGORITHMS
    from comparison.cells import Cell, read_config, read_status, write_config
    from comparison.progress import read_progress
    from comparison.provenance import provenance
    from comparison.scheduler import Job, Process, run_jobs, train_here
    from comparison.settings import settings_for
    from tqdm import tqdm

    from agents.tabular import QLearning
    from gym_custom.programs.arguments import WRONG, Parser, WrongArguments, find_own_modules, require_id

QUICK = ["--algo", "apex", "dqn", "ppo", "--env", "NumpyCartPole-v1", "--seed", "0", "1", "-n", "50000", "-P"]
QUICK_FOLDER = "results/quick"
START_RAY = "here"


def parser() -> Parser:
    """The command line."""
    parse = Parser(description=__doc__)
    add = parse.add_argument
    add("--quick", action="store_true", help=f"Ape-X, DQN and PPO on CartPole, two seeds, into {QUICK_FOLDER}")
    add("--algo", nargs="+", default=["ppo"], choices=list(ALGORITHMS), metavar="ALGO", help=", ".join(ALGORITHMS))
    add("--env", nargs="+", default=["NumpyCartPole-v1"], metavar="ID", help="Gymnasium ids")
    add("--seed", nargs="+", type=int, default=[0], help="numbers of the repetitions")
    add("-n", "--n-timesteps", type=int, default=50_000, help="env steps of each run; schedules scale with it")
    add("--max-seconds", type=float, help="training seconds after which a run ends: the wall-clock budget")
    add("--eval-freq", type=int, help="env steps between evaluations (default: a twentieth of -n)")
    add("--eval-episodes", type=int, default=20, help="greedy episodes of one evaluation")
    add("-f", "--log-folder", type=Path, default=Path("logs"), help="where the runs and the report go")
    add("-tb", "--tensorboard-log", type=Path, metavar="FOLDER", help="TensorBoard events (default: the runs' folders)")
    add("--gym-packages", nargs="+", default=["gym_custom"], help="modules that register the ids")
    add("--jobs", type=int, help="busy processes at a time (default: the cores)")
    add("--ray", nargs="?", const=START_RAY, metavar="ADDRESS", help="run on the cores of a Ray cluster, or start one")
    add("--time-limit", type=float, help="seconds after which a run is stopped and listed as timed out")
    add("--resume", action="store_true", help="keep finished runs, redo the others")
    add("-P", "--progress", action="store_true", help="a progress bar for each run")
    parse.set_defaults(set_aside=False)
    return parse


def main(argv: list[str] | None = None) -> int:
    """Run the comparison.

    Returns:
        0 where every run finished, 1 where some did not, 2 for a request that cannot be met, 130 after Ctrl+C.
    """
    try:
        arguments = _arguments(argv)
    except WrongArguments as error:
        return parser().refuse(error)
    with ExitStack() as stack:
        try:
            cells = _cells(arguments)
            with extra("agents,report"):  # not at the top: wrong words need not wait for it
                from comparison import pages
            slots, start = stack.enter_context(_place(arguments))
            if arguments.set_aside:
                _move_aside(arguments.log_folder, arguments.log_folder.parent)
            todo = _prepare(cells, arguments.log_folder, resume=arguments.resume)
        except WRONG as error:
            return parser().refuse(error)
        try:
            _run(todo, slots, start, arguments)
        except KeyboardInterrupt:
            print(f"\nInterrupted: what is there stays in {arguments.log_folder}; --resume goes on.", file=sys.stderr)
            return 130
    print("Writing the report: figures, and a film of each algorithm ...", flush=True)
    pages.write(arguments.log_folder)
    print((arguments.log_folder / "report.md").read_text(encoding="utf-8"))
    print(f"Report: {arguments.log_folder / 'report.html'}")
    finished = [read_status(arguments.log_folder / cell.name)["status"] == "finished" for cell in cells]
    return 0 if all(finished) else 1


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    arguments = parser().parse_args(argv)
    if not arguments.quick:
        return arguments
    # what stands behind --quick on the command line changes the preset
    rest = [word for word in (sys.argv[1:] if argv is None else argv) if word != "--quick"]
    quick = parser().parse_args([*QUICK, *rest])
    if "--log-folder" not in rest and "-f" not in rest:
        quick.log_folder = Path(QUICK_FOLDER)
        quick.set_aside = not quick.resume
    return quick


def _move_aside(folder: Path, parent: Path) -> None:
    """Keep an older folder, under a name with the time, so that nothing is overwritten."""
    if folder.exists():
        parent.mkdir(parents=True, exist_ok=True)
        folder.rename(parent / time.strftime(f"{folder.name}-%Y%m%d-%H%M%S"))


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    importlib.import_module("gym_custom")
    find_own_modules()
    for package in arguments.gym_packages:
        importlib.import_module(package)
    for env_id in arguments.env:
        require_id(env_id)
        if "q_learning" in arguments.algo:
            QLearning(env_id).env.close()  # a TypeError names the space that is not finite
    jobs = 1 if arguments.jobs is None else arguments.jobs
    if min(arguments.n_timesteps, arguments.eval_episodes, jobs) < 1 or min(arguments.seed) < 0:
        raise ValueError("-n, --eval-episodes and --jobs must be at least 1 and --seed at least 0.")
    if arguments.ray and arguments.tensorboard_log:
        raise ValueError(
            "--tensorboard-log names a folder on this machine: with --ray, events stay in the runs' folders."
        )
    if arguments.eval_freq is not None and arguments.eval_freq < 1:
        raise ValueError(f"--eval-freq must be at least 1, not {arguments.eval_freq}")
    for name in ("max_seconds", "time_limit"):
        seconds = getattr(arguments, name)
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"--{name.replace('_', '-')} must be above 0 and finite, not {seconds}")
    return [
        Cell(
            algo=algo,
            env_id=env_id,
            seed=seed,
            total_timesteps=arguments.n_timesteps,
            eval_freq=arguments.eval_freq or max(arguments.n_timesteps // 20, 1),
            eval_episodes=arguments.eval_episodes,
            max_seconds=arguments.max_seconds,
            settings=settings_for(algo, env_id),
            gym_packages=tuple(arguments.gym_packages),
            tensorboard_log=arguments.tensorboard_log and str(arguments.tensorboard_log.resolve()),
        )
        for env_id in dict.fromkeys(arguments.env)  # each once
        for algo in dict.fromkeys(arguments.algo)
        for seed in dict.fromkeys(arguments.seed)
    ]


def _prepare(cells: list[Cell], log_folder: Path, resume: bool) -> list[Job]:
    """Write each run's configuration; finished runs are kept, others are begun anew, and only if that was asked for."""
    existing = [cell for cell in cells if (log_folder / cell.name).exists()]
    if existing and not resume:
        raise ValueError(
            f"{log_folder / existing[0].name} exists: choose another --log-folder, or --resume to go on with it."
        )
    source = provenance()
    jobs = []
    for cell in cells:
        folder = log_folder / cell.name
        if read_status(folder)["status"] == "finished":
            if read_config(folder)[0] != cell:
                raise ValueError(f"{folder} holds a run with other settings: choose another --log-folder.")
            continue
        if folder.exists():
            _move_aside(folder, log_folder / "broken" / cell.algo)
        folder.mkdir(parents=True)  # of two comparisons that begin at once, one ends here
        write_config(folder, cell, source)
        jobs.append(Job(folder, ALGORITHMS[cell.algo].processes))
    return jobs


@contextmanager
def _place(arguments: argparse.Namespace) -> Iterator[tuple[int, Callable[[Job], Process]]]:
    """Where the runs take place: how many busy processes there may be, and what starts one."""
    if arguments.ray is None:
        yield arguments.jobs or os.cpu_count() or 1, train_here
        return
    with extra("ray"):
        from comparison.ray_runs import RemoteProcess, cluster
    with cluster(None if arguments.ray == START_RAY else arguments.ray) as num_cores:
        yield arguments.jobs or num_cores, RemoteProcess


def _run(jobs: list[Job], slots: int, start: Callable[[Job], Process], arguments: argparse.Namespace) -> None:
    total = arguments.n_timesteps
    bars: dict[Path, tqdm] = {}

    def show(running: list[Job], ended: list[Job]) -> None:
        for job in running + ended:
            name = str(job.folder.relative_to(arguments.log_folder))
            if job.folder not in bars:
                bars[job.folder] = tqdm(total=total, desc=name, unit=" steps", disable=not arguments.progress)
            bar = bars[job.folder]
            _advance(bar, read_progress(job.folder))
        for job in ended:
            bar = bars[job.folder]
            status = read_status(job.folder)
            _advance(bar, status.get("timesteps", 0))
            bar.set_postfix_str(status.get("error") or f"greedy return {status['best_return']:.1f}")
            bar.close()

    run_jobs(jobs, slots, arguments.time_limit, show, start)


def _advance(bar: tqdm, steps: int) -> None:
    """Moves a bar to so many steps; a run's last batch may lead past the total, which then grows with it."""
    bar.total = max(bar.total, steps)
    bar.update(max(steps - bar.n, 0))


if __name__ == "__main__":
    sys.exit(run(main))
