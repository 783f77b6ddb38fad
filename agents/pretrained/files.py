"""Trained policies as files: weights and a JSON text in one ``.npz``, read without executing anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

ABOUT = "about"  # name of the text among the arrays


class Saved(NamedTuple):
    """What a file holds."""

    about: dict[str, Any]  # JSON types: how it was made, and what it scores
    weights: dict[str, np.ndarray]
    observation_space: spaces.Space
    action_space: spaces.Discrete


def write(path: str | Path, saved: Saved) -> None:
    """Write a policy.

    Raises:
        ValueError: a space is none that JSON is made of here.
    """
    text = saved.about | {
        "observation_space": space_to_json(saved.observation_space),
        "action_space": space_to_json(saved.action_space),
    }
    np.savez_compressed(path, allow_pickle=False, **{ABOUT: np.array(json.dumps(text))}, **saved.weights)


def read(path: str | Path) -> Saved:
    """Read a policy.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is something else; nothing of it was executed.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        about = json.loads(str(weights.pop(ABOUT)))
        observations, actions = (space_from_json(about.pop(f"{name}_space")) for name in ("observation", "action"))
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is no trained policy ({type(error).__name__})") from error
    return Saved(about, weights, observations, actions)


def space_to_json(space: spaces.Space) -> dict[str, Any]:
    """A Box, Discrete or MultiDiscrete as JSON types, infinite bounds as Python's json writes them."""
    if isinstance(space, spaces.Box):
        return {"kind": "Box", "low": space.low.tolist(), "high": space.high.tolist(), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    raise ValueError(f"the space must be a Box, Discrete or MultiDiscrete, not {space}")


def space_from_json(data: dict[str, Any]) -> Any:
    """The space again.

    Raises:
        ValueError: it is of another kind.
    """
    kind, values = data["kind"], {name: value for name, value in data.items() if name != "kind"}
    if kind == "Box":
        dtype = np.dtype(values["dtype"])
        low, high = (np.array(values[name], dtype) for name in ("low", "high"))
        return spaces.Box(low, high, dtype=dtype.type)
    if kind not in ("Discrete", "MultiDiscrete"):
        raise ValueError(f"the space must be a Box, Discrete or MultiDiscrete, not {kind!r}")
    return spaces.Discrete(**values) if kind == "Discrete" else spaces.MultiDiscrete(**values)
