"""Show an environment in a window, or write a GIF or an MP4 of it.

Any Gymnasium id will do. The policy is random, a scripted one that the world brings along, a trained agent, or a
function of your own: ``module:function`` is called with the environment and returns a policy, that is a function from
an observation to an action or an object with ``predict``, such as a model of stable-baselines3.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import iterate
from screens import MissingExtra, open_screen, wall
from tqdm import tqdm

import gym_custom

EXAMPLES = """examples:
  python scripts/demo.py --env MyEnv-v0
  python scripts/demo.py --env NumpyCartPole-v1 --policy random --episodes 5
  python scripts/demo.py --env GridWorld-v0 --env-kwargs layout=four_rooms slip=0.1 --output rooms.gif
  python scripts/demo.py --env NumpyCartPole-v1 --num-envs 12 --output wall.mp4
  python scripts/demo.py --env NumpyCartPole-v1 --model runs/cartpole/run.apex
  python scripts/demo.py --env CartPole-v1 --policy my_package.policies:make_policy
"""
HOLD = 0.6  # seconds for which the last picture of an episode stays


class WrongArguments(Exception):
    """One sentence about what the user should have written."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> Any:
        """Hands the sentence to `main`."""
        raise WrongArguments(message)


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
    add("--model", type=Path, metavar="FILE", help="a saved Ape-X agent for the policy 'trained'")
    add("--episodes", type=_positive, default=1, metavar="N", help="episodes to show, a row (default: %(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of the environment and of random actions (default: 0)")
    add("--num-envs", type=_positive, default=1, metavar="N", help="rows of the vector env, side by side (default: 1)")
    add("--output", type=Path, metavar="FILE", help="a .gif or .mp4 file instead of a window")
    return parse


def main(argv: list[str] | None = None) -> int:
    """Shows the episodes; 0 on success, 2 for wrong arguments, 130 after Ctrl+C."""
    try:
        arguments = parser().parse_args(argv)
        env = make_env(arguments)
        model = make_model(arguments, env)
        screen = open_screen(arguments.output, arguments.env, float(env.metadata.get("render_fps") or 30))
    except (WrongArguments, MissingExtra, ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        print(f"demo.py: {' '.join(str(error).split())}", file=sys.stderr)
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


def render_modes(env_id: str) -> list[str]:
    """The render modes of an environment's class, before one is made."""
    package, _, env_id = env_id.rpartition(":")
    if package:  # unlike gym.make, gym.spec does not import what stands before the colon
        importlib.import_module(package)
    entry_point = gym.spec(env_id).entry_point
    if isinstance(entry_point, str):
        module, _, name = entry_point.partition(":")
        entry_point = getattr(importlib.import_module(module), name)
    return getattr(entry_point, "metadata", {}).get("render_modes", ["rgb_array"])


# Policies: objects with stable-baselines3's predict


class Plain:
    """A function from an observation to an action as a model."""

    def __init__(self, function: Any, num_envs: int, space: Any):
        self._function, self._num_envs, self._space = function, num_envs, space

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, or one for each row."""
        if self._num_envs == 1:
            return self._function(observation), None
        return np.array([self._function(row) for row in iterate(self._space, observation)]), None


class RandomModel:
    """Draws actions from a space."""

    def __init__(self, space: gym.Space, seed: int):
        self._space = space
        space.seed(seed)

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, or one for each row."""
        return self._space.sample(), None


def make_model(arguments: argparse.Namespace, env: Any) -> Any:
    """The policy that the arguments name, as an object with ``predict``."""
    name, has_script = arguments.policy, _policies_of(env) is not None
    if name is None:
        name = "trained" if arguments.model else "scripted" if has_script else "random"
    if arguments.model and name != "trained":
        raise WrongArguments(f"--model is for the policy 'trained', not for {name!r}")
    if name == "random":
        return RandomModel(env.action_space, arguments.seed)
    if name.partition(":")[0] == "scripted":
        return scripted(env, name.partition(":")[2], arguments.env)
    if name == "trained":
        return trained(arguments.model, env, arguments.env)
    if ":" in name:
        return imported(name, env, arguments.num_envs)
    raise WrongArguments(f"the policy must be random, scripted, trained or module:function, not {name!r}")


def scripted(env: Any, name: str, env_id: str) -> Any:
    """One of the policies that a world brings along, without a name its best: the last."""
    policies = _policies_of(env)
    if policies is None:
        raise WrongArguments(f"{env_id} brings no scripted policy along; try --policy random")
    return policies.ScriptedPolicy(name or list(policies.POLICIES)[-1], env)


def _policies_of(env: Any) -> Any:
    """The module ``policies`` beside the environment's class, None where there is none."""
    package = type(env.unwrapped).__module__
    ours = package.partition(".")[0] == gym_custom.__name__ and hasattr(sys.modules[package], "__path__")
    if not ours or importlib.util.find_spec(f"{package}.policies") is None:
        return None
    return importlib.import_module(f"{package}.policies")


def trained(path: Path | None, env: Any, env_id: str) -> Any:
    """An Ape-X agent from its file."""
    if path is None:
        raise WrongArguments("--policy trained needs --model FILE, a file that ApeX.save wrote")
    from agents.apex import ApeX

    agent = ApeX.load(path)
    space = getattr(env, "single_observation_space", env.observation_space)
    if agent.observation_space != space:
        raise WrongArguments(f"{path} was trained on observations {agent.observation_space}; {env_id} has {space}")
    return agent


def imported(name: str, env: Any, num_envs: int) -> Any:
    """What ``module:function`` makes of the environment."""
    module, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)(env)
    except (ImportError, AttributeError) as error:
        raise WrongArguments(f"the policy {name!r} cannot be imported: {error}") from error
    if hasattr(made, "predict"):
        return made
    if not callable(made):
        raise WrongArguments(f"{name} must return a function or an object with predict, not {made!r}")
    return Plain(made, num_envs, env.observation_space)


# Playing


def play(arguments: argparse.Namespace, env: Any, model: Any, screen: Any) -> None:
    """Shows all episodes, with a progress bar where a file is written."""
    pictures = rows_of_episodes if arguments.num_envs > 1 else episodes
    limit = (env.spec.max_episode_steps if env.spec else None) or 0
    silent = arguments.output is None
    with tqdm(total=arguments.episodes * limit or None, unit="step", delay=2, leave=False, disable=silent) as bar:
        for frame, steps in pictures(env, model, arguments.episodes, arguments.seed):
            bar.update(steps)
            if not screen.show(frame):
                return


def episodes(env: gym.Env, model: Any, count: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Frames of some episodes, and how many steps each frame is on from the one before."""
    for episode in range(count):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        yield env.render(), 0  # type: ignore[misc]
        steps, total, over = 0, 0.0, False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(action)
            steps, total, over = steps + 1, total + float(reward), terminated or truncated
            frame: Any = env.render()
            yield frame, 1
        for _ in range(round(HOLD * float(env.metadata.get("render_fps") or 30))):
            yield frame, 0
        outcome = f", {info['outcome']}" if isinstance(info.get("outcome"), str) else ""
        tqdm.write(f"Episode {episode + 1} finished after {steps} timesteps, return {total:g}{outcome}")


def rows_of_episodes(rows: Any, model: Any, count: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """Frames of all rows side by side, until each has finished some episodes; those that are through play on."""
    observations, _ = rows.reset(seed=seed)
    finished, returns = np.zeros(rows.num_envs, int), np.zeros(rows.num_envs)
    yield wall(rows.render()), 0
    while finished.min() < count:
        counting = finished < count
        actions, _ = model.predict(observations, deterministic=True)
        observations, rewards, terminated, truncated, _ = rows.step(actions)
        returns += rewards * counting
        finished += terminated | truncated
        yield wall(rows.render()), 1
    tqdm.write(f"{rows.num_envs} rows, {count} episodes each: mean return {returns.mean() / count:g}")


def pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read as JSON where it is some."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
