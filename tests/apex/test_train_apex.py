"""The training script, called as a function."""

import csv
import importlib.util
import json
import os
import signal
import sys
from pathlib import Path

import gymnasium as gym
import pytest

from agents.apex import ApeX
from agents.apex.signals import Interruption, last_interrupt
from agents.programs import train

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_apex.py"
FAST = [
    "--cluster",
    "inline",
    "--warmup-steps",
    "100",
    "--hidden-sizes",
    "16",
    "--batch-size",
    "16",
    "--samples-per-insert",
    "2",
    "--evaluation-interval",
    "200",
    "--evaluation-episodes",
    "2",
    "--no-progress-bar",
]


@pytest.fixture(scope="module")
def main():
    spec = importlib.util.spec_from_file_location("train_apex", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_apex"] = module
    spec.loader.exec_module(module)
    return module.main


def test_training_saves_and_says_where(main, tmp_path, capsys):
    folder, target = tmp_path / "run", tmp_path / "a.apex"
    arguments = ["--env", "CartPole-v1", "--total-timesteps", "400", "--run-folder", str(folder), "--save", str(target)]
    assert main([*arguments, *FAST]) == 0
    assert capsys.readouterr().out.startswith("Best greedy return ")
    agent = ApeX.load(target)
    assert agent.config.hidden_sizes == (16,)
    assert agent.num_timesteps >= 400


def test_resume_goes_on_with_curves_up_to_the_total(main, tmp_path, capsys):
    folder = tmp_path / "run"
    assert main(["--env", "CartPole-v1", "--total-timesteps", "400", "--run-folder", str(folder), *FAST]) == 0
    assert main(["--resume", str(folder), "--total-timesteps", "800", "--no-progress-bar"]) == 0
    with (folder / "evaluations.csv").open() as file:
        steps = [int(row["env_steps"]) for row in csv.DictReader(file)]
    assert steps == sorted(steps)
    assert steps[-1] >= 800
    assert ApeX.load(folder / "last.apex").num_timesteps == steps[-1]
    assert main(["--resume", str(folder), "--total-timesteps", "800"]) == 0
    assert "Nothing to do" in capsys.readouterr().out


def test_arguments_of_the_env_hold_are_recorded_and_come_back(main, tmp_path):
    folder = tmp_path / "a rün"
    kwargs = ["--env-kwargs", "sutton_barto_reward:true", "max_episode_steps=7"]
    start = ["--env", "CartPole-v1", *kwargs, "--total-timesteps", "400", "--run-folder", str(folder)]
    assert main([*start, *FAST]) == 0
    recorded = json.loads((folder / "config.json").read_text())
    assert recorded["env_kwargs"] == {"sutton_barto_reward": True, "max_episode_steps": 7}
    assert main(["--resume", str(folder), "--total-timesteps", "800", "--no-progress-bar"]) == 0
    assert json.loads((folder / "config.json").read_text())["env_kwargs"] == recorded["env_kwargs"]
    with (folder / "evaluations.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(
        float(row["max_return"]) == 0 and float(row["mean_length"]) == 7 for row in rows
    )  # no pole falls so soon
    assert len(rows) >= 4


def test_a_resumed_run_may_name_the_package_that_registers_its_env(main, tmp_path, monkeypatch):
    (tmp_path / "late_poles_of_a_user.py").write_text(
        "import gymnasium as gym\ngym.register('LatePole-v0', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    env = ["--env", "late_poles_of_a_user:LatePole-v0"]
    assert main([*env, "--total-timesteps", "400", "--run-folder", str(tmp_path / "run"), *FAST]) == 0
    del gym.registry["LatePole-v0"], sys.modules["late_poles_of_a_user"]
    resume = ["--resume", str(tmp_path / "run"), "--total-timesteps", "800", "--no-progress-bar"]
    try:
        assert main(resume) == 2
        assert main([*resume, *env]) == 0
    finally:
        gym.registry.pop("LatePole-v0", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "NoSuchEnv-v0"], "NoSuchEnv"),
        (["--env", "NumpyCartPole-v1", "--env-kwargs", "colour:3"], "has no argument 'colour'"),
        (["--env", "NumpyCartPole-v1", "--env-kwargs", "gravity:heavy"], "'heavy'"),
        (["--env", "NumpyCartPole-v1", "--env-kwargs", "gravity"], "--env-kwargs 'gravity' is not NAME:VALUE"),
        (["--env-kwargs"], "--env-kwargs wants at least one NAME:VALUE"),
        (["--resume", "x", "--env-kwargs", "gravity:3"], "a resumed run keeps its settings"),
        (["--resume", __file__], "Not a directory"),
        (["--env", "Pendulum-v1"], "needs Discrete actions"),
        (["--resume", "no/such/folder"], "no/such/folder"),
        (["--env", "CartPole-v1", "--total-timesteps", "10", *FAST], "more than the warm-up"),
        (["--resume", "x", "--gamma", "0.5"], "a resumed run keeps its settings"),
        (["--num-actors", "0"], "num_actors must be an integer from 1 to 10000, not 0"),
        (["--nonsense", "1"], "Unrecognized options: --nonsense"),
        (["--seed", "x"], "--seed"),
        (["--env"], "--env"),
    ],
)
def test_bad_input_gets_one_sentence(main, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert error.startswith("train_apex: ")
    assert len(error.splitlines()) == 1


def test_weights_to_start_from(main, tmp_path):
    start = ["--env", "CartPole-v1", "--total-timesteps", "400", *FAST]
    assert main([*start, "--run-folder", str(tmp_path / "a")]) == 0
    best = str(tmp_path / "a/best.pt")
    assert main([*start, "--run-folder", str(tmp_path / "b"), "--load-weights", best]) == 0


def test_help_lists_every_setting(main, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "--samples-per-insert" in capsys.readouterr().out


@pytest.mark.parametrize("steps", ["0", "-5"])
def test_less_than_one_step_is_refused(main, capsys, steps):
    assert main(["--env", "CartPole-v1", "--total-timesteps", steps]) == 2
    assert f"--total-timesteps must be at least 1, not {steps}" in capsys.readouterr().err


def test_a_place_where_nothing_can_be_saved_is_refused_before_the_training(main, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert main(["--env", "CartPole-v1", *FAST, "--total-timesteps", "400", "--save", "folder"]) == 2
    assert "--save folder is no file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_second_ctrl_c_does_not_break_into_the_last_words(tmp_path, monkeypatch, capsys):
    def learn(agent, *_, **__):
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            interruption.check()

    def print_interrupted(*words):
        os.kill(os.getpid(), signal.SIGINT)
        print(*words)

    monkeypatch.setattr("agents.apex.agent.ApeX.learn", learn)
    monkeypatch.setattr("agents.programs.train.print", print_interrupted, raising=False)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert train.main(["--env", "CartPole-v1", "--run-folder", str(tmp_path / "run")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().out.strip() == f"Stopped; go on with --resume {tmp_path / 'run'}"


def test_a_training_that_ends_by_itself_gives_ctrl_c_back():
    before = signal.getsignal(signal.SIGINT)
    with last_interrupt():
        pass
    with pytest.raises(ValueError, match="x"), last_interrupt():
        raise ValueError("x")
    assert signal.getsignal(signal.SIGINT) is before
