"""The dueling network, and how observations of any space become its input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor, nn


def features(space: spaces.Space, obs: Any) -> Tensor:
    """Turn a batch of observations into network input: numbers as they are, categories as one-hot vectors.

    The same order of values as Gymnasium's ``flatten``, for whole batches at once.

    Args:
        space: space of one observation.
        obs: array (N, ...), or a dict or tuple of such arrays for composite spaces.

    Returns:
        (N, F), float32, F being Gymnasium's ``flatdim`` of the space.
    """
    return torch.cat(list(_parts(space, obs)), dim=1)


def _parts(space: spaces.Space, obs: Any) -> Iterable[Tensor]:
    if isinstance(space, spaces.Dict):
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
    elif isinstance(space, (spaces.Box, spaces.MultiBinary)):
        array = np.ascontiguousarray(np.asarray(obs).reshape(len(obs), -1), dtype=np.float32)
        yield torch.from_numpy(array)
    else:
        raise ValueError(f"Ape-X cannot read {space}; legal are Box, Discrete, MultiDiscrete, MultiBinary, Dict, Tuple")


def _one_hot(values: np.ndarray, start: int, size: int) -> Tensor:
    index = torch.from_numpy(np.asarray(values, dtype=np.int64).ravel() - start)
    return nn.functional.one_hot(index, size).float()


class DuelingNetwork(nn.Module):
    """Action values as state value plus centred advantages: Q = V + A - mean over actions of A.

    Wang et al. 2016 (arXiv 1511.06581), eq. 9. The mean is over the actions of the same observation and carries
    gradient, so that a row's values never depend on its neighbours.

    Args:
        num_features: length of the input vector.
        num_actions: number of action values.
        hidden_sizes: units of each layer shared by value and advantage.
        layer_norm: normalise each layer before its ReLU.
    """

    def __init__(self, num_features: int, num_actions: int, hidden_sizes: tuple[int, ...], layer_norm: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        size = num_features
        for units in hidden_sizes:
            layers += [nn.Linear(size, units), *([nn.LayerNorm(units)] if layer_norm else []), nn.ReLU()]
            size = units
        self.body = nn.Sequential(*layers)
        self.value = nn.Linear(size, 1)
        self.advantage = nn.Linear(size, num_actions)

    def forward(self, x: Tensor) -> Tensor:
        """Give the action values (N, A) of inputs (N, F)."""
        hidden = self.body(x)
        advantage = self.advantage(hidden)  # (N, A)
        return self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)


def make_network(
    observation_space: spaces.Space,
    action_space: spaces.Discrete,
    hidden_sizes: tuple[int, ...],
    layer_norm: bool,
    seed: int,
) -> DuelingNetwork:
    """Build the network with initial weights that depend on the seed alone; torch's own generator is left as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DuelingNetwork(flatdim(observation_space), flatdim(action_space), hidden_sizes, layer_norm)


class FlatParameters:
    """All parameters of a network as one vector, and their gradients as another, sharing their memory.

    Clipping, Adam, target moves and publishing then are one operation each instead of one per parameter.
    """

    def __init__(self, network: nn.Module) -> None:
        parameters = list(network.parameters())
        self.vector = nn.Parameter(torch.cat([p.detach().reshape(-1) for p in parameters]))  # (P,)
        self.vector.grad = torch.zeros_like(self.vector)
        offset = 0
        for p in parameters:
            end = offset + p.numel()
            p.data = self.vector.data[offset:end].view_as(p)
            p.grad = self.vector.grad[offset:end].view_as(p)
            offset = end
        self.network = network


def to_arrays(network: nn.Module) -> dict[str, np.ndarray]:
    """Copy the network's parameters into NumPy arrays by name."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def load_arrays(network: nn.Module, arrays: dict[str, np.ndarray]) -> None:
    """Copy arrays by name into the network's parameters, in place."""
    with torch.no_grad():
        for name, value in network.state_dict().items():
            value.copy_(torch.from_numpy(arrays[name]))
