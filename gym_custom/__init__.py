"""Worlds for Gymnasium whose rules are written once."""
