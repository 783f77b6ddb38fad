"""What hidden information costs: train Ape-X with each kind of observation of ``MyEnv-v0``, and judge it on the cases.

All get the same budget, seed and settings (the id's preset) and play in the same rooms; "state" sees where everybody
is and how they move, "lidar" what a range finder tells, "partial" less than that. The best weights of each run, by its
evaluations, are judged. Runs are kept in the output folder; those that it already holds are not repeated.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import sys
from pathlib import Path

from extras import extra, run

with extra("agents"):
    import gymnasium as gym
    from evaluate_robots import SEEDS, markdown, play, player, summary, write_csv

    from agents.apex import ApeXConfig
    from gym_custom.programs.arguments import WRONG, Parser, natural, positive, require_folder

KINDS = ("state", "lidar", "lidar_stack", "camera", "partial")
ENV = "MyEnv-v0"


def train(kind: str, folder: Path, arguments: argparse.Namespace) -> None:
    """One run with its learning rate falling over the whole budget."""
    from agents.apex import ApeX  # loads torch, for which no wrong word should have to wait

    spec = copy.deepcopy(gym.spec(ENV))
    spec.kwargs["observation"] = kind
    config = dataclasses.replace(
        ApeXConfig.preset(ENV),
        cluster=arguments.cluster,
        annealing_steps=arguments.total_timesteps,
        run_folder=str(folder),
    )
    ApeX(spec, config, arguments.seed).learn(arguments.total_timesteps, progress_bar=True)


def finished(folder: Path, steps: int) -> bool:
    """Whether the folder holds a run of so many steps that came to its end."""
    path = folder / "evaluations.csv"
    rows = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return len(rows) > 1 and int(rows[-1].partition(",")[0]) >= steps


def parser() -> Parser:
    """The command line."""
    parse = Parser(description=__doc__)
    add = parse.add_argument
    add("--observations", nargs="+", choices=KINDS, default=["state", "lidar", "partial"], metavar="KIND")
    add("--total-timesteps", type=positive, default=1_000_000, help="env steps of each run (default: 1,000,000)")
    add("--seed", type=natural, default=0)
    add("--cluster", choices=["local", "inline"], default="local")
    add("--episodes", type=positive, default=500, help="at most so many cases")
    add("--output", type=Path, default=Path("results/observations"), help="folder of the runs and the table")
    return parse


def main(argv: list[str] | None = None) -> int:
    """Runs the script; gives the exit code."""
    parse, rows = parser(), []
    try:
        arguments = parse.parse_args(argv)
        require_folder(arguments.output)
        for kind in arguments.observations:
            folder = arguments.output / kind
            if not finished(folder, arguments.total_timesteps):
                train(kind, folder, arguments)
            judged = play(ENV, player(f"{kind}={folder}@{kind}"), SEEDS["cases"][: arguments.episodes])
            rows.append({"observation": kind} | summary(judged))
    except WRONG as error:
        return parse.refuse(error)
    except KeyboardInterrupt:
        print("Stopped; runs that ended are kept.")
        return 130
    print(markdown(rows))
    write_csv(rows, arguments.output / "observations.csv")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
