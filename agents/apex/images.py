"""Pictures among the observations: where in the network's input they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from agents.apex.features import input_range

KERNEL, STRIDE, PADDING = 3, 2, 1
"""Of all convolutions: each halves a picture, whatever its size."""


class Image(NamedTuple):
    """One picture in a row of network input."""

    start: int  # of its values in the row
    height: int
    width: int
    channels: int
    channels_first: bool

    @property
    def stop(self) -> int:
        """Where its values end."""
        return self.start + self.height * self.width * self.channels

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of its values."""
        size = (self.height, self.width)
        return (self.channels, *size) if self.channels_first else (*size, self.channels)

    def flat(self, conv_channels: tuple[int, ...]) -> int:
        """Number of values that come out of convolutions with so many channels."""
        shrink = STRIDE ** len(conv_channels)
        channels = conv_channels[-1] if conv_channels else self.channels
        return -(-self.height // shrink) * -(-self.width // shrink) * channels


def rest(size: int, images: Sequence[Image]) -> list[tuple[int, int]]:
    """Ranges of a row of ``size`` values that belong to no picture."""
    edges = [0, *(edge for image in images for edge in (image.start, image.stop)), size]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def images_in(space: spaces.Space, start: int = 0) -> list[Image]:
    """Find the pictures in observations: Boxes of uint8 from 0 to 255 with two axes, or three of which one is short.

    Of three axes the shortest of the outer two is taken for the channels, the last one if they are equal.

    Args:
        space: of one observation.
        start: of its values in the network's input.
    """
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        found = []
        for part in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
            found += images_in(part, start)
            start += len(input_range(part)[0])
        return found
    return [_image(space.shape or (), start)] if _is_image(space) else []


def _is_image(space: spaces.Space) -> bool:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return False
    return bool((space.low == 0).all() and (space.high == 255).all())


def _image(shape: tuple[int, ...], start: int) -> Image:
    first, second, *third = shape
    if not third:
        return Image(start, first, second, 1, False)
    if first < third[0]:
        return Image(start, second, third[0], first, True)
    return Image(start, first, second, third[0], False)
