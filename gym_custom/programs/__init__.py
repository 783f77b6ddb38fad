"""The programs behind ``python -m gym_custom``: demo, play and check."""
