"""Noisy networks: exploration by random weights, whose spread is learned (Fortunato et al. 2018, arXiv 1706.10295)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class LayerNoise(NamedTuple):
    """Factorised noise of one linear layer."""

    inputs: np.ndarray  # (F,), float32
    outputs: np.ndarray  # (U,), float32


def draw_noise(generator: np.random.Generator, shapes: list[tuple[int, int]]) -> list[LayerNoise]:
    """Draw noise for linear layers of shapes (U, F): f(x) = sign(x) sqrt(abs(x)) of normal numbers, eqs. 10 and 11."""
    return [LayerNoise(_draw(generator, inputs), _draw(generator, outputs)) for outputs, inputs in shapes]


def _draw(generator: np.random.Generator, size: int) -> np.ndarray:
    x = generator.standard_normal(size, np.float32)
    return np.sign(x) * np.sqrt(np.abs(x))


def perturbed(arrays: dict[str, np.ndarray], generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Give a network's weights with noise in them: w + sigma_w * f(e_out) f(e_in)', b + sigma_b * f(e_out); eq. 9.

    Args:
        arrays: weights by name, as ``to_arrays`` gives them, of a network with sigmas.
        generator: of the noise.
    """
    body = sum(name.startswith("body.") and name.endswith(".weight") for name in arrays)
    layers = [*(f"body.{i}" for i in range(body)), "value", "advantage"]
    changed = dict(arrays)
    noise = draw_noise(generator, [arrays[f"{layer}.weight"].shape for layer in layers])
    for i, (layer, (inputs, outputs)) in enumerate(zip(layers, noise, strict=True)):
        weight, bias = arrays[f"sigmas.{i}.weight"], arrays[f"sigmas.{i}.bias"]
        changed[f"{layer}.weight"] = arrays[f"{layer}.weight"] + weight * np.outer(outputs, inputs)
        changed[f"{layer}.bias"] = arrays[f"{layer}.bias"] + bias * outputs
    return changed
