"""Async programs over roles, each reading like its paper's algorithm."""
