"""The network once more in plain NumPy: an actor asks it at every step, where torch's calls cost more than its sums."""

from __future__ import annotations

import numpy as np

NORM_EPSILON = 1e-5  # of torch's layer_norm


class FrozenNetwork:
    """Action values of fixed weights: those of ``DuelingNetwork``, to rounding.

    What depends on the weights alone is worked out once. Normalisation subtracts each row's mean over the units: the
    same comes of weights whose mean over the units is taken out. Value and centred advantages are one matrix.

    Args:
        arrays: weights by name, as ``to_arrays`` gives them; not changed, and not kept.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._scale, self._offset = arrays["scale"].copy(), arrays["offset"].copy()
        advantage, bias = arrays["advantage.weight"], arrays["advantage.bias"]
        self._head = _columns(
            arrays["value.weight"] + advantage - advantage.mean(axis=0), arrays["value.bias"] + bias - bias.mean()
        )
        self._normed = "norms.0.weight" in arrays
        self._layers = [self._layer(arrays, i) for i in range(sum(_is_layer(name) for name in arrays))]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Give the action values (N, A) of inputs (N, F), float32."""
        x = x * self._scale
        x += self._offset
        for weight, bias, *norm in self._layers:
            x = x @ weight
            x += bias
            if norm:
                _normalise(x, *norm)
            np.maximum(x, 0.0, out=x)
        weight, bias = self._head
        x = x @ weight
        x += bias
        return x

    def _layer(self, arrays: dict[str, np.ndarray], i: int) -> tuple[np.ndarray, ...]:
        weight, bias = arrays[f"body.{i}.weight"], arrays[f"body.{i}.bias"]
        if not self._normed:
            return _columns(weight, bias)
        parts = _columns(weight - weight.mean(axis=0), bias - bias.mean())
        mean = np.full(len(bias), 1 / len(bias), np.float32)  # a product with it is faster than a sum over units
        return (*parts, mean, arrays[f"norms.{i}.weight"].copy(), arrays[f"norms.{i}.bias"].copy())


def _is_layer(name: str) -> bool:
    return name.startswith("body.") and name.endswith(".weight")


def _columns(weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (F, U) and bias (U,) from torch's (U, F) and (U,), as new arrays."""
    return weight.T.copy(order="C"), bias.copy()


def _normalise(x: np.ndarray, mean: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> None:
    """Layer normalisation of rows (N, U) whose mean is 0 already, in place (Ba et al. 2016, arXiv 1607.06450)."""
    deviation = (x * x) @ mean  # (N,)
    deviation += NORM_EPSILON
    np.sqrt(deviation, out=deviation)
    x /= deviation[:, None]
    x *= gain
    x += shift
