"""MATPO (arXiv 2510.04678): planner and workers are one policy, and all are paid what the planner's answer earned."""

from hira.evaluation.rewards.matpo import WithFormat
from hira.trainers.credit import matpo
from hira.trainers.recipes.recipe import Recipe

RECIPE = Recipe("matpo", "matpo", matpo, WithFormat, criteria="simpleqa")
