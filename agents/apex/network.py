"""The dueling network, its parameters as vectors and as arrays."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, relu

from agents.apex.features import feature_array, input_range


def features(space: spaces.Space, obs: Any) -> Tensor:
    """Give ``feature_array`` as a tensor."""
    array = feature_array(space, obs)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


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
