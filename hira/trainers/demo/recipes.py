"""The demos by name, as `hira-train demo --recipe` takes them."""

from hira.errors import UsageError
from hira.trainers.demo.marsrl.recipe import MARSRL
from hira.trainers.demo.matpo.recipe import MATPO
from hira.trainers.demo.recipe import DemoRecipe
from hira.trainers.demo.rubric.recipe import RUBRIC

DEMOS: dict[str, DemoRecipe] = {one.name: one for one in (MATPO, MARSRL, RUBRIC)}


def named(name: str) -> DemoRecipe:
    """Raises `UsageError` for a name that no demo has, with those that there are."""
    if name not in DEMOS:
        raise UsageError(f"there is no demo of the recipe {name!r}", fix=f"there are: {', '.join(DEMOS)}")
    return DEMOS[name]
