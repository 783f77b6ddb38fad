"""What callers may hand over: looked at while JAX traces, so that it costs compiled code nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gym_custom.arguments import shown

Array = Any


def legal_dtype(dtype: Any) -> np.dtype:
    """float32, or float64 where JAX has it.

    Raises:
        TypeError: It is no dtype.
        ValueError: It is another one, or float64 without x64.
    """
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise TypeError(f"dtype must be float32 or float64, not {shown(dtype)}") from None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {found}")
    return available(found)


def available(dtype: np.dtype) -> np.dtype:
    """The dtype itself, where JAX has it at this moment.

    Raises:
        ValueError: It is float64 and x64 is off.
    """
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(f"an environment of dtype {dtype} needs jax_enable_x64, which is off")
    return dtype


def legal_key(key: Any) -> Array:
    """A single key of either of JAX's key types.

    Raises:
        TypeError: It is no key.
        ValueError: There are several.
    """
    new = hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not new and getattr(key, "dtype", None) != np.uint32:
        raise TypeError(f"key must be one of JAX's keys, such as jax.random.key(0), not {shown(key)}")
    if key.ndim != (0 if new else 1):
        raise ValueError(f"key must be a single key, not of shape {key.shape}: jax.vmap goes over many")
    return key


def legal_uniforms(u: Any, count: int, dtype: np.dtype) -> Array:
    """So many uniforms, in this dtype and still below 1.

    Raises:
        ValueError: There are more or fewer.
    """
    u = u if hasattr(u, "dtype") else np.asarray(u, np.float64)
    if u.shape != (count,):
        raise ValueError(f"u must hold {count} uniforms, of shape ({count},), not {u.shape}")
    if u.dtype == dtype:
        return u
    below_one = np.nextafter(dtype.type(1), dtype.type(0))
    return jnp.minimum(jnp.asarray(u, dtype), below_one)  # a float64 close to 1 would round up to it


def legal_params(params: Any, like: Any) -> Any:
    """Parameters of the same kind as the world's own.

    Raises:
        TypeError: They are another world's, or no parameters at all.
        ValueError: A field is of another shape.
    """
    if type(params) is not type(like):
        raise TypeError(f"params must be env.params or env.params._replace(...), not {shown(params)}")
    for name, value, own in zip(like._fields, params, like, strict=True):
        if (shape := numbers(f"params.{name}", value).shape) != own.shape:
            raise ValueError(f"params.{name} must be of shape {own.shape}, not {shape}: jax.vmap goes over many")
    return params


def numbers(name: str, value: Any) -> Array:
    """A number or numbers as an array of JAX.

    Raises:
        TypeError: It is something else.
    """
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an array, not {shown(value)}") from None
