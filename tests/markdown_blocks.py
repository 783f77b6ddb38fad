"""Runs the code of a Markdown page, as a reader would who copies block after block."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import gym_custom  # noqa: F401  registers its ids before a page does, so that a test can take the page's ids back

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in FENCE.finditer(text)]


def run_page(page: Path, folder: Path) -> dict[str, object]:
    """Runs every ``python`` block in order, in one namespace; a ``text`` block behind one is what it must print.

    A block that begins with a comment such as ``# hopper.py`` is not run but written to that file in the folder.
    """
    namespace: dict[str, object] = {"__name__": "__page__"}
    printed = ""
    for block in blocks(page):
        if block.language == "text":
            assert printed.strip() == block.text.strip(), f"{page.name}:{block.line}"
        elif block.language == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (folder / name[1]).write_text(block.text)
        elif block.language == "python":
            file = (
                folder / f"{page.stem}_line_{block.line}.py"
            )  # a real file, so that sources can be read and errors shown
            file.write_text(block.text)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, str(file), "exec"), namespace)
            printed = out.getvalue()
    return namespace
