"""Ape-X: distributed prioritized experience replay (Horgan et al. 2018), standalone."""
