"""The report as pages: ``report.html``, which needs nothing beside itself, ``report.md`` and ``runs.csv``."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from comparison import figures, films, tables
from comparison.algorithms import ALGORITHMS
from comparison.provenance import provenance
from comparison.results import Run, by_env, read_runs, threshold_of
from comparison.statistics import Estimate

MIN_TASKS_FOR_PROFILE = 3
MIN_SEEDS_FOR_SUMMARY = 5
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"


def write(log_folder: Path) -> None:
    """Write the report of all runs below the folder into it, from their files alone.

    Raises:
        FileNotFoundError: where the folder holds no runs.
    """
    runs = read_runs(log_folder)
    content = _content(runs, log_folder)
    templates = _templates()
    for name in ("report.html", "report.md"):
        text = templates.get_template(f"{name}.j2").render(content)
        (log_folder / name).write_text(text, encoding="utf-8")
    _write_csv(log_folder / "runs.csv", runs)


def write_summary(log_folder: Path, page: Path) -> None:
    """Put table and picture of the ids with enough seeds between the two marks of a Markdown page.

    Raises:
        ValueError: the page lacks the marks, or no id has enough seeds.
    """
    groups = {env_id: runs for env_id, runs in by_env(read_runs(log_folder)).items() if _is_for_summary(runs)}
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} lacks the marks {BEGIN} and {END}, between which the summary goes.")
    if not groups:
        raise ValueError(f"{log_folder} has no id with {MIN_SEEDS_FOR_SUMMARY} finished seeds of an algorithm.")
    picture = _figure(log_folder, "overview", figures.overview(groups))["path"]
    here = Path(os.path.relpath(log_folder, page.parent))
    content = {
        "sections": [_numbers(env_id, runs) for env_id, runs in groups.items()],
        "picture": (here / picture).as_posix(),
        "report": (here / "report.md").as_posix(),
    }
    summary = _templates().get_template("summary.md.j2").render(content)
    page.write_text(f"{before}{BEGIN}\n{summary}\n{END}{after}", encoding="utf-8")


def _is_for_summary(groups: dict[str, list[Run]]) -> bool:
    return any(sum(run.finished for run in runs) >= MIN_SEEDS_FOR_SUMMARY for runs in groups.values())


def _content(runs: list[Run], folder: Path) -> dict[str, Any]:
    return {
        "sections": [_section(env_id, groups, folder) for env_id, groups in by_env(runs).items()],
        "profile": _profile(runs, folder),
        "runs": runs,
        "unfinished": tables.unfinished(runs),
        "algorithms": ALGORITHMS,
        "settings": {(run.cell.env_id, run.cell.algo): run.cell for run in runs},
        "source": runs[0].provenance,
        "commits": sorted({str(run.provenance["commit"]) for run in runs}),
        "written": provenance(),
    }


def _section(env_id: str, groups: dict[str, list[Run]], folder: Path) -> dict[str, Any]:
    name = next(iter(groups.values()))[0].cell.name.split("/")[1].rsplit("_", 1)[0]
    return {
        **_numbers(env_id, groups),
        "improvements": tables.improvements(groups),
        "by_steps": _figure(folder, f"{name}-steps", figures.learning_curves(groups, "timesteps")),
        "by_seconds": _figure(folder, f"{name}-seconds", figures.learning_curves(groups, "seconds")),
        "films": _films(groups, folder, name),
    }


def _numbers(env_id: str, groups: dict[str, list[Run]]) -> dict[str, Any]:
    cells = [run.cell for runs in groups.values() for run in runs]
    return {
        "env_id": env_id,
        "threshold": threshold_of(env_id),
        "rows": tables.rows(groups),
        "num_seeds": max(len(runs) for runs in groups.values()),
        "episodes": cells[0].eval_episodes,
        "timesteps": cells[0].total_timesteps,
        "max_seconds": cells[0].max_seconds,
    }


def _profile(runs: list[Run], folder: Path) -> dict[str, str] | None:
    scores = tables.normalized_scores(runs)
    if not scores or len(next(iter(scores.values()))) < MIN_TASKS_FOR_PROFILE:
        return None
    return _figure(folder, "profiles", figures.profiles(scores))


def _figure(folder: Path, name: str, svg: str) -> dict[str, str]:
    path = folder / "figures" / f"{name}.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(svg, encoding="utf-8")
    return {"path": f"figures/{path.name}", "data": _data_url("image/svg+xml", svg.encode())}


def _films(groups: dict[str, list[Run]], folder: Path, name: str) -> list[dict[str, Any]]:
    """The best finished run of each algorithm, filmed; a policy that cannot be filmed says why."""
    shown = []
    for algo, runs in groups.items():
        finished = [run for run in runs if run.finished]
        if not finished:
            continue
        run = max(finished, key=lambda each: each.status["best_return"])
        entry: dict[str, Any] = {"label": ALGORITHMS[algo].label, "run": run}
        try:
            path = films.write_film(run, folder / "films" / f"{name}-{algo}-{run.cell.seed}.gif")
        except Exception as error:  # a world without pictures, a checkpoint of another version: the page stands anyway
            entry["missing"] = f"{type(error).__name__}: {error}".replace(str(folder.resolve()), folder.name)
        else:
            entry["path"] = f"films/{path.name}"
            entry["data"] = _data_url("image/gif", path.read_bytes())
        shown.append(entry)
    return shown


def _data_url(kind: str, content: bytes) -> Markup:
    return Markup(f"data:{kind};base64,{base64.b64encode(content).decode()}")


def _write_csv(path: Path, runs: list[Run]) -> None:
    """One line a run, the failed ones too."""
    columns = ["algo", "env_id", "seed", "status", "timesteps", "training_seconds", "best_return", "last_return"]
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(f"#{json.dumps(runs[0].provenance)}\n")
        writer = csv.writer(file)
        writer.writerow([*columns, "solved_timesteps", "solved_seconds", "error"])
        for run in runs:
            known = {**run.status, "algo": run.cell.algo, "env_id": run.cell.env_id, "seed": run.cell.seed}
            at = run.solved_at
            solved = ["", ""] if at is None else [run.curve.timesteps[at], run.curve.seconds[at]]
            writer.writerow([known.get(key, "") for key in columns] + solved + [run.status.get("error", "")])


def number(value: float | None) -> str:
    """A number for a table: thousands apart, about three digits; a dash for none."""
    if value is None or math.isnan(value):
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def whole(value: float | None) -> str:
    """A count for a table; a dash for none."""
    return "–" if value is None else f"{value:,.0f}"


def interval(estimate: Estimate) -> str:
    """``low to high``, or nothing where there is no interval."""
    if math.isnan(estimate.low):
        return ""
    return f"{number(estimate.low)} to {number(estimate.high)}"


def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=jinja2.select_autoescape(["html.j2"], default=False),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, whole=whole, interval=interval)
    return environment
