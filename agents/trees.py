"""Observations as trees: an array, or a dict or tuple of trees, as Gymnasium's Dict and Tuple spaces give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply ``function`` to each leaf of ``tree`` (and the leaves of ``others`` in the same places).

    Args:
        function: Takes one leaf of each tree.
        tree: An array, or a dict or tuple of trees.
        *others: Trees of the same structure.

    Returns:
        The results in the structure of ``tree``.
    """
    if isinstance(tree, dict):
        return {key: tree_map(function, branch, *(other[key] for other in others)) for key, branch in tree.items()}
    if isinstance(tree, tuple):
        return tuple(tree_map(function, *branches) for branches in zip(tree, *others, strict=True))
    return function(tree, *others)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in the order of its keys and places."""
    leaves: list[Any] = []
    tree_map(leaves.append, tree)
    return leaves


def tree_take(tree: Any, index: Any) -> Any:
    """``leaf[index]`` of each leaf: a copy for an array of indices."""
    return tree_map(lambda leaf: np.asarray(leaf)[index], tree)
