"""Where a result comes from: versions, processor, commit and time, for every result file."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("gym_custom", "gymnasium", "numpy", "torch", "stable-baselines3", "jax", "pygame-ce")


def provenance() -> dict[str, Any]:
    """Versions of what computes, the machine, the source's commit and the time, as JSON types."""
    return {
        "commit": commit(),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit() -> str | None:
    """The commit of the source, with ``+changes`` where files differ from it; None outside a git checkout."""
    try:
        name = _git("rev-parse", "HEAD")
        return name + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    here = Path(__file__).parent
    return subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True, text=True).stdout.strip()
