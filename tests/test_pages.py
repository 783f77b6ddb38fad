"""README and pages: their code runs, their commands and links exist."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from markdown_blocks import ROOT, blocks, run_page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = [page for page in PAGES if page.name not in ("own_world.md", "CONTRIBUTING.md")]  # the first has its own test


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    if "import jax" in page.read_text(encoding="utf-8"):
        pytest.importorskip("jax", reason="JAX is not installed: pip install gym_custom[jax]")
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


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_are_headings(page):
    anchors = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert not [(t, a) for t, a in anchors if a not in headings(page.parent / t if t else page)]


SITES = re.compile(r"https://arxiv\.org/abs/\d{4}\.\d{5}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_other_sites_are_of_a_known_form(page):
    links = re.findall(r"https?://[^)\s>`\"]+", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not SITES.fullmatch(link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_what_exists(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in blocks(page):
        if block.language == "sh":
            assert all(f"\n{target}:" in makefile for target in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE))
            assert all((ROOT / script).exists() for script in re.findall(r"scripts/\w+\.py", block.text))


@pytest.mark.parametrize(
    "block", [b for b in blocks(ROOT / "README.md") if b.language == "python"], ids=lambda b: f"line {b.line}"
)
def test_each_block_of_the_readme_stands_alone(block):
    nodes = list(ast.walk(ast.parse(block.text)))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    known = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    known |= {
        alias.asname or alias.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    assert used - known - set(dir(builtins)) == set()
    for name in re.findall(r'"(\w+)-v\d+"', block.text):
        assert ("walk" if name == "Walk" else "gym_custom") in imported or "register_world" in known


def test_every_page_is_linked_from_the_readme_and_the_index():
    for start, prefix in ((ROOT / "README.md", "docs/"), (ROOT / "docs" / "index.md", "")):
        text = start.read_text(encoding="utf-8")
        pages = [page.name for page in (ROOT / "docs").glob("*.md") if page != start]
        assert not [name for name in pages if f"]({prefix}{name})" not in text]


def test_nobody_is_told_to_fetch_the_package_from_an_index():
    sources = [*PAGES, *(ROOT / "scripts").rglob("*.py"), *(ROOT / "gym_custom").rglob("*.py")]
    assert not [
        path.name for path in sources if re.search(r"pip install \S*gym_custom", path.read_text(encoding="utf-8"))
    ]


def test_the_readme_picture_is_small():
    assert (ROOT / "docs" / "images" / "worlds.gif").stat().st_size < 500_000


def test_the_own_world_of_the_readme_is_short():
    (world,) = [block.text for block in blocks(ROOT / "README.md") if block.text.startswith("# walk.py")]
    assert len([line for line in world.splitlines() if line.strip()]) < 30
