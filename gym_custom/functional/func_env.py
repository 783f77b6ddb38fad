"""Any world as Gymnasium's ``FuncEnv``."""

from __future__ import annotations

from typing import Any

from gymnasium.experimental.functional import FuncEnv

from gym_custom.functional.environment import EnvState, JaxEnv, make

Array = Any


def as_func_env(name: str, **kwargs: Any) -> WorldFuncEnv:
    """Any world as Gymnasium's ``FuncEnv``, for its ``FunctionalJaxEnv``.

    Args:
        name: a registered id.
        **kwargs: as for ``make``, but for ``autoreset`` and ``max_episode_steps``, which a ``FuncEnv`` has not.
    """
    if foreign := {"autoreset", "max_episode_steps"} & kwargs.keys():
        raise TypeError(f"a FuncEnv has no {min(foreign)}; Gymnasium's wrappers add it")
    return WorldFuncEnv(make(name, autoreset=False, max_episode_steps=-1, **kwargs))


class WorldFuncEnv(FuncEnv):
    """Gymnasium's functional interface over a ``JaxEnv`` without autoreset; there is no step limit in it."""

    def __init__(self, env: JaxEnv) -> None:
        self._env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        super().__init__()

    def get_default_params(self, **kwargs: Any) -> Any:
        """The world's parameters."""
        return self._env.params

    def initial(self, rng: Array, params: Any = None) -> EnvState:
        """A first state."""
        return self._env.reset(rng, params)[0]

    def transition(self, state: EnvState, action: Array, rng: Array, params: Any = None) -> EnvState:
        """The next state; a terminated one stays as it is."""
        return self._env.step(rng, state, action, params)[0]

    def observation(self, state: EnvState, rng: Array = None, params: Any = None) -> Any:
        """What the state shows."""
        return self._env.observe(state, params)

    def reward(
        self, state: EnvState, action: Array, next_state: EnvState, rng: Array = None, params: Any = None
    ) -> Array:
        """What the step earned."""
        return self._env.reward(state, action, next_state, params)

    def terminal(self, state: EnvState, rng: Array = None, params: Any = None) -> Array:
        """Whether the state ended the episode."""
        return state.terminated

    def state_info(self, state: EnvState, params: Any = None) -> dict[str, Any]:
        """The world's info entries."""
        return self._env.info(state, params)

    def transition_info(
        self, state: EnvState, action: Array, next_state: EnvState, params: Any = None
    ) -> dict[str, Any]:
        """The info entries of the state that was reached."""
        return self._env.info(next_state, params)
