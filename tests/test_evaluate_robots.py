"""The table of MyEnv's policies: its arithmetic by hand, its episodes against the single env."""

from __future__ import annotations

import copy
import csv
import importlib
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import evaluate_robots
from evaluate_robots import Episodes, play, player, summary

from gym_custom.my_env import CASE_SEEDS, SELECTION_SEEDS
from gym_custom.my_env.policies import ScriptedPolicy


def test_a_row_of_the_table_by_hand():
    episodes = Episodes(
        returns=np.array([112.0, 110.0, -40.0, -20.0]),
        outcome=np.array(["success", "success", "pedestrian", "running"], object),
        nav_time=np.array([8.0, 10.0, 3.0, 40.0]),
        spl=np.array([1.0, 0.8, 0.0, 0.0]),
        discomfort_ratio=np.array([0.0, 0.1, 0.3, 0.0]),
        hit_while_parked=np.array([False, False, True, False]),
    )
    row = summary(episodes)
    assert row["return"] == 40.5
    assert row["+-"] == pytest.approx(np.sqrt((71.5**2 + 69.5**2 + 80.5**2 + 60.5**2) / 3) / 2)
    assert (row["success"], row["pedestrian"], row["timeout"], row["while parked"]) == (0.5, 0.25, 0.25, 0.25)
    assert (row["obstacle"], row["wall"]) == (0.0, 0.0)
    assert (row["time"], row["SPL"], row["discomfort"]) == (9.0, pytest.approx(0.45), pytest.approx(0.1))


@pytest.mark.parametrize("env_id", ["MyEnv-v0", "MyEnvPartial-v0"])
def test_episodes_are_those_of_the_single_env(env_id):
    episodes = play(env_id, player("gap_follower"), CASE_SEEDS[:4])
    env = gym.make(env_id)
    for k in range(4):
        observation, info = env.reset(seed=CASE_SEEDS[k])
        policy, total, over = ScriptedPolicy("gap_follower", env), 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(policy.predict(observation)[0])
            total, over = total + reward, terminated or truncated
        found = {name: values[k] for name, values in episodes._asdict().items()}
        assert found.pop("returns") == pytest.approx(total)
        assert found == {name: info[name] for name in found}


def test_the_command_prints_the_table_and_writes_all_digits(tmp_path, capsys):
    assert evaluate_robots.main(["--env", "MyEnv-v0", "--policies", "parked", "--episodes", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("| MyEnv-v0 | parked | -20.0 |  | 0.0 % |")
    arguments = ["--env", "MyEnv-v0", "--policies", "parked", "still=parked", "--episodes", "3"]
    assert evaluate_robots.main([*arguments, "--output", str(tmp_path / "new" / "table.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| id | policy | return |")
    assert lines[2].split("|")[3:] == lines[3].split("|")[3:]
    with (tmp_path / "new" / "table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["parked", "still"]
    assert -30 < float(rows[0]["return"]) < -19


def test_the_heat_map_counts_successes(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate_robots, "PEDESTRIANS", (0, 2))
    monkeypatch.setattr(evaluate_robots, "NOTICE", (0.0, 1.0))
    who = player("gap_follower")
    values = evaluate_robots.success_map("MyEnv-v0", who, CASE_SEEDS[:3])
    assert values.shape == (2, 2)
    assert values[0, 0] == values[1, 0]  # nobody there: whether they notice makes no difference
    assert set(np.unique(values * 3)) <= {0.0, 1.0, 2.0, 3.0}
    assert values[0, 0] > 0
    evaluate_robots.draw_maps({"a": values, "b": values}, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5_000


def test_trained_policies_come_from_run_folders_and_files(tmp_path):
    apex = pytest.importorskip("agents.apex", reason="Ape-X needs the extra [agents]")
    config = apex.ApeXConfig(
        cluster="inline", num_actors=1, envs_per_actor=2, warmup_steps=64, memory_size=200, evaluation_episodes=1,
        evaluation_interval=200, samples_per_insert=1.0, run_folder=str(tmp_path / "run"),
    )  # fmt: skip
    spec = copy.deepcopy(gym.spec("MyEnv-v0"))
    spec.kwargs["observation"] = "state"
    agent = apex.ApeX(spec, config, seed=0)
    agent.learn(200)
    agent.save(tmp_path / "agent.apex")
    texts = [f"{tmp_path / name}@state" for name in ("run", "agent.apex")]
    returns = [play("MyEnv-v0", player(text), CASE_SEEDS[:2]).returns for text in texts]
    assert returns[0].tolist() == returns[1].tolist()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--policies", "dance"], "no policy and no file 'dance'"),
        (["--env", "MyEnv-v1"], "MyEnv-v0"),
        (["--episodes", "0"], "positive integer"),
        (["--seeds", "mine"], "invalid choice"),
    ],
)
def test_bad_requests_are_answered_in_one_sentence(arguments, sentence, capsys):
    assert evaluate_robots.main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_observations_are_compared_on_the_same_cases_and_runs_are_kept(tmp_path, monkeypatch, capsys):
    pytest.importorskip("agents.apex", reason="Ape-X needs the extra [agents]")
    import compare_observations

    tiny = compare_observations.ApeXConfig(
        num_actors=1, envs_per_actor=2, warmup_steps=64, memory_size=200, evaluation_episodes=1, evaluation_interval=200
    )
    monkeypatch.setattr(compare_observations.ApeXConfig, "preset", lambda env_id: tiny)
    arguments = ["--observations", "partial", "state", "--total-timesteps", "200", "--cluster", "inline"]
    arguments += ["--episodes", "2", "--output", str(tmp_path)]
    tables = []
    for _ in range(2):
        assert compare_observations.main(arguments) == 0
        tables.append(capsys.readouterr().out)
        monkeypatch.setattr(compare_observations, "train", None)  # the second time nothing is trained
    assert tables[0] == tables[1]
    assert [line.split("|")[1].strip() for line in tables[0].splitlines()[2:]] == ["partial", "state"]
    assert (tmp_path / "observations.csv").exists()
    assert compare_observations.main(["--observations", "sonar"]) == 2


@pytest.mark.slow
def test_the_policy_that_comes_along_solves_the_cases():
    """And a policy of chance does not."""
    returns = [play("MyEnv-v0", player(name), CASE_SEEDS).returns.mean() for name in ("pretrained", "random")]
    assert returns[0] > 100 > 0 > returns[1]


def test_training_chooses_its_weights_on_the_selection_seeds():
    envs = pytest.importorskip("agents.apex.envs", reason="Ape-X needs the extra [agents]")
    episodes = importlib.import_module("agents.apex").ApeXConfig.preset("MyEnv-v0").evaluation_episodes
    assert tuple(range(envs.EVALUATION_SEED, envs.EVALUATION_SEED + episodes)) == SELECTION_SEEDS
    assert min(CASE_SEEDS + SELECTION_SEEDS) >= envs.TRAINING_SEEDS, "no actor starts there"
