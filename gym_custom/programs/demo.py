"""Show an environment in a window, or write a GIF or an MP4 of it.

Any Gymnasium id will do. The policy is random, a scripted one that the world brings along, a trained one, or your own:
``module:function`` is called with the environment (and with the file behind --model) and returns a policy, that is a
function from an observation to an action or an object with ``predict``, such as a model of stable-baselines3. Where it
tells what it thinks of its actions (``q_values`` or ``action_values``), the picture shows it.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from gym_custom.programs.arguments import WRONG, Parser, add_env, find_own_modules, natural, positive, require_pictures
from gym_custom.programs.console import progress_bar
from gym_custom.programs.policies import TRAINED, make_policy
from gym_custom.programs.screens import open_screen, wall
from gym_custom.programs.values import picture_with_values, rows_with_values

EXAMPLES = """examples:
  %(prog)s --env MyEnv-v0
  %(prog)s --env NumpyCartPole-v1 --policy random --episodes 5
  %(prog)s --env NumpyCartPole-v1 --policy trained --num-envs 12 --output wall.mp4
  %(prog)s --env GridWorld-v0 --env-kwargs layout:four_rooms slip:0.1 --output rooms.gif
  %(prog)s --env NumpyCartPole-v1 --model runs/cartpole/last.apex
  %(prog)s --env GridWorld-v0 --model q_values.npy
  %(prog)s --env CartPole-v1 --policy my_package.policies:make_policy
"""
HOLD = 0.6  # seconds for which the last picture of an episode stays


def parser(prog: str) -> Parser:
    """The command line."""
    parse = Parser(prog=prog, description=__doc__, epilog=EXAMPLES)
    add_env(parse)
    add = parse.add_argument
    add("--policy", metavar="NAME", help="random, scripted, scripted:NAME, trained (the same as "
        f"{TRAINED}), or module:function (default: trained with --model, else scripted where the world has one, "
        "else random)")  # fmt: skip
    add("--model", type=Path, metavar="FILE", help="of the trained policy: what ApeX.save wrote, a table of Q-values "
        "as .npy, or what your own function reads")  # fmt: skip
    add("--episodes", type=positive, default=1, metavar="N", help="episodes to show, a row (default: %(default)s)")
    add("--seed", type=natural, default=0, metavar="N", help="of the environment and of random actions (default: 0)")
    add("--num-envs", type=positive, default=1, metavar="N", help="rows of the vector env, side by side (default: 1)")
    add("--no-values", dest="values", action="store_false", help="leave out what the policy thinks of its actions")
    add("--output", type=Path, metavar="FILE", help="a .gif or .mp4 file instead of a window")
    return parse


def main(argv: list[str] | None = None, prog: str = "python -m gym_custom demo") -> int:
    """Shows the episodes; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    find_own_modules()
    parse = parser(prog)
    try:
        arguments = parse.parse_args(argv)
        env = make_env(arguments)
        policy = make_policy(arguments, env)
        screen = open_screen(arguments.output, arguments.env, float(env.metadata.get("render_fps") or 30))
    except WRONG as error:
        return parse.refuse(error)
    try:
        with screen:
            play(arguments, env, policy, screen)
    except KeyboardInterrupt:
        print("demo: stopped" + (f"; what there is stands in {arguments.output}" if arguments.output else ""))
        return 130
    finally:
        env.close()
    if arguments.output is not None:
        print(f"{arguments.output} ({arguments.output.stat().st_size / 1024:.0f} KiB)")
    return 0


def make_env(arguments: argparse.Namespace) -> Any:
    """The environment, or with several rows the vector environment, that renders arrays."""
    require_pictures(arguments.env)
    kwargs = {**dict(arguments.env_kwargs), "render_mode": "rgb_array"}
    if arguments.num_envs > 1:
        return gym.make_vec(arguments.env, num_envs=arguments.num_envs, **kwargs)
    return gym.make(arguments.env, **kwargs)


def play(arguments: argparse.Namespace, env: Any, policy: Any, screen: Any) -> None:
    """Shows all episodes, with a progress bar where a file is written."""
    pictures = functools.partial(rows_of_episodes, screen.widest) if arguments.num_envs > 1 else episodes
    limit = (env.spec.max_episode_steps if env.spec else None) or 0
    with progress_bar(arguments.episodes * limit or None, "step", arguments.output is not None) as bar:
        for frame, steps, said in pictures(env, policy, arguments):
            bar.update(steps)
            if said:
                bar.write(said)
            if not screen.show(frame):
                return


Shown = tuple[np.ndarray, int, str]
"""A frame, the steps since the one before, and a line to print."""


def episodes(env: Any, policy: Any, arguments: argparse.Namespace) -> Iterator[Shown]:
    """Frames of some episodes."""
    picture = picture_with_values(env, policy) if arguments.values else lambda observation: env.render()
    for episode in range(arguments.episodes):
        observation, _ = env.reset(seed=arguments.seed if episode == 0 else None)
        yield picture(observation), 0, ""
        steps, total, over = 0, 0.0, False
        while not over:
            action, _ = policy.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(action)
            steps, total, over = steps + 1, total + float(reward), terminated or truncated
            frame = picture(observation)
            yield frame, 1, ""
        for _ in range(held(env) - 1):
            yield frame, 0, ""
        outcome = f", {info['outcome']}" if isinstance(info.get("outcome"), str) else ""
        yield frame, 0, f"Episode {episode + 1} finished after {steps} timesteps, return {total:g}{outcome}"


def rows_of_episodes(widest: int, rows: Any, policy: Any, arguments: argparse.Namespace) -> Iterator[Shown]:
    """Frames of all rows side by side, until each has finished some episodes; those that are through play on."""
    pictures = rows_with_values(rows, policy) if arguments.values else lambda observations: rows.render()
    observations, _ = rows.reset(seed=arguments.seed)
    finished, returns = np.zeros(rows.num_envs, int), np.zeros(rows.num_envs)
    yield wall(pictures(observations), widest), 0, ""
    while finished.min() < arguments.episodes:
        counting = finished < arguments.episodes
        actions, _ = policy.predict(observations, deterministic=True)
        observations, rewards, terminated, truncated, _ = rows.step(actions)
        returns += rewards * counting
        finished += terminated | truncated
        frame = wall(pictures(observations), widest)
        yield frame, 1, ""
    for _ in range(held(rows) - 1):
        yield frame, 0, ""
    each = "1 episode" if arguments.episodes == 1 else f"{arguments.episodes} episodes"
    yield frame, 0, f"{rows.num_envs} rows, {each} each: mean return {returns.mean() / arguments.episodes:g}"


def held(env: Any) -> int:
    """Pictures for which the last one of an episode stays."""
    return max(1, round(HOLD * float(env.metadata.get("render_fps") or 30)))
