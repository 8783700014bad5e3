"""Rubrics: what a report is judged by, and how one is written (rubrics paper, section 3)."""
