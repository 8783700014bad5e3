"""Data to train on: questions that are filtered as MARS does (2510.04935, appendix B), and new ones made from a graph
as the rubrics paper does (section 3.2, stage 1). Nothing here loads torch."""
