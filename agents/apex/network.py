"""The dueling network, its parameters as vectors and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, relu

from agents.apex.features import feature_array, input_range
from agents.apex.images import KERNEL, PADDING, STRIDE, Image, images_in, rest
from agents.apex.noise import LayerNoise


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
        images: where pictures lie in the input; each goes through convolutions of its own first.
        conv_channels: of these convolutions.
        noisy_sigma: first spread of the weights' noise; None for a network that knows no noise.
    """

    def __init__(
        self,
        middle: np.ndarray,
        half: np.ndarray,
        num_actions: int,
        hidden_sizes: tuple[int, ...],
        layer_norm: bool,
        images: Sequence[Image] = (),
        conv_channels: tuple[int, ...] = (),
        noisy_sigma: float | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("scale", torch.from_numpy(1 / half).float())
        self.register_buffer("offset", torch.from_numpy(-middle / half).float())
        self._images, self._rest = images, rest(len(middle), images)
        if images:
            self.register_buffer("images", torch.tensor([list(map(int, image)) for image in images]))
            self.conv = nn.ModuleList(_convolutions(image.channels, conv_channels) for image in images)
        seen = sum(image.flat(conv_channels) for image in images)
        sizes = (seen + sum(stop - start for start, stop in self._rest), *hidden_sizes)
        self.body = nn.ModuleList(nn.Linear(size, units) for size, units in pairwise(sizes))
        self.norms = nn.ModuleList(nn.LayerNorm(units) for units in hidden_sizes if layer_norm)
        self.value = nn.Linear(sizes[-1], 1)
        self.advantage = nn.Linear(sizes[-1], num_actions)
        layers = [*self.body, self.value, self.advantage]
        spreads = [_sigmas(layer, noisy_sigma) for layer in layers if noisy_sigma is not None]
        self.sigmas = nn.ModuleList(spreads)
        # functions on these are four times faster than calls of so many small modules
        self._linear: list[tuple[Tensor, Tensor]] = [(layer.weight, layer.bias) for layer in layers]
        self._sigma: list[tuple[Tensor, Tensor]] = [(layer.weight, layer.bias) for layer in spreads]
        self._norm = [(layer.normalized_shape, layer.weight, layer.bias) for layer in self.norms]

    scale: Tensor
    offset: Tensor

    @property
    def noise_shapes(self) -> list[tuple[int, int]]:
        """Shapes (U, F) of the layers that take noise, as ``draw_noise`` takes them."""
        return [(len(bias), weight.numel() // len(bias)) for weight, bias in self._sigma]

    def forward(self, x: Tensor, noise: list[LayerNoise] | None = None) -> Tensor:
        """Give the action values (N, A) of inputs (N, F), with noise in the weights or with their means."""
        x = torch.addcmul(self.offset, x, self.scale)
        if self._images:
            x = self._look(x)
        *body, value, advantage = self._linear if noise is None else self._perturbed(noise)
        for (weight, bias), norm in zip_longest(body, self._norm):
            x = linear(x, weight, bias)
            x = relu(layer_norm(x, *norm) if norm else x)
        a = linear(x, *advantage)  # (N, A)
        return linear(x, *value) + a - a.mean(dim=1, keepdim=True)

    def _look(self, x: Tensor) -> Tensor:
        """Put what the convolutions see in place of the pictures, behind the other features."""
        parts = [x[:, start:stop] for start, stop in self._rest]
        for image, layers in zip(self._images, self.conv, strict=True):
            picture = x[:, image.start : image.stop].view(len(x), *image.shape)
            picture = picture if image.channels_first else picture.permute(0, 3, 1, 2)  # (N, C, H, W)
            for layer in layers:  # type: ignore[attr-defined]  # a ModuleList
                picture = relu(layer(picture))
            parts.append(picture.permute(0, 2, 3, 1).flatten(1))
        return torch.cat(parts, dim=1)

    def _perturbed(self, noise: list[LayerNoise]) -> list[tuple[Tensor, Tensor]]:
        """Weights and biases with noise: Fortunato et al. 2018 (arXiv 1706.10295), eq. 9, 10 and 11."""
        layers = []
        for (weight, bias), (sigma, sigma_bias), drawn in zip(self._linear, self._sigma, noise, strict=True):
            inputs, outputs = torch.from_numpy(drawn.inputs), torch.from_numpy(drawn.outputs)
            layers.append((weight + sigma * torch.outer(outputs, inputs), bias + sigma_bias * outputs))
        return layers


def _convolutions(channels: int, conv_channels: tuple[int, ...]) -> nn.ModuleList:
    """Layers that each halve a picture: 3 x 3 windows, two apart."""
    sizes = (channels, *conv_channels)
    return nn.ModuleList(nn.Conv2d(a, b, KERNEL, STRIDE, PADDING) for a, b in pairwise(sizes))


def _sigmas(layer: nn.Linear, sigma: float) -> nn.Linear:
    """The noise's first spread: sigma / sqrt(inputs), section 3.2 of Fortunato et al."""
    spread = nn.Linear(layer.in_features, layer.out_features)
    for parameter in spread.parameters():
        nn.init.constant_(parameter, sigma / layer.in_features**0.5)
    return spread


def make_network(
    observation_space: spaces.Space,
    action_space: spaces.Space,
    hidden_sizes: tuple[int, ...],
    layer_norm: bool,
    seed: int,
    conv_channels: tuple[int, ...] = (),
    noisy_sigma: float | None = None,
) -> DuelingNetwork:
    """Build the network with initial weights that depend on the seed alone; torch's own generator is left as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        ranges, images = input_range(observation_space), images_in(observation_space)
        size = flatdim(action_space)
        return DuelingNetwork(*ranges, size, hidden_sizes, layer_norm, images, conv_channels, noisy_sigma)


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
