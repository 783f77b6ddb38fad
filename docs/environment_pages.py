"""Writes the pages in ``docs/envs``, one an id, from the classes' docstrings and the registry.

python docs/environment_pages.py                       # the pages
python docs/environment_pages.py --films MyEnv-v0      # the pictures of these ids too, without ids all of them
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import itertools
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym

from agents import pretrained
from gym_custom.programs import demo
from gym_custom.programs.screens import few_colors

FOLDER = Path(__file__).parent / "envs"
FILMS = Path(__file__).parent / "images" / "envs"
WIDTH = 280  # pixels of a film

PAGE = """# {id}

![{caption}](../images/envs/{id}.gif)

{caption}. `python -m gym_custom demo --env {id}{policy}` shows more.

{lead}

```python
import gymnasium as gym
import gym_custom

env = gym.make("{id}")
envs = gym.make_vec("{id}", num_envs=8)
```

| registered setting | value |
|---|---|
| id | `{id}` |
| steps until an episode is truncated | {steps} |
| return that counts as solved | {threshold} |
| arguments that differ from the class's | {kwargs} |
| action space | `{actions}` |
| observation space | `{observations}` |
| render modes | {modes} |
| class | `{entry_point}` |
| vector class | `{vector_entry_point}` |

{rest}

{others}
"""


def ids() -> list[str]:
    """The ids of this package."""
    return [i for i, spec in gym.registry.items() if str(spec.entry_point).startswith("gym_custom.")]


def page(env_id: str) -> str:
    """The Markdown of one id."""
    spec = gym.spec(env_id)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*is out of date", DeprecationWarning)  # v0 is here to stay
        env: Any = gym.make(env_id, disable_env_checker=True)
    lead, _, rest = inspect.getdoc(class_of(spec)).partition("\n\n")  # type: ignore[union-attr]
    caption, policy = described(env_id)
    return PAGE.format(
        id=env_id,
        caption=caption,
        policy=policy,
        lead=lead,
        rest=rest.strip(),
        steps=spec.max_episode_steps,
        threshold="not set" if spec.reward_threshold is None else f"{spec.reward_threshold:g}",
        kwargs=", ".join(f"`{name}={value!r}`" for name, value in spec.kwargs.items()) or "none",
        actions=env.action_space,
        observations=short(env.observation_space),
        modes=", ".join(f"`{mode}`" for mode in env.metadata["render_modes"]),
        entry_point=str(spec.entry_point).replace(":", "."),
        vector_entry_point=str(spec.vector_entry_point).replace(":", "."),
        others=see_also(env_id),
    ).rstrip() + "\n"  # fmt: skip


def class_of(spec: Any) -> type:
    """The class behind an entry point."""
    module, _, name = spec.entry_point.partition(":")
    return getattr(importlib.import_module(module), name)


def short(space: Any) -> str:
    """A space without the numbers of long bounds."""
    if isinstance(space, gym.spaces.Box):
        same = (space.low.min(), space.high.max()) == (space.low.max(), space.high.min())
        bounds = f"{space.low.min():g}, {space.high.max():g}" if same else "low, high"
        return f"Box({bounds}, {space.shape}, {space.dtype})"
    return str(space)


def described(env_id: str) -> tuple[str, str]:
    """What the film shows, and the arguments that make the demo show it."""
    if env_id not in pretrained.available():
        return f"An episode of `{env_id}` under a scripted policy", ""
    about = pretrained.about(env_id)
    score = f"{about['mean_return']:.1f} ± {about['std_return']:.1f} over {about['episodes']} episodes"
    where = "" if about["trained_on"] == env_id else f" on `{about['trained_on']}`"
    made = f"A policy that {about['algorithm']} trained{where} in {about['env_steps']:,} steps"
    return f"{made}; it earns {score}", " --policy trained"


def see_also(env_id: str) -> str:
    """Links to the pages of the other ids of the same class."""
    same = [i for i in ids() if gym.spec(i).entry_point == gym.spec(env_id).entry_point and i != env_id]
    return "Other settings of this world: " + ", ".join(f"[{i}]({i}.md)" for i in same) + "." if same else ""


def film(env_id: str) -> None:
    """Writes the GIF of one id, smaller than the demo's."""
    from PIL import Image

    trained = env_id in pretrained.available()
    seed = usual_seed(env_id) if trained else 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.gif"
        policy = ["--policy", "trained" if trained else "scripted"]
        assert demo.main(["--env", env_id, *policy, "--seed", str(seed), "--output", str(path)]) == 0
        with Image.open(path) as found:
            shrink(found, FILMS / f"{env_id}.gif")


def usual_seed(env_id: str) -> int:
    """The first seed whose episode earns no less than the policy's mean: most do, and a film should not mislead."""
    policy, mean, env = pretrained.load(env_id), pretrained.about(env_id)["mean_return"], gym.make(env_id)
    for seed in itertools.count():
        observation, _ = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy.predict(observation)[0])
            total, over = total + float(reward), terminated or truncated
        if total >= mean:
            break
    return seed


def shrink(found: Any, path: Path) -> None:
    """Writes a GIF with smaller and fewer frames: at most about ten a second and sixty in all."""
    from PIL import Image

    frames, times = [], []
    for index in range(found.n_frames):
        found.seek(index)
        frames.append(found.convert("RGB"))
        times.append(found.info["duration"])
    step = max(1, round(100 / times[0]), -(-len(frames) // 60))
    kept = [*range(0, len(frames) - 1, step), len(frames) - 1]
    size = (WIDTH, round(WIDTH * frames[0].height / frames[0].width))
    small = [frames[i].resize(size, Image.Resampling.LANCZOS) for i in kept]
    palette = few_colors(small[len(small) // 2], 75, method=Image.Quantize.MAXCOVERAGE, kmeans=2)
    first, *rest = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    durations = [sum(times[a:b]) for a, b in zip(kept, [*kept[1:], len(frames)], strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    first.save(path, save_all=True, append_images=rest, duration=durations, loop=0, optimize=True)


def main(argv: list[str] | None = None) -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--films", nargs="*", metavar="ID", help="ids whose pictures are made anew")
    arguments = parser.parse_args(argv)
    FOLDER.mkdir(exist_ok=True)
    for env_id in ids():
        if arguments.films == [] or env_id in (arguments.films or ()):
            film(env_id)
        (FOLDER / f"{env_id}.md").write_text(page(env_id), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
