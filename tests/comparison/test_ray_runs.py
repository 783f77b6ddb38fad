"""The comparison on a Ray cluster: runs travel, their files come back, and what is lost is listed."""

import compare_baselines
import pytest
from comparison.cells import Cell, read_status, write_config
from comparison.scheduler import Job, run_jobs

ray = pytest.importorskip("ray", reason="Ray is not installed")
from comparison.ray_runs import RemoteProcess, cluster  # noqa: E402

pytestmark = pytest.mark.serial


@pytest.mark.slow
def test_runs_on_a_cluster_leave_the_same_files(tmp_path):
    folder = tmp_path / "logs"
    argv = ["--algo", "ppo", "q_learning", "--env", "GridWorld-v0", "-n", "512", "--eval-freq", "256", "--ray"]
    assert compare_baselines.main([*argv, "--eval-episodes", "2", "--log-folder", str(folder)]) == 0
    assert not ray.is_initialized()
    for algo, model in (("ppo", "best_model.zip"), ("q_learning", "best_model.npy")):
        run = folder / algo / "GridWorld-v0_0"
        assert read_status(run)["status"] == "finished"
        assert {model, "evaluations.csv", "monitor.csv", "log.txt"} <= {path.name for path in run.iterdir()}
        assert list((run / "tensorboard").glob("events.*"))
    assert "Q-learning" in (folder / "report.md").read_text()


@pytest.mark.slow
def test_a_run_whose_node_is_lost_is_listed_and_the_others_go_on(tmp_path):
    cells = [Cell("q_learning", "GridWorld-v0", seed, steps, 100, 1) for seed, steps in enumerate([10_000_000, 200])]
    jobs = [Job(tmp_path / cell.name) for cell in cells]
    for job, cell in zip(jobs, cells, strict=True):
        write_config(job.folder, cell, {})

    def lose_the_first(running, ended):
        if jobs[1] in ended:
            ray.kill(jobs[0].process._trainer)

    with cluster(None):
        run_jobs(jobs, 2, None, lose_the_first, RemoteProcess)
    lost = read_status(jobs[0].folder)
    assert lost["status"] == "failed"
    assert lost["error"].startswith("the run was lost: ")
    assert read_status(jobs[1].folder)["status"] == "finished"


def test_a_cluster_that_does_not_answer_gets_one_sentence(tmp_path, capsys):
    folder = tmp_path / "logs"
    assert compare_baselines.main(["-n", "100", "--log-folder", str(folder), "--ray", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not folder.exists()
