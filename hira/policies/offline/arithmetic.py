"""Arithmetic in a question, as a Python program."""

import ast
import re

from hira.core.bm25 import words

_NUMBER = r"\d+(?:\.\d+)?"
_PHRASES = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (rf"({_NUMBER})\s*(?:%|percent|per cent) of", r"\1 / 100 *"),
    (r"(?:raised )?to the power of|\^", "**"),
    (r"\bsquared\b|²", "** 2"),
    (r"multiplied by|\btimes\b|×|·|(?<=\d) ?x ?(?=\d)", "*"),
    (r"divided by|÷", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
)
_RUN = re.compile(rf"(?:{_NUMBER}|\*\*|[-+*/%()]|\s)+")
_FRAME = frozenset(words("calculate compute evaluate result value much equal answer please exact exactly"))


def find_expression(question: str) -> str:
    """The expression that a question wants computed, as Python writes it; empty if the question asks anything else."""
    if len(question) > 300:
        return ""
    text = question.lower()
    for phrase, symbol in _PHRASES:
        text = re.sub(phrase, symbol, text)
    run = max((match[0] for match in _RUN.finditer(text)), key=lambda one: len(one.strip()), default="")
    found = run.strip().strip("*/+%").strip()
    if [word for word in words(text.replace(run, " ")) if word not in _FRAME]:
        return ""
    try:
        tree = ast.parse(found, mode="eval").body
    except SyntaxError:
        return ""
    return found if isinstance(tree, ast.BinOp) else ""
