"""The report from made-up runs: right numbers, self-contained pages, failures listed, and how it looks in a browser."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import report
from comparison import films, pages, tables
from comparison.cells import Cell, write_config, write_json
from comparison.curve import CurveWriter
from comparison.evaluation import Episodes
from comparison.provenance import provenance
from comparison.results import by_env, read_runs
from comparison.settings import settings_for
from PIL import Image

import gym_custom  # noqa: F401

STEPS = np.arange(0, 50_001, 5_000)


def make_run(folder, algo, env_id, seed, best, solved_from=None, status="finished"):
    """A run whose curve reaches ``best`` at evaluation ``solved_from`` and stays there."""
    cell = Cell(algo, env_id, seed, 50_000, 5_000, 2, settings=settings_for(algo, env_id))
    run = folder / cell.name
    write_config(run, cell, provenance())
    if status == "missing":
        return
    curve = CurveWriter(run, {}, run / "tensorboard")
    for index, steps in enumerate(STEPS):
        value = best if solved_from is not None and index >= solved_from else best * index / 40
        curve.write(int(steps), 2.0 * index, Episodes(np.full(2, value), np.full(2, 10)))
    curve.close()
    if status != "finished":
        write_json(run / "status.json", {"status": status, "error": "killed <b>"})
        return
    result = {"timesteps": 50_000, "training_seconds": 20.0, "best_return": best, "last_return": best - 1}
    write_json(run / "status.json", {"status": status, **result})


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for seed in range(10):
        make_run(folder, "ppo", "NumpyCartPole-v1", seed, 480.0 + seed, 3)
        make_run(folder, "dqn", "NumpyCartPole-v1", seed, 400.0 + 10 * seed, 6 if seed >= 8 else None)
        make_run(folder, "ppo", "GridWorld-v0", seed, 1.0, 2)
        make_run(folder, "ppo", "MyEnv-v0", seed, 50.0)
    make_run(folder, "dqn", "GridWorld-v0", 0, 0.5, status="timed out")
    make_run(folder, "dqn", "GridWorld-v0", 1, 0.5, status="missing")
    pages.write(folder)
    return folder


def test_the_table_has_the_numbers_of_the_runs(made_up):
    groups = by_env(read_runs(made_up))["NumpyCartPole-v1"]
    dqn, ppo = tables.rows(groups)
    assert (dqn.label, ppo.label) == ("DQN (SB3)", "PPO (SB3)")
    assert ppo.iqm.value == np.mean(480.0 + np.arange(2, 8))  # 25 % of ten is two at each end
    assert ppo.iqm.low < ppo.iqm.value < ppo.iqm.high
    assert ppo.last.value == ppo.iqm.value - 1
    assert ppo.median.value == 484.5
    assert (ppo.num_solved, ppo.steps, ppo.seconds) == (10, 15_000, 6.0)
    assert (dqn.num_solved, dqn.num_runs, dqn.steps, dqn.seconds) == (2, 10, 30_000, 12.0)
    assert ppo.steps_per_second == 2_500.0
    (pair,) = tables.improvements(groups)
    # dqn's 490 beats ppo's 480 to 489 and none else; its 480 ties with one of them
    assert pair.probability.value == pytest.approx((10 + 0.5) / 100)


def test_pages_show_them_and_list_what_did_not_finish(made_up):
    page, text = (made_up / "report.html").read_text(), (made_up / "report.md").read_text()
    assert "<b>484.5</b>" in page
    assert "| PPO (SB3) | 484.5 (" in text
    assert "10 seeds" in page
    assert "2 of 42 runs did not finish" in page
    assert "2 of 42 runs did not finish" in text
    for name, status in (("dqn/GridWorld-v0_0", "timed out"), ("dqn/GridWorld-v0_1", "missing")):
        assert re.search(rf"{name}</code>: {status}", page)
    assert "killed &lt;b&gt;" in page
    lines = (made_up / "runs.csv").read_text().splitlines()
    assert lines[0].startswith('#{"commit"')
    assert len(lines) == 2 + 42


def test_the_page_needs_nothing_beside_itself(made_up):
    page = (made_up / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "http" not in re.sub(r"data:[^\"']*", "", page)
    assert "@import" not in page
    assert str(made_up) not in page


def test_few_seeds_are_called_few_and_many_are_not(made_up, tmp_path):
    assert "too narrow" not in (made_up / "report.html").read_text()
    for seed in range(5):
        make_run(tmp_path, "ppo", "NumpyCartPole-v1", seed, 480.0 + seed, 3)
    pages.write(tmp_path)
    assert "With 5 seeds the band is too narrow" in (tmp_path / "report.html").read_text()


def test_a_profile_from_three_tasks_up(made_up, tmp_path):
    assert "Performance profile" in (made_up / "report.html").read_text()
    make_run(tmp_path, "ppo", "NumpyCartPole-v1", 0, 480.0)
    pages.write(tmp_path)
    assert "Performance profile" not in (tmp_path / "report.html").read_text()


def test_the_summary_goes_between_the_marks_of_a_page(made_up, tmp_path, capsys):
    page = tmp_path / "README.md"
    page.write_text(f"above\n\n{pages.BEGIN}\nyesterday\n{pages.END}\n\nbelow\n")
    assert report.main([str(made_up), "--summary", str(page)]) == 0
    text = page.read_text()
    assert text.startswith(f"above\n\n{pages.BEGIN}\n")
    assert text.endswith(f"{pages.END}\n\nbelow\n")
    assert "yesterday" not in text
    assert "| `NumpyCartPole-v1` | DQN (SB3) |" in text
    assert "|  | PPO (SB3) | 484.5 (" in text
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", text)
    assert (tmp_path / picture).read_text().count("<svg") == 1
    assert report.main([str(made_up), "--summary", str(page)]) == 0
    assert page.read_text() == text
    page.write_text("no marks")
    assert report.main([str(made_up), "--summary", str(page)]) == 2
    assert "lacks the marks" in capsys.readouterr().err
    assert page.read_text() == "no marks"


def test_the_same_runs_give_the_same_figures(made_up):
    path = made_up / "figures" / "NumpyCartPole-v1-steps.svg"
    before = path.read_bytes()
    pages.write(made_up)
    assert path.read_bytes() == before


def test_a_report_of_failures_alone_can_be_written(tmp_path):
    make_run(tmp_path, "ppo", "NumpyCartPole-v1", 0, 1.0, status="missing")
    assert report.main([str(tmp_path)]) == 0
    assert "1 of 1 runs did not finish" in (tmp_path / "report.html").read_text()


def test_an_empty_folder_gets_one_sentence(tmp_path, capsys):
    assert report.main([str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "holds no runs" in error
    assert error.count("\n") == 1


def test_a_gif_is_thinned_and_moves(tmp_path):
    pictures = [np.full((40, 60, 3), 20 + index // 3, np.uint8) for index in range(600)]
    for index, picture in enumerate(pictures):
        picture[:, index % 60] = 255
    path = tmp_path / "film.gif"
    path.write_bytes(films.gif(pictures))
    with Image.open(path) as film:
        assert 60 <= film.n_frames <= films.MAX_FRAMES
        assert film.size == (films.WIDTH, round(films.WIDTH * 40 / 60))
        first = np.asarray(film.convert("RGB"))
        film.seek(30)
        assert not np.array_equal(first, np.asarray(film.convert("RGB")))


# in a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
]
PROBE = """<!doctype html><title>probe</title><iframe style="width: %dpx; height: 3000px; border: 0"></iframe>
<script id="page" type="text/plain">%s</script><pre id="answer"></pre><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  const all = [...page.querySelectorAll("p, td, th, figcaption, dd, summary, h1, h2, h3")];
  const texts = all.filter(element => element.offsetParent);
  document.getElementById("answer").textContent = JSON.stringify({
    images: [...page.images].map(image => [image.naturalWidth, image.getBoundingClientRect().width]),
    overflow: root.scrollWidth - root.clientWidth,
    smallest: Math.min(...texts.map(e => parseFloat(page.defaultView.getComputedStyle(e).fontSize))),
    texts: texts.length,
  });
};
frame.srcdoc = decodeURIComponent(document.getElementById("page").textContent);
</script>"""


def look(page: Path, width: int, tmp_path: Path):
    """Open the page in a frame of this width; what its script measured, and what the console said."""
    probe = tmp_path / f"probe{width}.html"
    probe.write_text(PROBE % (width, quote(page.read_text())))
    profile = f"--user-data-dir={tmp_path / f'profile{width}'}"
    command = [CHROMIUM, *FLAGS, profile, "--window-size=1400,3000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(html.unescape(answer[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH")
@pytest.mark.parametrize("width", [1280, 390])
def test_in_a_browser_pictures_show_and_nothing_overflows(made_up, tmp_path, width):
    found, console = look(made_up / "report.html", width, tmp_path)
    assert console == []
    assert len(found["images"]) == 7  # two curves an id, one profile
    for natural, shown in found["images"]:
        assert natural > 0
        assert min(width, 400) * 0.8 < shown <= width
    assert found["overflow"] <= 0
    assert found["smallest"] >= 12
    assert found["texts"] > 50
