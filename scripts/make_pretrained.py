"""Make the trained policies of ``agents/pretrained``: train Ape-X, play a hundred greedy episodes, write a file an id.

With --from-run the weights come from a finished training run (its best.pt) instead; the score is measured anew, on the
file as written, from starts that no training ever sees.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extras import extra, run

with extra(""):
    import gymnasium as gym
    import numpy as np

    import gym_custom
    from agents.apex import ApeXConfig
    from agents.pretrained import DATA, load
    from agents.pretrained.files import Saved, read, write
    from gym_custom.programs.arguments import WRONG, Parser, WrongArguments, natural, positive, require_id

if TYPE_CHECKING:
    from agents.apex import ApeX

assert gym_custom.World  # the import registers the ids

STEPS = {"NumpyCartPole-v0": 50_000, "NumpyCartPole-v1": 50_000, "GridWorld-v0": 8_000}
EPISODES, FIRST_SEED = 100, 1 << 31  # beyond the seeds of actors and of evaluations during the training
MOST_BYTES = 400 * 1024
EXAMPLES = """examples:
  %(prog)s NumpyCartPole-v1 GridWorld-v0
  %(prog)s MyEnv-v0 --from-run runs/MyEnv-v0_20260101-120000
"""


def main(argv: list[str] | None = None) -> int:
    """Make the files and print their scores; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    parse = Parser(prog="python scripts/make_pretrained.py", description=__doc__, epilog=EXAMPLES)
    parse.add_argument("ids", nargs="+", metavar="ID")
    parse.add_argument(
        "--from-run",
        type=Path,
        metavar="FOLDER",
        help="of a finished run of that id or of one with the same spaces; one id only",
    )
    parse.add_argument("--seed", type=natural, default=0, metavar="N", help="of the training (default: 0)")
    parse.add_argument("--total-timesteps", type=positive, metavar="N", help="of the training (default: by id)")
    parse.add_argument("--output", type=Path, default=DATA, metavar="FOLDER", help="default: the package's own")
    try:
        arguments = parse.parse_args(argv)
        check(arguments)
        arguments.output.mkdir(parents=True, exist_ok=True)
        with extra("agents"):  # loads torch only here: no wrong word should have to wait for it
            for env_id in map(require_id, arguments.ids):
                saved = from_run(env_id, arguments.from_run) if arguments.from_run else train(env_id, arguments)
                print(line(env_id, publish(env_id, saved, arguments.output)))
    except KeyboardInterrupt:
        return 130
    except WRONG as error:
        return parse.refuse(error)
    return 0


def check(arguments: Any) -> None:
    """Refuse before the first training what would end the last."""
    if arguments.from_run and len(arguments.ids) > 1:
        raise WrongArguments("--from-run is for one id")
    for env_id in map(require_id, arguments.ids):
        if not (arguments.from_run or arguments.total_timesteps or env_id in STEPS):
            raise WrongArguments(f"{env_id} needs --total-timesteps, or --from-run with a finished run")


def train(env_id: str, arguments: Any) -> Saved:
    """Train in one thread, which the same seed repeats to the last bit."""
    from agents.apex import ApeX

    settings = ApeXConfig.preset(env_id).to_dict() | {"cluster": "inline"}
    agent = ApeX(env_id, ApeXConfig.from_dict(settings), arguments.seed)
    agent.learn(arguments.total_timesteps or STEPS[env_id], progress_bar=True)
    return described(agent, agent.num_timesteps, agent.source.name)


def from_run(env_id: str, folder: Path) -> Saved:
    """Take the best weights of a run's folder."""
    run = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    from agents.apex import ApeX

    agent = ApeX(env_id, ApeXConfig.from_dict({**run["config"], "cluster": "inline", "run_folder": None}), run["seed"])
    agent.load_weights(folder / "best.pt")
    if run["env"] != env_id:
        print(f"{folder} was trained on {run['env']}; the score is that on {env_id}")
    last = (folder / "evaluations.csv").read_text(encoding="utf-8").splitlines()[-1]
    return described(agent, int(float(last.split(",")[0])), run["env"])


def described(agent: ApeX, steps: int, trained_on: str) -> Saved:
    """The policy of an agent, with how it was made."""
    from agents.apex.network import to_arrays

    default, settings = ApeXConfig().to_dict(), agent.config.to_dict()
    about = {
        "env": agent.source.name,
        "trained_on": trained_on,
        "algorithm": "Ape-X",
        "env_steps": steps,
        "seed": agent.seed,
        "settings": {
            name: value for name, value in settings.items() if value != default[name] and name != "run_folder"
        },
    }
    return Saved(about, to_arrays(agent.policy), agent.observation_space, agent.action_space)


def publish(env_id: str, saved: Saved, folder: Path) -> dict[str, Any]:
    """Write a policy, let it play as it was written, and write it again with its score."""
    path = folder / f"{env_id}.npz"
    draft = path.with_name(f".{env_id}.part.npz")
    write(draft, saved)
    returns = play(env_id, draft)
    spec = gym.spec(env_id)
    score = {
        "episodes": EPISODES,
        "mean_return": round(float(np.mean(returns)), 2),
        "std_return": round(float(np.std(returns)), 2),
        "min_return": round(float(np.min(returns)), 2),
        "reward_threshold": spec.reward_threshold,
    }
    write(draft, saved._replace(about=saved.about | score))
    if draft.stat().st_size > MOST_BYTES:
        draft.unlink()
        raise ValueError(f"the policy of {env_id} takes more than {MOST_BYTES // 1024} KiB")
    draft.replace(path)
    return read(path).about | {"kib": path.stat().st_size / 1024}


def play(env_id: str, path: Path) -> list[float]:
    """Returns of the greedy episodes, one a row."""
    from stable_baselines3.common.evaluation import evaluate_policy

    from agents.sb3 import make_vec_env

    envs = make_vec_env(env_id, n_envs=EPISODES, seed=FIRST_SEED)
    policy: Any = load(env_id, path)
    returns, _ = evaluate_policy(policy, envs, EPISODES, return_episode_rewards=True, warn=False)
    envs.close()
    return returns


def line(env_id: str, about: dict[str, Any]) -> str:
    """What was reached."""
    score = f"{about['mean_return']:.1f} +- {about['std_return']:.1f} over {EPISODES} episodes"
    return f"{env_id}: {score} after {about['env_steps']:,} steps ({about['kib']:.0f} KiB)"


if __name__ == "__main__":
    sys.exit(run(main))
