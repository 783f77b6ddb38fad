"""stable-baselines3 companions: native vector envs for its algorithms, and prioritized replay that it lacks."""

from agents.sb3.vec_env import NativeVecEnv, make_vec_env, same_step_env

__all__ = ["NativeVecEnv", "make_vec_env", "same_step_env"]
