"""Preferences of people between two reports, and how well a way of scoring reports agrees with them (rubrics paper,
sections 3.2 and 4, appendix E)."""
