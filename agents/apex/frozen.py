"""The network once more in plain NumPy: an actor asks it at every step, where torch's calls cost more than its sums."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from agents.apex.images import KERNEL, PADDING, STRIDE, Image, rest

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
        self._images = [Image(*image.tolist()) for image in arrays.get("images", ())]
        self._rest = rest(len(self._scale), self._images)
        self._conv = [_conv_layers(arrays, i) for i in range(len(self._images))]
        self._normed = "norms.0.weight" in arrays
        self._layers = [self._layer(arrays, i) for i in range(sum(_is_layer(name) for name in arrays))]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Give the action values (N, A) of inputs (N, F), float32."""
        x = x * self._scale
        x += self._offset
        if self._images:
            x = self._look(x)
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

    def _look(self, x: np.ndarray) -> np.ndarray:
        """Put what the convolutions see in place of the pictures, behind the other features."""
        parts = [x[:, start:stop] for start, stop in self._rest]
        for image, layers in zip(self._images, self._conv, strict=True):
            picture = x[:, image.start : image.stop].reshape(len(x), *image.shape)
            if image.channels_first:
                picture = picture.transpose(0, 2, 3, 1)  # (N, H, W, C)
            for layer in layers:
                picture = _convolve(picture, *layer)
            parts.append(picture.reshape(len(x), -1))
        return np.concatenate(parts, axis=1)

    def _layer(self, arrays: dict[str, np.ndarray], i: int) -> tuple[np.ndarray, ...]:
        weight, bias = arrays[f"body.{i}.weight"], arrays[f"body.{i}.bias"]
        if not self._normed:
            return _columns(weight, bias)
        parts = _columns(weight - weight.mean(axis=0), bias - bias.mean())
        mean = np.full(len(bias), 1 / len(bias), np.float32)  # a product with it is faster than a sum over units
        return (*parts, mean, arrays[f"norms.{i}.weight"].copy(), arrays[f"norms.{i}.bias"].copy())


def _is_layer(name: str) -> bool:
    return name.startswith("body.") and name.endswith(".weight")


def _conv_layers(arrays: dict[str, np.ndarray], image: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (9 C, U) and biases (U,) of one picture's convolutions, from torch's (U, C, 3, 3) and (U,)."""
    count = sum(name.startswith(f"conv.{image}.") and name.endswith(".weight") for name in arrays)
    layers = ((arrays[f"conv.{image}.{i}.weight"], arrays[f"conv.{image}.{i}.bias"]) for i in range(count))
    return [_columns(weight.transpose(0, 2, 3, 1).reshape(len(weight), -1), bias) for weight, bias in layers]


def _convolve(picture: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """ReLU of a convolution of pictures (N, H, W, C): each window of the picture is a row of one product."""
    padded = np.pad(picture, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    windows = sliding_window_view(padded, (KERNEL, KERNEL), (1, 2))[:, ::STRIDE, ::STRIDE]  # (N, H', W', C, 3, 3)
    rows = windows.transpose(0, 1, 2, 4, 5, 3).reshape(*windows.shape[:3], -1)  # (N, H', W', 9 C)
    out = rows @ weight
    out += bias
    return np.maximum(out, 0.0, out=out)


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
