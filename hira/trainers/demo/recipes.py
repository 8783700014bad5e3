"""The demos by name, as `hira-train demo --recipe` takes them."""

from pathlib import Path

from hira.core.errors import UsageError
from hira.trainers.demo.cited import CITED
from hira.trainers.demo.marsrl.recipe import MARSRL
from hira.trainers.demo.matpo.recipe import MATPO
from hira.trainers.demo.recipe import TINY, DemoRecipe
from hira.trainers.demo.rubric.recipe import RUBRIC

DEMOS: dict[str, DemoRecipe] = {one.name: one for one in (MATPO, MARSRL, RUBRIC, CITED)}


def chosen(recipe: str | None, model: str, folder: Path) -> tuple[DemoRecipe, str]:
    """The demo of a recipe's name with the base that it trains: `tiny`, a GGUF file or a model's folder in `folder`, or
    the name of a packaged model. Raises `UsageError` for a recipe that does not exist or does not take the model."""
    if recipe is None:
        recipe = MATPO.name if model == TINY else CITED.name
    if recipe not in DEMOS:
        raise UsageError(f"there is no demo of the recipe {recipe!r}", fix=f"there are: {', '.join(DEMOS)}")
    found = DEMOS[recipe]
    if found.pretrained == (model == TINY):
        fix = f"take --model smollm2 --recipe {CITED.name}, or leave --model out"
        raise UsageError(f"the recipe {recipe!r} does not train the model {model!r}", fix=fix)
    own = folder / Path(model).expanduser()
    return found, str(own) if model != TINY and own.exists() else model
