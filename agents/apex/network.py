"""The dueling network, and how observations of any space become its input."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, relu

BOUNDLESS = 1e6  # a Box's bound of this size or more says nothing about what to expect


def feature_array(space: spaces.Space, obs: Any) -> np.ndarray:
    """Turn a batch of observations into network input: numbers as they are, categories as one-hot vectors.

    The same order of values as Gymnasium's ``flatten``, for whole batches at once.

    Args:
        space: space of one observation.
        obs: array (N, ...), or a dict or tuple of such arrays for composite spaces.

    Returns:
        (N, F), float32, F being Gymnasium's ``flatdim`` of the space; may share memory with ``obs``.

    Raises:
        ValueError: no network can read such a space, or a category is none of its space's.
    """
    if isinstance(space, spaces.Box):
        return _numbers(obs)
    parts = list(_parts(space, obs))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def features(space: spaces.Space, obs: Any) -> Tensor:
    """Give ``feature_array`` as a tensor."""
    array = feature_array(space, obs)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _parts(space: spaces.Space, obs: Any) -> Iterable[np.ndarray]:
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        yield _numbers(obs)
    elif isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, obs[key])
    elif isinstance(space, spaces.Tuple):
        for part, values in zip(space.spaces, obs, strict=True):
            yield from _parts(part, values)
    elif isinstance(space, spaces.Discrete):
        yield _one_hot(obs, int(space.start), int(space.n))
    elif isinstance(space, spaces.MultiDiscrete):
        table = np.asarray(obs).reshape(len(obs), -1)  # (N, K)
        for column, (start, size) in enumerate(zip(space.start.ravel(), space.nvec.ravel(), strict=True)):
            yield _one_hot(table[:, column], int(start), int(size))
    else:
        raise ValueError(f"Ape-X cannot read {space}; legal are Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple")


def _numbers(values: Any) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(values).reshape(len(values), -1), dtype=np.float32)


def _one_hot(values: Any, start: int, size: int) -> np.ndarray:
    index = np.asarray(values, dtype=np.int64).ravel() - start
    legal = (index >= 0) & (index < size)
    if not legal.all():
        raise ValueError(f"category {index[~legal][0] + start} is none of {start} to {start + size - 1}")
    return np.eye(size, dtype=np.float32)[index]


def input_range(space: spaces.Space) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of each feature, (F,) each: of a Box's bounds where both are finite, else 0 and 1."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        middles, halves = zip(*(input_range(part) for part in parts), strict=True)
        return np.concatenate(middles), np.concatenate(halves)
    middle, half = np.zeros(flatdim(space)), np.ones(flatdim(space))
    if isinstance(space, spaces.Box):
        low, high = space.low.ravel().astype(float), space.high.ravel().astype(float)
        bounded = (abs(low) < BOUNDLESS) & (abs(high) < BOUNDLESS) & (low < high)
        middle[bounded] = (low[bounded] + high[bounded]) / 2
        half[bounded] = (high[bounded] - low[bounded]) / 2
    return middle, half


class DuelingNetwork(nn.Module):
    """Action values as state value plus centred advantages: Q = V + A - mean over actions of A.

    Wang et al. 2016 (arXiv 1511.06581), eq. 9. The mean is over the actions of the same observation and carries
    gradient, so that a row's values never depend on its neighbours.

    Args:
        middle: of each feature's range, (F,).
        half: half the width of each range, (F,); inputs are first brought to -1..1 by both.
        num_actions: number of action values.
        hidden_sizes: units of each layer shared by value and advantage.
        layer_norm: normalise each layer before its ReLU.
    """

    def __init__(
        self, middle: np.ndarray, half: np.ndarray, num_actions: int, hidden_sizes: tuple[int, ...], layer_norm: bool
    ) -> None:
        super().__init__()
        self.register_buffer("scale", torch.from_numpy(1 / half).float())
        self.register_buffer("offset", torch.from_numpy(-middle / half).float())
        sizes = (len(middle), *hidden_sizes)
        self.body = nn.ModuleList(nn.Linear(size, units) for size, units in pairwise(sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(units) for units in hidden_sizes if layer_norm)
        self.value = nn.Linear(sizes[-1], 1)
        self.advantage = nn.Linear(sizes[-1], num_actions)
        # functions on these are four times faster than calls of so many small modules
        self._linear = [(layer.weight, layer.bias) for layer in (*self.body, self.value, self.advantage)]
        self._norm = [(layer.normalized_shape, layer.weight, layer.bias) for layer in self.norms]

    scale: Tensor
    offset: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Give the action values (N, A) of inputs (N, F)."""
        x = torch.addcmul(self.offset, x, self.scale)
        *body, value, advantage = self._linear
        for (weight, bias), norm in zip_longest(body, self._norm):
            x = linear(x, weight, bias)
            x = relu(layer_norm(x, *norm) if norm else x)
        a = linear(x, *advantage)  # (N, A)
        return linear(x, *value) + a - a.mean(dim=1, keepdim=True)


def make_network(
    observation_space: spaces.Space,
    action_space: spaces.Space,
    hidden_sizes: tuple[int, ...],
    layer_norm: bool,
    seed: int,
) -> DuelingNetwork:
    """Build the network with initial weights that depend on the seed alone; torch's own generator is left as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DuelingNetwork(*input_range(observation_space), flatdim(action_space), hidden_sizes, layer_norm)


class FlatParameters:
    """All parameters of a network as one vector, and their gradients as another; the network uses their memory.

    Clipping, Adam and target moves then are one operation each instead of one per parameter.

    Attributes:
        vector: (P,), in the order of ``network.parameters()``.
        gradient: (P,), filled by ``backward``.
    """

    def __init__(self, network: nn.Module) -> None:
        parameters = list(network.parameters())
        self.vector = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))
        self.gradient = self.vector.grad = torch.zeros_like(self.vector)
        sizes = [p.numel() for p in parameters]
        parts = zip(parameters, self.vector.data.split(sizes), self.gradient.split(sizes), strict=True)
        for p, values, gradient in parts:
            p.data, p.grad = values.view_as(p), gradient.view_as(p)


def to_arrays(network: nn.Module) -> dict[str, np.ndarray]:
    """Copy the network's parameters into NumPy arrays by name."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def load_arrays(network: nn.Module, arrays: dict[str, np.ndarray]) -> None:
    """Copy arrays by name into the network's parameters, in place."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            value.copy_(torch.from_numpy(arrays[name]))
