"""Ape-X as its users see it, with all actors in one thread."""

import csv
import json
import re
import threading

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from agents.apex import ApeX, ApeXConfig
from agents.apex.evaluator import Evaluator
from agents.replay import HindsightMemory, PrioritizedMemory, UniformMemory

from .helpers import agent, parameters
from .probes import BothMatter, ConstantReward, Counting, Failing, Quick


def table(of, name):
    with (of.run_folder / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_same_seed_gives_the_same_run_to_the_last_bit_and_another_does_not(tmp_path):
    first, again, other = (agent(tmp_path / str(i), seed=s).learn(700) for i, s in enumerate((7, 7, 8)))
    np.testing.assert_array_equal(parameters(first), parameters(again))
    assert table(first, "episodes") == table(again, "episodes")
    assert not np.array_equal(parameters(first), parameters(other))


def test_global_generators_are_left_alone(tmp_path):
    np.random.seed(3)
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    agent(tmp_path).learn(300)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)
    assert torch.equal(torch.random.get_rng_state(), torch_before)


def test_torch_threads_are_given_back(tmp_path):
    torch.set_num_threads(2)
    try:
        agent(tmp_path).learn(200)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_learn_gives_the_agent_and_counts_the_steps(tmp_path):
    ape = agent(tmp_path)
    assert ape.learn(500) is ape
    assert 500 <= ape.num_timesteps < 500 + 40
    trained = ape.learner.updates * ape.config.batch_size
    assert trained / (ape.num_timesteps - ape.config.warmup_steps) == pytest.approx(4.0, rel=0.05)


def test_a_warmup_longer_than_the_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"total_timesteps must be more than the warm-up's 100 steps, not 100"):
        agent(tmp_path).learn(100)


def test_windows_longer_than_the_warmup_are_waited_for(tmp_path):
    ape = agent(tmp_path, Counting, n_step=100, evaluation_interval=10_000, evaluation_episodes=1).learn(1_500)
    assert len(ape.memory) == ape.num_timesteps - 8 * 99
    assert ape.learner.updates * 32 / (ape.num_timesteps - 100) == pytest.approx(4.0, rel=0.05)


def test_sb3_judges_the_trained_agent(tmp_path):
    ape = agent(tmp_path, BothMatter, n_step=1, learning_rate=5e-3, samples_per_insert=16.0).learn(1_000)
    mean, _ = evaluate_policy(ape, Monitor(BothMatter()), n_eval_episodes=20)
    assert mean == 1.0


def test_predict_takes_one_observation_or_many(tmp_path):
    ape = agent(tmp_path)
    one, state = ape.predict(np.zeros(4, np.float32))
    many, _ = ape.predict(np.zeros((5, 4), np.float32))
    assert (np.shape(one), np.shape(many), state) == ((), (5,), None)
    assert ape.action_space.contains(one)
    with pytest.raises(ValueError, match=r"shape \(4,\), or \(n, ...\) of it, not \(3,\)"):
        ape.predict(np.zeros(3))


def test_predict_explores_on_demand(tmp_path):
    ape = agent(tmp_path, max_epsilon=1.0)
    obs = np.zeros((1000, 4), np.float32)
    assert len(set(ape.predict(obs)[0])) == 1
    assert 400 < ape.predict(obs, deterministic=False)[0].sum() < 600


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Discrete(3),
        gym.spaces.MultiDiscrete([3, 4]),
        gym.spaces.Dict(a=gym.spaces.Box(0, 1, (2,)), b=gym.spaces.Discrete(2)),
        gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Box(0, 1, (2,))]),
    ],
    ids=str,
)
def test_observations_of_all_kinds(tmp_path, space):
    class Env(gym.Env):
        observation_space, action_space = space, gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            space.seed(seed)
            return space.sample(), {}

        def step(self, action):
            return space.sample(), 1.0, bool(self.np_random.random() < 0.2), False, {}

    ape = agent(tmp_path, Env).learn(300)
    assert ape.predict(space.sample())[0] in (0, 1)


def test_other_memories_plug_in(tmp_path):
    ape = agent(tmp_path)
    ape.memory = UniformMemory(ape.observation_space, ape.action_space, capacity=1_000, seed=1)
    ape.learn(400)
    assert len(ape.memory) > 300
    assert ape.learner.updates > 20


class Reach(gym.Env):
    """A walk on a line; the goal is one of its places."""

    observation_space = gym.spaces.Dict(
        {name: gym.spaces.Box(-9, 9, (1,), np.float32) for name in ("observation", "achieved_goal", "desired_goal")}
    )
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal, self.time = 0.0, float(self.np_random.integers(-4, 5)), 0
        return self.observe(), {}

    def observe(self):
        place, goal = np.float32([self.place]), np.float32([self.goal])
        return {"observation": place, "achieved_goal": place.copy(), "desired_goal": goal}

    def step(self, action):
        self.place, self.time = self.place + 2 * int(action) - 1, self.time + 1
        there = self.place == self.goal
        return self.observe(), float(there) - 1.0, there, self.time >= 8, {}


@pytest.mark.parametrize("n_step", [1, 3])
def test_hindsight_plugs_in_and_survives_a_save(tmp_path, n_step):
    def hindsight(ape):
        memory = PrioritizedMemory(ape.observation_space, ape.action_space, capacity=3_000, seed=1)
        functions = {
            "reward_function": lambda achieved, goal, info: (achieved == goal)[:, 0] - 1.0,
            "termination_function": lambda achieved, goal: (achieved == goal)[:, 0],
        }
        return HindsightMemory(memory, achieved="achieved_goal", desired="desired_goal", discount=0.9, **functions)

    ape = agent(tmp_path, Reach, n_step=n_step, gamma=0.9, samples_per_insert=16.0, learning_rate=3e-3)
    ape.memory = hindsight(ape)
    ape.learn(2_000)
    mean, _ = evaluate_policy(ape, Monitor(Reach()), n_eval_episodes=30)
    assert mean > -4.5  # -7.1 at random; every goal by the shortest way gives -1.4
    ape.save(tmp_path / "a.apex")
    back = ApeX.load(tmp_path / "a.apex", env=Reach, memory=hindsight(ape))
    assert len(back.memory) == len(ape.memory)
    with pytest.raises(ValueError, match=r"the agent's memory was a HindsightMemory: give load\(\) an empty one"):
        ApeX.load(tmp_path / "a.apex", env=Reach)


def test_a_memory_cannot_be_changed_once_learning_has_begun(tmp_path):
    ape = agent(tmp_path).learn(200)
    with pytest.raises(ValueError, match="before learning"):
        ape.memory = UniformMemory(ape.observation_space, ape.action_space)


def test_the_default_memory_is_made_from_the_settings(tmp_path):
    ape = agent(tmp_path, priority_exponent=0.5, importance_sampling_exponent=0.3, importance_annealing_steps=10)
    assert isinstance(ape.memory, PrioritizedMemory)
    assert (ape.memory.capacity, ape.memory.priority_exponent) == (5_000, 0.5)
    assert ape.memory.importance_sampling_exponent == 0.3
    ape.learn(400)
    assert ape.memory.importance_sampling_exponent == 1.0


def test_the_evaluator_is_greedy_however_the_actors_explore(tmp_path):
    ape = agent(tmp_path, BothMatter, max_epsilon=1.0, epsilon_alpha=0.0, n_step=1, learning_rate=5e-3).learn(1_500)
    assert float(table(ape, "evaluations")[-1]["mean_return"]) == 1.0
    explored = [float(row["episode_return"]) for row in table(ape, "episodes")]
    assert abs(np.mean(explored)) < 0.2
    assert {float(row["epsilon"]) for row in table(ape, "episodes")} == {1.0}


def test_evaluations_are_always_from_the_same_starts(tmp_path):
    ape = agent(tmp_path)
    starts = []

    def act(obs):
        starts.append(obs.copy())
        return np.zeros(len(obs), int)

    evaluator = Evaluator(ape.source, 4)
    results = [evaluator(act) for _ in range(2)]
    np.testing.assert_array_equal(results[0].returns, results[1].returns)
    np.testing.assert_array_equal(starts[0], starts[len(starts) // 2])
    assert 8 <= results[0].returns.min() <= results[0].returns.max() <= 11  # pushing left alone
    np.testing.assert_array_equal(results[0].returns, results[0].lengths)


def test_learn_ends_with_the_best_weights_in_place(tmp_path):
    ape = agent(tmp_path).learn(900)
    best = max(table(ape, "evaluations"), key=lambda row: float(row["mean_return"]))
    again = Evaluator(ape.source, 3)(lambda obs: ape.predict(obs)[0])
    assert again.returns.mean() == pytest.approx(float(best["mean_return"]), rel=1e-5)
    assert ape.best_return == pytest.approx(float(best["mean_return"]), rel=1e-5)
    saved = torch.load(ape.run_folder / "best.pt", weights_only=True)
    assert all(torch.equal(saved[name], value) for name, value in ape.policy.state_dict().items())


def test_without_keep_best_the_last_weights_are_in_place(tmp_path):
    ape = agent(tmp_path, keep_best=False).learn(900)
    last = ape.learner.average.state_dict()
    assert all(torch.equal(last[name], value) for name, value in ape.policy.state_dict().items())


def test_the_run_folder_tells_all(tmp_path):
    ape = agent(tmp_path).learn(1_300)
    names = {path.name for path in ape.run_folder.iterdir()}
    assert {"config.json", "evaluations.csv", "progress.csv", "episodes.csv", "last.apex", "best.pt"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    config = json.loads((ape.run_folder / "config.json").read_text())
    assert ApeXConfig.from_dict(config["config"]) == ape.config
    evaluations, progress = table(ape, "evaluations"), table(ape, "progress")
    steps = [int(row["env_steps"]) for row in evaluations]
    assert steps == sorted(steps)
    assert [step // 400 for step in steps] == [1, 2, 3, 3]  # every 400 steps, and at the end
    assert float(evaluations[-1]["seconds"]) > 0
    assert float(progress[-1]["samples_per_insert"]) == pytest.approx(4.0, rel=0.05)
    lengths = [int(row["length"]) for row in table(ape, "episodes")]
    assert 0 <= ape.num_timesteps - sum(lengths) < 8 * 500


def test_two_runs_never_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = agent(tmp_path).config.to_dict() | {"run_folder": None}
    folders = {ApeX("CartPole-v1", ApeXConfig.from_dict(config)).run_folder for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.parts[0] == "runs" and folder.name.startswith("CartPole-v1_") for folder in folders)


def test_another_runs_folder_is_not_written_to(tmp_path):
    agent(tmp_path).learn(200)
    before = (tmp_path / "run/evaluations.csv").read_bytes()
    with pytest.raises(ValueError, match="holds another run"):
        agent(tmp_path).learn(200)
    assert (tmp_path / "run/evaluations.csv").read_bytes() == before


def test_verbose_prints_episodes_and_changes_of_state(tmp_path, capsys):
    agent(tmp_path, ConstantReward, verbose=1).learn(200)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "learner waits for experience"
    assert "learner starts" in lines
    assert lines[-1].startswith("learner finished; saved as ")
    assert lines[1].startswith("actor 0 episode: 1 step: ")
    assert " of 200 epsilon: 0.4 reward: 1 length: 1" in lines[1]
    agent(tmp_path / "quiet", ConstantReward).learn(200)
    assert capsys.readouterr().out == ""


def test_a_progress_bar_shows_steps_and_return(tmp_path, capsys):
    agent(tmp_path, Quick).learn(500)
    assert capsys.readouterr().err == ""
    ape = agent(tmp_path / "bar", Quick)
    ape.learn(500, progress_bar=True)
    assert "greedy return" in capsys.readouterr().err


def test_a_resumed_bar_goes_on_where_it_was_and_never_beyond_its_end(tmp_path, capsys):
    ape = agent(tmp_path, Quick).learn(500)
    before = ape.num_timesteps
    ape.learn(200, progress_bar=True)
    assert ape.num_timesteps > 700
    bars = re.findall(r"(\d+)/(\d+) ", capsys.readouterr().err)
    assert (bars[0], bars[-1]) == ((str(before), "700"), ("700", "700"))


def test_an_envs_exception_reaches_the_caller_and_the_next_call_begins_anew(tmp_path):
    ape = agent(tmp_path, Failing)
    with pytest.raises(RuntimeError, match="the wheel came off"):
        ape.learn(1_000)
    assert (ape.run_folder / "last.apex").exists()
    assert ape.cluster.lives == [1, 1]


@pytest.mark.parametrize(
    ("env", "error", "words"),
    [
        ("NoSuchEnv-v0", gym.error.NameNotFound, r"NoSuchEnv.*import the package that registers it first"),
        ("no_such_package:X-v0", ModuleNotFoundError, "no_such_package"),
        ("Pendulum-v1", ValueError, r"Ape-X needs Discrete actions, not Box.*Pendulum-v1"),
        (5, TypeError, "env must be an id, a spec or a factory"),
    ],
)
def test_envs_that_cannot_be_used_are_refused_at_once(env, error, words):
    with pytest.raises(error, match=words):
        ApeX(env)


def test_an_env_itself_is_refused():
    with pytest.raises(TypeError, match="a factory such as"):
        ApeX(gym.make("CartPole-v1"))


def test_a_factory_that_cannot_travel_is_refused_at_once():
    import threading

    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot travel to an actor's process"):
        ApeX(lambda: lock and gym.make("CartPole-v1"))


def test_specs_and_lambdas_serve_as_ids_do(tmp_path):
    by_id = agent(tmp_path / "a").learn(300)
    by_spec = agent(tmp_path / "b", gym.spec("CartPole-v1")).learn(300)
    by_factory = agent(tmp_path / "c", lambda: gym.make("CartPole-v1")).learn(300)
    np.testing.assert_array_equal(parameters(by_id), parameters(by_spec))
    np.testing.assert_array_equal(parameters(by_id), parameters(by_factory))


def test_an_agent_that_learns_is_neither_trained_nor_saved_by_another_thread(tmp_path):
    ape, refused = agent(tmp_path), []

    def meddle():
        for what in (lambda: ape.learn(500), lambda: ape.save(tmp_path / "torn.apex")):
            with pytest.raises(RuntimeError, match="is learning in another thread"):
                what()
            refused.append(what)

    def receive(timeout, original=ape.cluster.receive):
        if not refused:
            thread = threading.Thread(target=meddle)
            thread.start()
            thread.join()
        return original(timeout)

    ape.cluster.receive = receive
    ape.learn(500)
    assert len(refused) == 2
    assert not (tmp_path / "torn.apex").exists()
    ape.learn(100).save(tmp_path / "whole.apex")
    assert ApeX.load(tmp_path / "whole.apex").num_timesteps == ape.num_timesteps
