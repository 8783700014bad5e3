"""The names of the recipes, for a command line that loads none of them."""

NAMES = ("grpo", "matpo", "mars")
