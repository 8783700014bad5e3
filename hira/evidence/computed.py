"""Claims that rest on a computation: numbers by value and names in what it printed, and no literal printed back."""

import ast
import re
from collections.abc import Sequence

from hira.evidence.meeting import places
from hira.evidence.statement import Statement, Token, statement
from hira.evidence.wording import folded

_LONGEST = 200_000


def printed(claim: Statement, output: str, program: str, question: str) -> tuple[list[Token], str]:
    """The tokens of a claim that the output does not hold, and the line that holds most of them.

    Numbers and names suffice; a name may also stand in the question or in the program. A claim without either needs
    its words.
    """
    lines = [line for line in output[:_LONGEST].splitlines() if line.strip()]
    told = [statement(line) for line in lines]
    slots = [
        one
        for one in claim.tokens
        if one.sort in ("number", "date", "cjk") or (one.sort == "name" and not (one.lead and claim.has_verb))
    ]
    slots = slots or [one for one in claim.tokens if one.sort == "name"] or list(claim.tokens)
    asked = statement(question)
    slots = [one for one in slots if not (one.quantity and places(one, asked))] or slots
    figures = any(one.quantity or one.date for one in slots)
    around = folded(f"{question}\n{program}")
    held = {one: [line for line in told if _prints(one, line)] for one in slots}
    missing = [
        one for one in slots
        if not held[one] and not (figures and one.sort in ("name", "cjk") and one.key in around)
    ]  # fmt: skip
    best = max(told, key=lambda line: sum(line in found for found in held.values()), default=None)
    return missing, best.text if best and any(held.values()) else ""


def _prints(token: Token, line: Statement) -> bool:
    if token.quantity:
        return any(one.quantity and token.quantity.held_by(one.quantity, bare=True) for one in line.tokens) or bool(
            places(token, line)
        )
    return bool(places(token, line))


def repeated(line: str, program: str) -> bool:
    """Whether a line of output is no more than literals that the program was written with.

    What a program chose is evidence: a literal that stands in a list, table or text with others that were not printed.
    A figure is no literal because each of its digits is one: 32 is not 3 and 2.
    """
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError):
        return False
    chosen = _among(tree, line)
    rest = line
    for text in sorted(_literals(tree) - chosen, key=len, reverse=True):
        rest = re.sub(rf"(?<!\d){text}(?!\d)", " ", rest) if text.isdigit() else rest.replace(text, " ")
    return not re.search(r"\w", rest)


def _literals(tree: ast.AST) -> set[str]:
    """The texts and numbers of a program as they are printed; of a text its lines, and the words between blanks."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | int | float)
            and not isinstance(node.value, bool)
        ):
            text = str(node.value).strip()
            found |= {line.strip() for line in text.splitlines()} | {text}
    return found - {""}


def _among(tree: ast.AST, line: str) -> set[str]:
    """Literals of collections, and lines of texts, of which some were not printed."""
    found: set[str] = set()
    for node in ast.walk(tree):
        parts: Sequence[ast.expr | None] = ()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = [*node.keys, *node.values]
        texts = {text for part in parts if part for text in _literals(part)}
        if texts and any(text not in line for text in texts):
            found |= texts
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value.strip():
            found |= _literals(node)
    return found
