"""stable-baselines3 companions."""
