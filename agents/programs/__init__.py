"""The programs behind ``python -m agents``: train."""
