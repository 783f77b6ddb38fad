"""Any world in JAX: pure ``reset`` and ``step``, made of the same rules that the NumPy drivers run.

>>> env = make("GridWorld-v0")
>>> state, obs = env.reset(key)
>>> state, obs, reward, terminated, truncated, info = env.step(key, state, action)

Everything may be wrapped in ``jit``, ``vmap`` and ``scan``. A key is used once in the call that it is given to.
"""

try:
    import jax  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError("gym_custom.functional needs JAX: pip install --editable '.[jax]'", name="jax") from None

from gym_custom.functional.environment import EnvState, JaxEnv, compiled_step, make
from gym_custom.functional.func_env import WorldFuncEnv, as_func_env
from gym_custom.functional.random_numbers import uniforms
from gym_custom.functional.rollouts import Rollout, rollout, rollout_uniforms
from gym_custom.functional.vector import JaxVectorEnv

__all__ = [
    "EnvState",
    "JaxEnv",
    "JaxVectorEnv",
    "Rollout",
    "WorldFuncEnv",
    "as_func_env",
    "compiled_step",
    "make",
    "rollout",
    "rollout_uniforms",
    "uniforms",
]
