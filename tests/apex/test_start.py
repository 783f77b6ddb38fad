"""What a training loads before it begins: an actor needs no torch, and nobody needs torch's compiler."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
ENV = """
import os, sys
import gymnasium as gym
import numpy as np

class Telling(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (1,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        heavy = [name for name in ("torch", "tyro", "tensorboard", "jax", "pygame") if name in sys.modules]
        with open(f"loaded.{os.getpid()}", "w") as file:
            file.write(" ".join(heavy))
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, True, False, {}

gym.register("Telling-v0", "telling:Telling")
"""
TRAINING = """
import os, sys
from agents.apex import ApeX, ApeXConfig

if __name__ == "__main__":
    ApeX("telling:Telling-v0", ApeXConfig(run_folder="run", warmup_steps=64)).learn(500)
    print(os.getpid(), [name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""
SCRIPT = [SCRIPTS / "train_apex.py", "--env", "telling:Telling-v0", "--total-timesteps", "1100", "--no-progress-bar"]


def loaded(folder, command):
    """What each process of a training had loaded when an env was reset, by process, and what was printed."""
    (folder / "telling.py").write_text(ENV)
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return {int(file.suffix[1:]): file.read_text() for file in folder.glob("loaded.*")}, done.stdout


@pytest.mark.serial
def test_actors_load_no_torch_and_the_learner_no_compiler(tmp_path):
    (tmp_path / "training.py").write_text(TRAINING)
    processes, output = loaded(tmp_path, ["training.py"])
    learner, _, compilers = output.partition(" ")
    assert compilers.strip() == "[]"
    assert "torch" in processes.pop(int(learner))
    assert set(processes.values()) == {""}


@pytest.mark.serial
@pytest.mark.slow
def test_the_scripts_actors_load_no_torch_either(tmp_path):
    processes, _ = loaded(tmp_path, SCRIPT)
    assert list(processes.values()).count("") == len(processes) - 1 == 2
