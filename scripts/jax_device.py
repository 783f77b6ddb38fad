"""Where JAX runs, for the scripts that let their user choose."""

from __future__ import annotations

from typing import Any

from gym_custom.programs.arguments import WrongArguments


def on_device(name: str | None) -> Any:
    """JAX, running on the processor ("cpu"), on a graphics card ("gpu"), or where it likes (None).

    Raises:
        WrongArguments: JAX is not installed or finds no such device.
    """
    try:
        import jax
    except ImportError:
        raise WrongArguments("this needs JAX: pip install --editable '.[jax]'") from None
    if name is not None:
        try:
            jax.config.update("jax_default_device", jax.devices(name)[0])
        except RuntimeError:
            raise WrongArguments(f"JAX finds no {name} here; it has {jax.devices()}") from None
    return jax
