"""Judge policies of the robot among pedestrians on its fixed cases: a table, and a heat map of difficulty.

Policies are the scripted ones by name, ``random``, ``pretrained`` (what ``agents.pretrained`` has for the id), an
Ape-X file or run folder, or a run's folder of ``compare_baselines.py``. ``NAME=POLICY`` gives it another name in the
table, and ``POLICY@state`` says that it was trained on another kind of observation: the rooms stay the same.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from extras import extra, run

with extra(""):
    import gymnasium as gym
    import numpy as np

    from gym_custom.my_env import CASE_SEEDS, SELECTION_SEEDS
    from gym_custom.my_env.policies import POLICIES, ScriptedPolicy
    from gym_custom.programs.arguments import WRONG, Parser, WrongArguments, positive, require_folder, require_id

IDS = ["MyEnv-v0", "MyEnvStatic-v0", "MyEnvDense-v0", "MyEnvHard-v0", "MyEnvPartial-v0"]
PICTURES = (".png", ".svg", ".pdf")
COLLISIONS = ("pedestrian", "obstacle", "wall")
PEDESTRIANS, NOTICE = (0, 2, 4, 6, 8, 10, 12, 14), (0.0, 0.25, 0.5, 0.75, 1.0)
SEEDS = {
    "cases": CASE_SEEDS,
    "selection": SELECTION_SEEDS,
    "fresh": tuple(range(1_500_000_000, 1_500_000_500)),  # on which nothing was ever tuned
}
EXAMPLES = """examples:
  python scripts/evaluate_robots.py
  python scripts/evaluate_robots.py --env MyEnv-v0 --policies look_ahead Ape-X=runs/MyEnv-v0_20260101-120000
  python scripts/evaluate_robots.py --heat-map difficulty.png --policies gap_follower look_ahead
"""

Predict = Callable[[Any], np.ndarray]
"""From observations (N, ...) to actions (N,)."""


class Episodes(NamedTuple):
    """The first episode from each seed, (N,) each."""

    returns: np.ndarray
    outcome: np.ndarray  # str; "running" where the time was up
    nav_time: np.ndarray  # s
    spl: np.ndarray
    discomfort_ratio: np.ndarray
    hit_while_parked: np.ndarray  # bool


class Player(NamedTuple):
    """A policy to be judged."""

    name: str
    kwargs: dict[str, Any]  # of the environment it needs
    bind: Callable[[Any], Predict]  # to a vector environment


# --- playing


def play(env_id: str, player: Player, seeds: tuple[int, ...], options: dict[str, Any] | None = None) -> Episodes:
    """Plays one episode from each seed, all side by side."""
    env = gym.make_vec(env_id, num_envs=len(seeds), **player.kwargs)
    predict = player.bind(env)
    observation, info = env.reset(seed=list(seeds), options=options)
    last = {name: np.array(info[name]) for name in Episodes._fields[1:]}
    returns, going = np.zeros(len(seeds)), np.ones(len(seeds), bool)
    while going.any():
        observation, reward, terminated, truncated, info = env.step(predict(observation))
        returns += np.where(going, reward, 0.0)
        for name, values in last.items():
            values[going] = info[name][going]
        going &= ~(terminated | truncated)
    env.close()
    return Episodes(returns, **last)


def summary(episodes: Episodes) -> dict[str, float]:
    """A row of the table; shares are of all episodes, the time is that of the successes."""
    success = episodes.outcome == "success"
    return {
        "return": episodes.returns.mean(),
        "+-": episodes.returns.std(ddof=1) / len(success) ** 0.5 if len(success) > 1 else float("nan"),
        "success": success.mean(),
        **{kind: (episodes.outcome == kind).mean() for kind in COLLISIONS},
        "while parked": episodes.hit_while_parked.mean(),
        "timeout": (episodes.outcome == "running").mean(),
        "time": episodes.nav_time[success].mean() if success.any() else float("nan"),
        "SPL": episodes.spl.mean(),
        "discomfort": episodes.discomfort_ratio.mean(),
    }


# --- policies


def player(text: str) -> Player:
    """The policy that an argument names."""
    label, equals, name = text.partition("=")
    name, _, observation = (name if equals else label).partition("@")
    kwargs = {"observation": observation} if observation else {}
    if name in POLICIES:
        return Player(label, kwargs, lambda env: lambda observation: ScriptedPolicy(name, env).predict(observation)[0])
    if name == "random":
        return Player(label, kwargs, _random)
    if name == "pretrained":
        return Player(label, kwargs, _pretrained)
    if not Path(name).exists():
        raise WrongArguments(
            f"there is no policy and no file {name!r}; scripted are {', '.join(POLICIES)}, random, pretrained"
        )
    predict = _trained(Path(name), kwargs)
    return Player(label, kwargs, lambda env: predict)


def _random(env: Any) -> Predict:
    env.action_space.seed(0)
    return lambda observation: env.action_space.sample()


def _pretrained(env: Any) -> Predict:
    from agents import pretrained

    policy = pretrained.load(env)
    return lambda observation: policy.predict(observation)[0]


def _trained(path: Path, kwargs: dict[str, Any]) -> Predict:
    """The greedy policy of a file or of a run's folder."""
    with extra("agents"):
        from agents.apex import ApeX, ApeXConfig
    if not path.is_dir():
        agent = ApeX.load(path, env=partial(gym.make, "MyEnv-v0", **kwargs) if kwargs else None)
        return lambda observation: agent.predict(observation)[0]
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    if "algo" in config:
        return _of_comparison(path)
    env = partial(gym.make, config["env"], **kwargs) if kwargs else config["env"]
    agent = ApeX(env, ApeXConfig.from_dict(config["config"] | {"run_folder": None}))
    agent.load_weights(path / "best.pt")
    return lambda observation: agent.predict(observation)[0]


def _of_comparison(folder: Path) -> Predict:
    with extra("agents,report"):
        from comparison.algorithms import ALGORITHMS
        from comparison.cells import read_config
    cell, _ = read_config(folder)
    return ALGORITHMS[cell.algo].load().load_policy(cell, folder)


# --- what comes of it


def markdown(rows: list[dict[str, Any]]) -> str:
    """The rows as a table."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([_cell(name, row[name]) for name in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return ""
    if name in ("return", "+-"):
        return f"{value:.1f}"
    if name == "time":
        return f"{value:.1f} s"
    return f"{value:.3f}" if name == "SPL" else f"{100 * value:.1f} %"


def success_map(env_id: str, who: Player, seeds: tuple[int, ...]) -> np.ndarray:
    """Share of successes (notice_prob, pedestrians), in rooms of the id that hold so many and notice so often."""
    roomy = who._replace(kwargs=who.kwargs | {"n_pedestrians": max(PEDESTRIANS)})
    return np.array(
        [
            [
                (play(env_id, roomy, seeds, {"n_pedestrians": n, "notice_prob": p}).outcome == "success").mean()
                for n in PEDESTRIANS
            ]
            for p in NOTICE
        ]
    )


def draw_maps(maps: dict[str, np.ndarray], path: Path) -> None:
    """One heat map a policy, side by side in the same colors."""
    with extra("report"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(0.9 + 4.1 * len(maps), 3.1), layout="constrained")
    panels = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, maps.items(), strict=True):
        picture = axes.imshow(values, vmin=0.0, vmax=1.0, cmap="viridis", origin="lower", aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            axes.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color="black" if value > 0.55 else "white")
        axes.set(title=name, xlabel="pedestrians", xticks=range(len(PEDESTRIANS)), xticklabels=PEDESTRIANS)
        axes.set(yticks=range(len(NOTICE)), yticklabels=[f"{p:g}" for p in NOTICE])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    figure.axes[0].set_ylabel("share who notice the robot")
    figure.colorbar(picture, ax=figure.axes, label="success", format=lambda value, _: f"{100 * value:.0f} %")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    """The rows with all digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def parser() -> Parser:
    """The command line."""
    parse = Parser(description=__doc__, epilog=EXAMPLES)
    add = parse.add_argument
    add("--env", nargs="+", default=IDS, metavar="ID", help=f"default: {' '.join(IDS)}")
    add("--policies", nargs="+", default=["random", *POLICIES], metavar="[NAME=]POLICY", help="default: all scripted")
    add("--seeds", choices=list(SEEDS), default="cases", help="500 cases, 100 that choose checkpoints, 500 others")
    add("--episodes", type=positive, default=500, help="at most so many of them")
    add("--output", type=Path, help="CSV file for the table")
    add("--heat-map", type=Path, help="draw success against pedestrians and notice_prob instead, into this picture")
    return parse


def require_robot(env_id: str) -> str:
    """The id, which must be one of a robot among pedestrians.

    Raises:
        WrongArguments: It is not.
    """
    name = require_id(env_id)
    if gym.spec(name).entry_point != gym.spec(IDS[0]).entry_point:
        raise WrongArguments(f"{name} has no robot among pedestrians, as {', '.join(IDS)} have")
    return name


def main(argv: list[str] | None = None) -> int:
    """Runs the script; gives the exit code."""
    parse = parser()
    try:
        arguments = parse.parse_args(argv)
        ids = [require_robot(env_id) for env_id in arguments.env]
        for path in filter(None, (arguments.output, arguments.heat_map)):
            require_folder(path.parent)
        if arguments.heat_map is not None and arguments.heat_map.suffix not in PICTURES:
            raise WrongArguments(f"--heat-map must end in {' or '.join(PICTURES)}, not {arguments.heat_map.name!r}")
        players = [player(text) for text in arguments.policies]
        seeds = SEEDS[arguments.seeds][: arguments.episodes]
        if arguments.heat_map is not None:
            draw_maps({who.name: success_map(ids[0], who, seeds) for who in players}, arguments.heat_map)
            return 0
        rows = [
            {"id": env_id, "policy": who.name} | summary(play(env_id, who, seeds)) for env_id in ids for who in players
        ]
    except WRONG as error:
        return parse.refuse(error)
    print(markdown(rows))
    if arguments.output is not None:
        write_csv(rows, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
