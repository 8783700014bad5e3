"""`report.html`: an evaluation as one web page that needs nothing from elsewhere, and can be printed."""

from hira.evaluation.page.page import page

__all__ = ["page"]
