"""The log of runs: a line for the start, the end and each notice of a run, without questions and answers."""

import logging

from hira.core.sanitize import printable

RUNS = logging.getLogger("hira.runs")


def log_notice(run: str, text: str) -> None:
    """Log a notice of a run in one line."""
    RUNS.info("run %s: %s", run, " ".join(printable(text).split()))
