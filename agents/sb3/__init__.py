"""stable-baselines3 companions: native vector envs for its algorithms, and the prioritized replay that it lacks."""

from agents.extras import missing_extra

try:
    from agents.sb3.prioritized import PrioritizedDQN, PrioritizedSAC, PrioritizedTD3
    from agents.sb3.prioritized_buffer import PrioritizedReplayBuffer
    from agents.sb3.vec_env import NativeVecEnv, make_vec_env, same_step_env
except ModuleNotFoundError as error:
    raise missing_extra("agents.sb3", error) from None

__all__ = [
    "NativeVecEnv",
    "PrioritizedDQN",
    "PrioritizedReplayBuffer",
    "PrioritizedSAC",
    "PrioritizedTD3",
    "make_vec_env",
    "same_step_env",
]
