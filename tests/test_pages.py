"""README and pages: their code runs, their commands and links exist."""

from __future__ import annotations

import re
import sys

import gymnasium as gym
import pytest
from markdown_blocks import ROOT, blocks, run_page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = [page for page in PAGES if page.name not in ("own_world.md", "CONTRIBUTING.md")]  # the first has its own test


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(gym.registry)
    try:
        run_page(page, tmp_path)
    finally:
        for name in set(gym.registry) - before:
            del gym.registry[name]
        sys.modules.pop("walk", None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_what_exists(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks(page):
        if block.language == "sh":
            assert all(f"\n{target}:" in makefile for target in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE))
            assert all((ROOT / script).exists() for script in re.findall(r"scripts/\w+\.py", block.text))


def test_the_readme_picture_is_small():
    assert (ROOT / "docs" / "images" / "worlds.gif").stat().st_size < 500_000


def test_the_own_world_of_the_readme_is_short():
    (world,) = [block.text for block in blocks(ROOT / "README.md") if block.text.startswith("# walk.py")]
    assert len([line for line in world.splitlines() if line.strip()]) < 30
