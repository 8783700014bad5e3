"""Recipes: which workflow is trained, how its rollouts are paid, how that is credited to its roles. One file each."""

from hira.trainers.recipes import grpo, mams, mars, marsrl, matpo, rubric
from hira.trainers.recipes.recipe import Recipe

RECIPES: dict[str, Recipe] = {
    one.name: one for one in (grpo.RECIPE, matpo.RECIPE, mars.RECIPE, marsrl.RECIPE, rubric.RECIPE, mams.RECIPE)
}

__all__ = ["RECIPES", "Recipe"]
