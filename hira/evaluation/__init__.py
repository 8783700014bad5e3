"""Evaluation: data sets, metrics, judges, runs over many questions, and reproducible reports."""
