"""What a question does with a column: a total, an average, the highest, how many."""

import re

UP = "rise|rose|grow|grew|increase|climb|gain"
DOWN = "fall|fell|drop|decline|decrease|shrink|shrank|lose|sink|sank"
MOVES = f"{UP}|{DOWN}|change|differ"
EXTREMES = frozenset({"highest", "lowest", "earliest", "latest"})
OPERATIONS = (
    ("difference", r"\bhow (?:many|much) (?:more|fewer|less|\w+er)\b(?! than).*\bthan\b"),
    ("difference", r"\bdifference\b|\bby how (?:much|many)\b"),
    ("difference", rf"\bhow much\b.*\b(?:{MOVES})(?:e?d|s)?\b.*\b(?:from|between)\b.*\b(?:to|and)\b"),
    ("difference", rf"\b(?:{MOVES}|growth)\b (?:in|of)\b.*\b(?:from|between)\b.*\b(?:to|and)\b"),
    ("average", r"\b(?:average|mean)\b"),
    ("median", r"\bmedian\b"),
    ("total", r"\b(?:total|sum|altogether|(?:all )?together|combined|in all(?=\s*(?:[?.,;]|$)))\b|\ball told\b"),
    ("earliest", r"\b(?:oldest|earliest)\b"),
    ("latest", r"\b(?:youngest|newest|latest)\b"),
    (
        "highest",
        r"\b(?:max(?:imum)?|highest|largest|biggest|(?<!\bat )most|(?:long|tall|great|deep|heavi|fast|dear)est)\b",
    ),
    ("lowest", r"\b(?:min|minimum|lowest|smallest|(?<!\bat )least|fewest|shortest|cheapest|lightest|slowest)\b"),
    ("number", r"\b(?:how many|how much|number of|count)\b"),
)


def operation(question: str) -> str:
    """What is asked of a column: "total", "average", …; empty if nothing is, or two things at once are."""
    asked = {name for name, form in OPERATIONS if re.search(form, question.lower())}
    if "difference" in asked:
        return "difference" if asked <= {"difference", "number"} else ""
    if asked == {"number", "total"}:
        return "number"
    others = asked - {"number"}
    return (others or asked).pop() if len(others) < 2 and asked else ""


def explicit(question: str) -> bool:
    """Whether a sum is asked for in a word: "together", "in total"."""
    return any(re.search(form, question.lower()) for name, form in OPERATIONS if name == "total")


def aggregated(asked: str, values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if asked == "average":
        return sum(values) / len(values)
    if asked == "median":
        return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return sum(values)
