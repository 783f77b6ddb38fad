"""Makes ``worlds.gif``, the picture in the README: the package's worlds side by side, each under a policy.

python docs/images/worlds.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

import gym_custom  # noqa: F401  registers the ids
from agents import pretrained

HEIGHT = 230
HELD = 5  # pictures
trained = cache(pretrained.load)


def balance(env: Any, observation: np.ndarray) -> int:
    """Pushes under the falling pole, and gently back to the middle."""
    x, x_dot, theta, theta_dot = observation
    return int(theta + 0.35 * theta_dot + 0.03 * x + 0.06 * x_dot > 0)


def shortest_path(env: Any, observation: np.ndarray) -> int:
    """Walks down the distances to the goal, which value iteration on the map finds."""
    p, r = env.unwrapped.transition_model()  # (S, A, S) and (S, A); a goal leads to itself and earns nothing
    q = np.zeros(r.shape)
    for _ in range(100):
        q = r + 0.97 * p @ q.max(axis=1)
    row, column = observation
    return int(q[row * env.observation_space.nvec[1] + column].argmax())


def navigate(env: Any, observation: np.ndarray) -> int:
    """Does what Ape-X has learned."""
    return trained("MyEnv-v0").predict(observation)[0]


SCENES: list[tuple[str, dict[str, Any], int, int, Callable[[Any, np.ndarray], int]]] = [
    ("NumpyCartPole-v1", {}, 3, 4, balance),  # id, arguments, seed, steps a frame, policy
    ("GridWorld-v0", {"layout": "four_rooms", "random_start": True}, 8, 1, shortest_path),
    ("MyEnv-v0", {}, 71, 1, navigate),
]


def frames(env_id: str, kwargs: dict[str, Any], seed: int, skip: int, policy: Any, count: int) -> Iterator[Image.Image]:
    """So many pictures of one world; episodes follow each other, and the last picture of each is held for a moment."""
    env = gym.make(env_id, render_mode="rgb_array", **kwargs)
    observation, _ = env.reset(seed=seed)
    held, over = 0, False
    for _ in range(count):
        picture = Image.fromarray(env.render())
        yield picture.resize((round(picture.width * HEIGHT / picture.height), HEIGHT), Image.Resampling.LANCZOS)
        if over and held == HELD:
            observation, _ = env.reset()
            held, over = 0, False
        for _ in range(0 if over else skip):
            observation, _, terminated, truncated, _ = env.step(policy(env, observation))
            if over := terminated or truncated:
                break
        held += over


def main(argv: list[str] | None = None) -> int:
    """Writes the GIF."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("worlds.gif"))
    parser.add_argument("--frames", type=int, default=60)
    arguments = parser.parse_args(argv)
    films = [frames(*scene, count=arguments.frames) for scene in SCENES]
    pictures = [_side_by_side(pictures) for pictures in zip(*films, strict=True)]
    samples = Image.new("RGB", (pictures[0].width, 6 * HEIGHT))
    for at in range(6):
        samples.paste(pictures[at * (len(pictures) - 1) // 5], (0, at * HEIGHT))
    palette = samples.quantize(64, method=Image.Quantize.MAXCOVERAGE, kmeans=3)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    first.save(arguments.output, save_all=True, append_images=others, duration=100, loop=0, optimize=True)
    return 0


def _side_by_side(pictures: tuple[Image.Image, ...]) -> Image.Image:
    wall = Image.new("RGB", (sum(picture.width for picture in pictures) + 8 * (len(pictures) - 1), HEIGHT), "white")
    left = 0
    for picture in pictures:
        wall.paste(picture, (left, 0))
        left += picture.width + 8
    return wall


if __name__ == "__main__":
    raise SystemExit(main())
