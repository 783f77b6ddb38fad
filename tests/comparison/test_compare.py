"""The comparison: statistics against definitions and synthetic data, evaluation, scheduling, and whole runs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import compare_baselines
import gymnasium as gym
import numpy as np
import psutil
import pytest
from comparison import statistics
from comparison.algorithms import ALGORITHMS
from comparison.cells import EVALUATION_SEED, TEST_SEED, Cell, read_config, read_status, write_config, write_json
from comparison.curve import CurveWriter, read_curve
from comparison.evaluation import Episodes, greedy_episodes
from comparison.progress import Progress
from comparison.provenance import provenance
from comparison.scheduler import Job, run_jobs, spawn
from comparison.settings import resolve, settings_for
from extras import extra
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gym_custom  # noqa: F401

SCRIPTS = Path(compare_baselines.__file__).parent


def rng():
    return np.random.default_rng(0)


# statistics


def test_iqm_is_the_mean_of_the_middle_half():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1000.0])
    assert statistics.interquartile_mean([scores]) == 3.5  # of 2, 3, 4, 5
    assert statistics.interquartile_mean([scores[:3], scores[3:]]) == 3.5


def test_mean_and_median_over_tasks():
    tasks = [np.array([1.0, 3.0]), np.array([10.0, 20.0, 30.0]), np.array([5.0])]
    assert statistics.mean(tasks) == pytest.approx((2 + 20 + 5) / 3)
    assert statistics.median(tasks) == 5.0
    assert statistics.median([np.array([1.0, 2.0, 9.0])]) == 2.0


def test_probability_of_improvement_by_hand():
    ours, theirs = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0])
    # pairs won: (1, 0), (2, 0), (3, 2), (3, 0); tied: (2, 2); of six
    assert statistics.probability_of_improvement([ours], [theirs]) == pytest.approx(4.5 / 6)
    two_tasks = statistics.probability_of_improvement([ours, ours], [theirs, np.array([9.0])])
    assert two_tasks == pytest.approx((4.5 / 6 + 0) / 2)


@given(arrays(float, st.integers(1, 6), elements=st.integers(-3, 3)), arrays(float, 4, elements=st.integers(-3, 3)))
@settings(max_examples=50, deadline=None)
def test_probability_of_improvement_of_both_sides_is_one(x, y):
    assert statistics.probability_of_improvement([x], [y]) + statistics.probability_of_improvement(
        [y], [x]
    ) == pytest.approx(1)


def test_performance_profile_by_hand():
    tasks = [np.array([0.0, 1.0]), np.array([0.5, 0.5, 2.0, 2.0])]
    shares = statistics.performance_profile(tasks, np.array([-1.0, 0.0, 0.5, 1.0, 2.0]))
    assert shares.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_equal_runs_have_a_point_as_interval_and_one_run_has_none():
    assert statistics.estimate([np.full(5, 500.0)], statistics.interquartile_mean, rng()) == (500.0, 500.0, 500.0)
    single = statistics.estimate([np.array([3.0])], statistics.mean, rng())
    assert single.value == 3.0
    assert np.isnan(single.low)


def test_the_interval_is_repeatable_and_leaves_global_generators_alone():
    scores = [np.random.default_rng(1).normal(size=10)]
    before = np.random.get_state()[1].copy()
    first = statistics.estimate(scores, statistics.mean, rng())
    assert first == statistics.estimate(scores, statistics.mean, rng())
    assert np.array_equal(np.random.get_state()[1], before)
    assert first.low < first.value < first.high


@pytest.mark.parametrize("num_tasks", [1, 3])
@pytest.mark.parametrize(("num_seeds", "low", "high"), [(5, 0.85, 0.97), (10, 0.90, 0.98), (20, 0.90, 0.98)])
def test_coverage_of_the_interval_on_synthetic_runs(num_seeds, low, high, num_tasks):
    """Nominally 95 %. Of the mean over few runs of one task it covers less: captions call it too narrow."""
    data = np.random.default_rng(num_seeds)
    covered = {statistics.interquartile_mean: [], statistics.mean: []}
    for _ in range(500):
        tasks = [data.normal(0, 1 + task, num_seeds) for task in range(num_tasks)]
        for statistic, inside in covered.items():
            interval = statistics.estimate(tasks, statistic, data)
            inside.append(interval.low <= 0 <= interval.high)
    assert low <= np.mean(covered[statistics.interquartile_mean]) <= high
    assert low - 0.05 <= np.mean(covered[statistics.mean]) <= high


def test_curve_band_agrees_with_the_bootstrap_of_one_point():
    curves = np.random.default_rng(2).normal(size=(10, 3))
    band = statistics.curve_band(curves, rng())
    point = statistics.estimate([curves[:, 1]], statistics.interquartile_mean, rng())
    assert band.value[1] == pytest.approx(point.value)
    assert band.low[1] == pytest.approx(point.low, abs=0.1)
    assert band.high[1] == pytest.approx(point.high, abs=0.1)


def test_a_threshold_must_be_held_twice():
    assert statistics.first_held(np.array([0, 500, 0, 480, 475, 500]), 475) == 3
    assert statistics.first_held(np.array([0, 500, 0, 500]), 475) is None
    assert statistics.first_held(np.array([500]), 475) is None


# evaluation and settings


def test_evaluation_plays_each_seed_as_a_single_env_would():
    def push_right_when_leaning_right(obs):
        return (obs[:, 2] + obs[:, 3] > 0).astype(int)

    seeds = [EVALUATION_SEED + i for i in range(4)]
    episodes = greedy_episodes(push_right_when_leaning_right, "CartPole-v1", seeds)
    for row, seed in enumerate(seeds):
        env = gym.make("CartPole-v1")
        obs, _ = env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(push_right_when_leaning_right(obs[None])[0])
            total, ended = total + reward, terminated or truncated
        assert episodes.returns[row] == total == episodes.lengths[row]


def test_runs_share_no_start_states():
    spans = []
    for seed in range(20):
        cell = Cell("ppo", "X", seed, 1, 1, 1)
        spans += range(cell.training_seed, cell.training_seed + 64)
    assert len(set(spans)) == len(spans)
    assert max(spans) < EVALUATION_SEED
    assert EVALUATION_SEED + 10_000 < TEST_SEED


def test_settings_are_rl_zoo3s_and_prioritized_dqn_differs_by_its_buffer_only():
    assert settings_for("dqn", "NumpyCartPole-v1") == settings_for("prioritized_dqn", "NumpyCartPole-v1")
    assert settings_for("dqn", "NumpyCartPole-v1")["gradient_steps"] == 128
    schedule = resolve("lin_0.001")
    assert (schedule(1.0), schedule(0.5), schedule(0.0)) == (0.001, 0.0005, 0.0)
    assert resolve(0.2) == 0.2


# files


def test_configuration_and_curve_survive_the_disk(tmp_path):
    cell = Cell("ppo", "pkg:My/Env-v0", 3, 100, 10, 2, settings={"gamma": 0.9})
    assert cell.name == "ppo/pkg-My-Env-v0_3"
    write_config(tmp_path, cell, {"commit": "abc"})
    assert read_config(tmp_path) == (cell, {"commit": "abc"})
    writer = CurveWriter(tmp_path, {"commit": "abc"}, tmp_path / "tensorboard")
    writer.write(0, 0.0, Episodes(np.array([1.5, 2.0]), np.array([3, 4])))
    writer.write(10, 1.25, Episodes(np.array([7.0, 9.0]), np.array([5, 6])))
    writer.close()
    with open(tmp_path / "evaluations.csv", "a") as file:
        file.write("20,2.5,9")  # a killed run's last line
    curve = read_curve(tmp_path)
    assert curve.timesteps.tolist() == [0, 10]
    assert curve.mean_returns.tolist() == [1.75, 8.0]
    assert curve.lengths[1].tolist() == [5.0, 6.0]
    with np.load(tmp_path / "evaluations.npz") as sb3_form:
        assert sb3_form["results"].tolist() == [[1.5, 2.0], [7.0, 9.0]]
        assert sb3_form["ep_lengths"].shape == (2, 2)


def test_provenance_names_versions_processor_and_commit():
    found = provenance()
    assert found["versions"]["numpy"] == np.__version__
    assert found["processor"]
    assert "commit" in found
    json.dumps(found)


# scheduling

SLEEP = "import time; time.sleep(60)"


def job(folder, program, slots=1):
    folder.mkdir()
    (folder / "program.py").write_text(program)
    return Job(folder, slots)


def play(job):
    return spawn([sys.executable, "-S", str(job.folder / "program.py")], job.folder)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def of_group(process, group):
    """Whether a process lives in the group; one that is dead but not yet collected does not."""
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def test_jobs_never_take_more_slots_than_there_are(tmp_path):
    jobs = [job(tmp_path / str(i), "import time; time.sleep(.3)", slots) for i, slots in enumerate([2, 1, 1, 5])]
    seen = []
    run_jobs(jobs, 2, None, lambda running, ended: seen.append(sum(min(each.slots, 2) for each in running)), play)
    assert max(seen) == 2
    assert all(each.process.returncode == 0 for each in jobs)


def test_failed_and_late_jobs_are_written_down_and_the_others_go_on(tmp_path):
    wrong = job(tmp_path / "wrong", "raise SystemExit(3)")
    late = job(tmp_path / "late", f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); {SLEEP}")
    status = f"open({str(tmp_path / 'good' / 'status.json')!r}, 'w').write('{{\"status\": \"finished\"}}')"
    good = job(tmp_path / "good", status)
    run_jobs([wrong, late, good], 1, 1.0, lambda running, ended: None, play)
    assert read_status(wrong.folder) == {"status": "failed", "error": "the process ended with exit code 3"}
    assert read_status(late.folder) == {"status": "timed out", "error": "stopped after 1 s"}
    assert read_status(good.folder)["status"] == "finished"
    assert not alive(late.process.pid)


@pytest.mark.serial
def test_no_process_outlives_an_interrupted_scheduler(tmp_path):
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {SLEEP!r}]); {SLEEP}"
    started = job(tmp_path / "one", program)

    def interrupt(running, ended):
        if time.monotonic() - started.started > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([started], 1, None, interrupt, play)
    assert read_status(started.folder)["status"] == "interrupted"
    assert [process for process in psutil.process_iter() if of_group(process, started.process.pid)] == []


@pytest.mark.serial
def test_a_second_ctrl_c_leaves_no_process_either(tmp_path):
    deaf = job(tmp_path / "deaf", f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {SLEEP}")

    def interrupt(running, ended):
        if time.monotonic() - deaf.started > 0.7:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([deaf], 1, None, interrupt, play)
    assert not alive(deaf.process.pid)


# whole runs

TINY = ["--algo", "ppo", "-n", "512", "--eval-freq", "256", "--eval-episodes", "2", "--jobs", "1"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared") / "logs"
    assert compare_baselines.main([*TINY, "--log-folder", str(folder)]) == 0
    return folder


def test_a_run_leaves_everything_that_was_promised(compared):
    run = compared / "ppo" / "NumpyCartPole-v1_0"
    names = {path.name for path in run.iterdir()}
    assert {
        "config.json",
        "evaluations.csv",
        "evaluations.npz",
        "monitor.csv",
        "best_model.zip",
        "last_model.zip",
    } <= names
    assert list((run / "tensorboard").glob("events.*"))
    assert (run / "evaluations.csv").read_text().startswith('#{"algo": "ppo"')
    config = json.loads((run / "config.json").read_text())
    assert config["settings"]["n_steps"] == 32
    assert config["provenance"]["versions"]["torch"]
    assert read_curve(run).timesteps.tolist() == [0, 256, 512]
    status = read_status(run)
    assert status["status"] == "finished"
    assert len(status["best_returns"]) == 100
    assert (run / "monitor.csv").read_text().splitlines()[1] == "r,l,t"
    page = (compared / "report.html").read_text()
    assert "data:image/gif;base64," in page
    assert "PPO (SB3)" in page


def test_resume_keeps_finished_runs_and_redoes_broken_ones(compared, capsys):
    run = compared / "ppo" / "NumpyCartPole-v1_0"
    before = (run / "status.json").stat().st_mtime_ns
    assert compare_baselines.main([*TINY, "--log-folder", str(compared)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert compare_baselines.main([*TINY, "--log-folder", str(compared), "--resume"]) == 0
    assert (run / "status.json").stat().st_mtime_ns == before
    other = [*TINY[:3], "1024", *TINY[4:]]
    assert compare_baselines.main([*other, "--log-folder", str(compared), "--resume"]) == 2
    assert "other settings" in capsys.readouterr().err
    write_json(run / "status.json", {"status": "interrupted"})
    assert compare_baselines.main([*TINY, "--log-folder", str(compared), "--resume"]) == 0
    assert read_status(run)["status"] == "finished"
    (broken,) = (compared / "broken" / "ppo").iterdir()
    assert read_status(broken)["status"] == "interrupted"
    assert len((compared / "runs.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--env", "NoSuchWorld-v0"], "NoSuchWorld"),
        (["-n", "0"], "at least 1"),
        (["--algo", "q_learning"], "Discrete"),
        (["--gym-packages", "no_such_package"], "no_such_package"),
        (["--eval-freq", "0"], "--eval-freq must be at least 1, not 0"),
        (["--eval-freq", "-5"], "--eval-freq must be at least 1, not -5"),
        (["--max-seconds", "nan"], "--max-seconds must be above 0 and finite, not nan"),
        (["--max-seconds", "-1"], "--max-seconds must be above 0 and finite, not -1.0"),
        (["--time-limit", "0"], "--time-limit must be above 0 and finite, not 0.0"),
        (["--seed", "-1"], "--seed at least 0"),
    ],
)
def test_requests_that_cannot_be_met_get_one_sentence(argv, sentence, tmp_path, capsys):
    assert compare_baselines.main([*TINY, "--log-folder", str(tmp_path / "logs"), *argv]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "logs").exists()


def test_a_log_folder_that_is_a_file_gets_one_sentence_and_stays(tmp_path, capsys):
    (tmp_path / "logs").write_text("dear diary")
    assert compare_baselines.main([*TINY, "--log-folder", str(tmp_path / "logs")]) == 2
    assert "logs" in capsys.readouterr().err
    assert (tmp_path / "logs").read_text() == "dear diary"


def test_a_senseless_request_moves_no_earlier_results(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(compare_baselines.QUICK_FOLDER).mkdir(parents=True)
    assert compare_baselines.main(["--quick", "--env", "NoSuchWorld-v0"]) == 2
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["quick"]


def test_what_is_named_twice_runs_once():
    argv = ["--algo", "ppo", "ppo", "--seed", "1", "0", "1", "--env", "GridWorld-v0", "GridWorld-v0"]
    cells = compare_baselines._cells(compare_baselines._arguments(argv))
    assert [(cell.algo, cell.env_id, cell.seed) for cell in cells] == [
        ("ppo", "GridWorld-v0", 1),
        ("ppo", "GridWorld-v0", 0),
    ]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ModuleNotFoundError("No module named 'torch'", name="torch"), 2, "this script needs torch: pip install"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_missing_library_or_an_early_ctrl_c_ends_a_script_without_a_traceback(error, code, words, capsys):
    with pytest.raises(SystemExit) as caught, extra("agents"):
        raise error
    assert caught.value.code == code
    assert capsys.readouterr().err.startswith(words)


def test_a_fault_of_ones_own_is_no_missing_library():
    with pytest.raises(ModuleNotFoundError), extra("agents"):
        raise ModuleNotFoundError("No module named 'agents.nothing'", name="agents.nothing")


@pytest.mark.parametrize(
    ("algo", "env_id"),
    [
        ("q_learning", "GridWorld-v0"),
        ("a2c", "GridWorld-v0"),
        ("dqn", "NumpyCartPole-v1"),
        ("prioritized_dqn", "NumpyCartPole-v1"),
    ],
)
def test_a_restored_policy_is_the_one_that_was_saved(algo, env_id, tmp_path):
    settings = settings_for(algo, env_id) | (
        {"learning_starts": 10, "train_freq": 8, "gradient_steps": 4} if "dqn" in algo else {}
    )
    cell = Cell(algo, env_id, 0, 300, 100, 3, settings=settings)
    module = ALGORITHMS[algo].load()
    module.train(cell, tmp_path, CurveWriter(tmp_path, {}, tmp_path / "tensorboard"), Progress(tmp_path))
    curve = read_curve(tmp_path)
    assert curve.timesteps.tolist() == sorted(set(curve.timesteps.tolist()))
    assert curve.timesteps[-1] >= 300
    seeds = [EVALUATION_SEED + i for i in range(3)]
    for which, expected in (
        (module.LAST, curve.returns[-1]),
        (module.BEST, curve.returns[curve.mean_returns.argmax()]),
    ):
        episodes = greedy_episodes(module.load_policy(cell, tmp_path, which), env_id, seeds)
        assert episodes.returns.tolist() == expected.tolist()


def test_a_time_budget_ends_the_run(tmp_path):
    cell = Cell("a2c", "NumpyCartPole-v1", 0, 10_000_000, 1_000, 1, max_seconds=0.3, settings={"n_envs": 8})
    curve = CurveWriter(tmp_path, {}, tmp_path / "tensorboard")
    ALGORITHMS["a2c"].load().train(cell, tmp_path, curve, Progress(tmp_path))
    assert 0.3 <= read_curve(tmp_path).seconds[-1] < 5


@pytest.mark.serial
@pytest.mark.parametrize("max_seconds", [None, pytest.param(4.0, marks=pytest.mark.slow)])
def test_ape_x_is_followed_restored_and_ended_on_its_budget(max_seconds, tmp_path):
    steps = 2_000 if max_seconds is None else 10_000_000
    cell = Cell("apex", "NumpyCartPole-v1", 0, steps, 500, 3, max_seconds, settings={"num_actors": 1})
    module = ALGORITHMS["apex"].load()
    module.train(cell, tmp_path, CurveWriter(tmp_path, {}, tmp_path / "tensorboard"), Progress(tmp_path))
    curve = read_curve(tmp_path)
    assert len(curve.timesteps) >= 1
    assert (tmp_path / "monitor.csv").read_text().splitlines()[1] == "r,l,t"
    episodes = greedy_episodes(
        module.load_policy(cell, tmp_path, module.BEST), cell.env_id, [EVALUATION_SEED + i for i in range(3)]
    )
    assert episodes.returns.mean() == pytest.approx(curve.mean_returns.max(), rel=1e-3)


@pytest.mark.serial
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_however_a_comparison_ends_its_runs_end_too(number, tmp_path):
    folder = tmp_path / "logs"
    command = [sys.executable, str(SCRIPTS / "compare_baselines.py"), "-n", "10000000", "--log-folder", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not (folder / "ppo" / "NumpyCartPole-v1_0" / "progress.json").exists():
        assert process.poll() is None
        time.sleep(0.1)
    runs = psutil.Process(process.pid).children(recursive=True)
    assert runs
    process.send_signal(number)
    assert process.wait(20) == (128 + number if number == signal.SIGTERM else -number)
    assert psutil.wait_procs(runs, timeout=10)[1] == []


@pytest.mark.serial
def test_ctrl_c_ends_everything_and_says_where(tmp_path):
    folder = tmp_path / "logs"
    command = [sys.executable, str(SCRIPTS / "compare_baselines.py"), "-n", "10000000", "--log-folder", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (folder / "ppo" / "NumpyCartPole-v1_0" / "progress.json").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    _, error = process.communicate(timeout=20)
    assert time.monotonic() - asked < 10
    assert process.returncode == 130
    assert "--resume" in error
    assert "Traceback" not in error
    assert read_status(folder / "ppo" / "NumpyCartPole-v1_0")["status"] == "interrupted"


def ended(program, **pipes):
    """The end of a process that runs ``main``, a lambda, as the scripts do."""
    head = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); from extras import run; "
    command = [sys.executable, "-c", f"{head}sys.exit(run({program}))"]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, **pipes)


def test_a_console_without_a_character_shows_another():
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = ended(r"lambda: print('\u2013') or 3", stdout=subprocess.PIPE, env=ascii_only)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"?\n", b"")


def test_a_reader_that_has_gone_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = ended("lambda: print(1) or 0", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
