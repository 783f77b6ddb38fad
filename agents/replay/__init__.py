"""Prioritized, uniform and hindsight replay memories."""
