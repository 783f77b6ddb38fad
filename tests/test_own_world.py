"""The page on own worlds: all of its code runs, prints what it says it prints, and stays short."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from markdown_blocks import ROOT, blocks, run_page

PAGE = ROOT / "docs" / "own_world.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, as a reader would; ids and modules of the page are gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(gym.registry)
    yield tmp_path
    for name in set(gym.registry) - before:
        del gym.registry[name]
    for name in ("hopper", "thermostat"):
        sys.modules.pop(name, None)


def test_the_page_runs_from_top_to_bottom(folder):
    names = run_page(PAGE, folder)
    assert names["agent"].num_timesteps >= 1_000
    assert (folder / "hopper.py").exists()


def test_the_world_fits_in_a_hundred_lines():
    (world,) = [block.text for block in blocks(PAGE) if block.text.startswith("# hopper.py")]
    assert len(world.splitlines()) < 100


def pilot(observation, scale):
    """Flies towards the pad with a speed that falls with the distance, and brakes late."""
    x, z, vx, vz = observation * scale
    wish = np.clip(-0.25 * x, -2.0, 2.0)
    if vz < -0.6 - 0.16 * z:
        return 1
    return 3 if vx < wish - 0.3 else 2 if vx > wish + 0.3 else 0


def test_the_hopper_can_be_landed_and_its_threshold_means_that(folder):
    (world,) = [block.text for block in blocks(PAGE) if block.text.startswith("# hopper.py")]
    (folder / "hopper.py").write_text(world)
    import hopper

    env = gym.make("LunarHopper-v0")
    returns, landed = [], []
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        returns.append(0.0)
        ended = False
        while not ended:
            observation, reward, te, tr, info = env.step(pilot(observation, np.array(hopper.SCALE)))
            returns[-1] += reward
            ended = te or tr
        landed.append(info["is_success"])
    assert all(landed)
    assert np.mean(returns) > gym.spec("LunarHopper-v0").reward_threshold


@pytest.mark.serial
@pytest.mark.parametrize("env_id", ["thermostat:Thermostat-v0", "hopper:LunarHopper-v0"])
def test_the_demo_shows_both(folder, env_id):
    for block in blocks(PAGE):
        if name := re.match(r"# (\w+\.py)\n", block.text):
            (folder / name[1]).write_text(block.text)
    demo = [sys.executable, str(ROOT / "scripts" / "demo.py"), "--env", env_id, "--policy", "random"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    result = subprocess.run(
        [*demo, "--output", "film.gif"], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert (folder / "film.gif").read_bytes()[:4] == b"GIF8"
