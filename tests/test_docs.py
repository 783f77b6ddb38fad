"""The built documentation: pages of the environments, notebooks, and what Sphinx says of all of it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
from markdown_blocks import ROOT, run_page

sys.path.insert(0, str(ROOT / "docs"))

import environment_pages

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 650_000  # bytes of a film


@pytest.mark.parametrize("env_id", environment_pages.ids())
def test_the_page_of_an_id_is_up_to_date(env_id):
    found = (environment_pages.FOLDER / f"{env_id}.md").read_text(encoding="utf-8")
    assert found == environment_pages.page(env_id), "run: python docs/environment_pages.py"
    assert f"| {environment_pages.gym.spec(env_id).max_episode_steps} |" in found


@pytest.mark.parametrize("env_id", environment_pages.ids())
def test_each_id_has_a_small_film(env_id):
    assert (environment_pages.FILMS / f"{env_id}.gif").stat().st_size < LARGEST


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
@pytest.mark.parametrize("env_id", environment_pages.ids())
def test_the_code_on_the_page_of_an_id_runs(env_id, tmp_path):
    page = tmp_path / "page.md"
    text = (environment_pages.FOLDER / f"{env_id}.md").read_text(encoding="utf-8")
    page.write_text("```python\nimport gymnasium\n```\n" + text, encoding="utf-8")
    run_page(page, tmp_path)


def test_every_id_is_in_the_list_of_environments():
    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    assert not [i for i in environment_pages.ids() if f"](envs/{i}.md)" not in text or f"\nenvs/{i}\n" not in text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_its_pictures_and_no_errors(path):
    nbformat = pytest.importorskip("nbformat", reason="notebooks are read with nbformat, which nbclient brings")
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert path.stat().st_size < 300_000


@pytest.mark.serial
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run with nbclient")
    pytest.importorskip("ipykernel", reason="notebooks are run in a kernel")
    import nbformat

    notebook = nbformat.read(path, 4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the kernel's sockets are no business of ours
        client.execute()
    printed = [output.text for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output]
    assert any("best greedy return" in text for text in printed)


@pytest.mark.slow
def test_sphinx_finds_nothing_to_complain_about(tmp_path):
    pytest.importorskip("sphinx", reason="the documentation is built with the extra [docs]")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(ROOT / "docs"),
        str(tmp_path),
    ]
    done = subprocess.run([*command, "-d", str(tmp_path / "trees")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "envs" / "MyEnv-v0.html").exists()
    assert (tmp_path / "notebooks" / "own_world.html").exists()
