"""Show an environment in a window, or write a GIF or an MP4 of it.

Any Gymnasium id will do. The policy is random, a scripted one that the world brings along, a trained agent, or a
function of your own: ``module:function`` is called with the environment and returns a policy, that is a function from
an observation to an action or an object with ``predict``, such as a model of stable-baselines3.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extras import extra

with extra("agents"):
    import gymnasium as gym
    import numpy as np
    from command_line import Parser, WrongArguments, find_own_modules, natural, pair, positive, render_modes, sentence
    from models import make_model
    from screens import MissingExtra, open_screen, wall
    from tqdm import tqdm

EXAMPLES = """examples:
  python scripts/demo.py --env MyEnv-v0
  python scripts/demo.py --env NumpyCartPole-v1 --policy random --episodes 5
  python scripts/demo.py --env GridWorld-v0 --env-kwargs layout=four_rooms slip=0.1 --output rooms.gif
  python scripts/demo.py --env NumpyCartPole-v1 --num-envs 12 --output wall.mp4
  python scripts/demo.py --env NumpyCartPole-v1 --model runs/cartpole/last.apex
  python scripts/demo.py --env GridWorld-v0 --model q_values.npy
  python scripts/demo.py --env CartPole-v1 --policy my_package.policies:make_policy
"""
HOLD = 0.6  # seconds for which the last picture of an episode stays


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parse = Parser(
        prog="demo.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parse.add_argument
    add("--env", default="MyEnv-v0", metavar="ID", help="a Gymnasium id, or module:id (default: %(default)s)")
    add("--env-kwargs", nargs="+", default=[], type=pair, metavar="NAME=VALUE", help="arguments of the environment")
    add("--policy", metavar="NAME", help="random, scripted, scripted:NAME, trained, or module:function "
        "(default: trained with --model, else scripted where the world has one, else random)")  # fmt: skip
    add("--model", type=Path, metavar="FILE", help="for the policy 'trained': a saved Ape-X agent, or a table of "
        "Q-values as .npy, which GridWorld shows on its map")  # fmt: skip
    add("--episodes", type=positive, default=1, metavar="N", help="episodes to show, a row (default: %(default)s)")
    add("--seed", type=natural, default=0, metavar="N", help="of the environment and of random actions (default: 0)")
    add("--num-envs", type=positive, default=1, metavar="N", help="rows of the vector env, side by side (default: 1)")
    add("--output", type=Path, metavar="FILE", help="a .gif or .mp4 file instead of a window")
    return parse


def main(argv: list[str] | None = None) -> int:
    """Shows the episodes; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    find_own_modules()
    try:
        arguments = parser().parse_args(argv)
        env = make_env(arguments)
        model = make_model(arguments, env)
        screen = open_screen(arguments.output, arguments.env, float(env.metadata.get("render_fps") or 30))
    except (WrongArguments, MissingExtra, ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        print(f"demo.py: {sentence(error)}", file=sys.stderr)
        return 2
    try:
        with screen:
            play(arguments, env, model, screen)
    except KeyboardInterrupt:
        print("demo.py: stopped" + (f"; what there is stands in {arguments.output}" if arguments.output else ""))
        return 130
    finally:
        env.close()
    if arguments.output is not None:
        print(f"{arguments.output} ({arguments.output.stat().st_size / 1024:.0f} KiB)")
    return 0


def make_env(arguments: argparse.Namespace) -> Any:
    """The environment, or with several rows the vector environment, that renders arrays."""
    kwargs = {**dict(arguments.env_kwargs), "render_mode": "rgb_array"}
    if "rgb_array" not in render_modes(arguments.env):
        raise WrongArguments(f"{arguments.env} renders no arrays, so there is nothing to show")
    if arguments.num_envs > 1:
        return gym.make_vec(arguments.env, num_envs=arguments.num_envs, **kwargs)
    return gym.make(arguments.env, **kwargs)


def play(arguments: argparse.Namespace, env: Any, model: Any, screen: Any) -> None:
    """Shows all episodes, with a progress bar where a file is written."""
    pictures = functools.partial(rows_of_episodes, screen.widest) if arguments.num_envs > 1 else episodes
    limit = (env.spec.max_episode_steps if env.spec else None) or 0
    silent = arguments.output is None
    with tqdm(total=arguments.episodes * limit or None, unit="step", leave=False, disable=silent) as bar:
        for frame, steps in pictures(env, model, arguments.episodes, arguments.seed):
            bar.update(steps)
            if not screen.show(frame):
                return


def episodes(env: gym.Env, model: Any, count: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Frames of some episodes, and how many steps each frame is on from the one before."""
    picture: Any = env.render
    if hasattr(model, "q_values") and hasattr(env.unwrapped, "draw_values"):
        picture = functools.partial(env.unwrapped.draw_values, model.q_values)
    for episode in range(count):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        yield picture(), 0
        steps, total, over = 0, 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(action)
            steps, total, over = steps + 1, total + float(reward), terminated or truncated
            frame = picture()
            yield frame, 1
        for _ in range(held(env)):
            yield frame, 0
        outcome = f", {info['outcome']}" if isinstance(info.get("outcome"), str) else ""
        tqdm.write(f"Episode {episode + 1} finished after {steps} timesteps, return {total:g}{outcome}")


def rows_of_episodes(widest: int, rows: Any, model: Any, count: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Frames of all rows side by side, until each has finished some episodes; those that are through play on."""
    observations, _ = rows.reset(seed=seed)
    finished, returns = np.zeros(rows.num_envs, int), np.zeros(rows.num_envs)
    yield wall(rows.render(), widest), 0
    while finished.min() < count:
        counting = finished < count
        actions, _ = model.predict(observations, deterministic=True)
        observations, rewards, terminated, truncated, _ = rows.step(actions)
        returns += rewards * counting
        finished += terminated | truncated
        picture = wall(rows.render(), widest)
        yield picture, 1
    for _ in range(held(rows)):
        yield picture, 0
    each = "1 episode" if count == 1 else f"{count} episodes"
    tqdm.write(f"{rows.num_envs} rows, {each} each: mean return {returns.mean() / count:g}")


def held(env: Any) -> int:
    """Pictures for which the last one of an episode stays."""
    return round(HOLD * float(env.metadata.get("render_fps") or 30))


if __name__ == "__main__":
    sys.exit(main())
