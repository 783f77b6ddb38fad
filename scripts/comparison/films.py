"""Short GIFs of trained policies, all of them filmed on the same case."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from PIL import Image

from agents.apex.masks import MASK
from comparison.algorithms import ALGORITHMS
from comparison.cells import TEST_SEED
from comparison.evaluation import Predict, masks_for
from comparison.results import Run

WIDTH = 256
MAX_FRAMES = 90
SECONDS = 6.0
"""A film lasts about as long whatever the episode's length: longer episodes lose frames."""
LAST_PICTURE = 1_000
"""Milliseconds for which the end is seen before the film begins anew."""


def film(run: Run) -> bytes:
    """A GIF of the run's best checkpoint playing the first test episode greedily.

    Raises:
        FileNotFoundError: where the checkpoint is not kept.
    """
    for package in run.cell.gym_packages:
        importlib.import_module(package)
    module = ALGORITHMS[run.cell.algo].load()
    if not (run.folder / module.BEST).exists():
        raise FileNotFoundError(f"{run.cell.name}/{module.BEST} is not here")
    return gif(frames(module.load_policy(run.cell, run.folder, module.BEST), run.cell.env_id))


def frames(predict: Predict, env_id: str) -> list[np.ndarray]:
    """The pictures of one greedy episode, one a step."""
    env = gym.make(env_id, render_mode="rgb_array")
    obs, info = env.reset(seed=TEST_SEED)
    pictures: list[Any] = [env.render()]
    ended = False
    while not ended:
        masks = masks_for(predict, {key: np.asarray(value)[None] for key, value in info.items() if key == MASK})
        action = predict(_batch_of_one(obs), **masks)[0]
        obs, _, terminated, truncated, info = env.step(action)
        pictures.append(env.render())
        ended = terminated or truncated
    env.close()
    return pictures


def _batch_of_one(obs):
    if isinstance(obs, dict):
        return {key: np.asarray(value)[None] for key, value in obs.items()}
    return np.asarray(obs)[None]


def gif(pictures: list[np.ndarray]) -> bytes:
    """A looping GIF, thinned to at most ``MAX_FRAMES`` pictures of ``WIDTH`` pixels."""
    every = -(-len(pictures) // MAX_FRAMES)
    kept = [Image.fromarray(picture) for picture in pictures[::every]]
    height = round(WIDTH * kept[0].height / kept[0].width)
    small = [picture.resize((WIDTH, height), Image.Resampling.LANCZOS) for picture in kept]
    palette = small[len(small) // 2].quantize(64)
    first, *rest = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in small)
    out = io.BytesIO()
    each = max(20, min(100, round(SECONDS * 1000 / len(kept))))
    durations = [each] * len(rest) + [LAST_PICTURE]
    first.save(out, "GIF", save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)
    return out.getvalue()


def write_film(run: Run, path: Path) -> Path:
    """Film the run unless the file is there already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(film(run))
    return path
