"""Evaluation: data sets, metrics, judges, runs over many questions, and reports that can be had again."""
