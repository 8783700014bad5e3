"""Training data: questions filtered as in MARS (2510.04935, appendix B), and new ones from a graph as in the rubrics
paper (section 3.2, stage 1). Nothing here loads torch."""
