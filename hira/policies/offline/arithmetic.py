"""Arithmetic in a question, as a Python program and as a value."""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from hira.relevance import words

_NUMBER = r"\d+(?:\.\d+)?"
_PHRASES = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (rf"({_NUMBER})\s*(?:%|percent|per cent) of", r"\1 / 100 *"),
    (rf"square root of ({_NUMBER})", r"sqrt(\1)"),
    (r"factorial of (\d+)", r"factorial(\1)"),
    (r"(?:raised )?to the power of|\^", "**"),
    (r"\bsquared\b|²", "** 2"),
    (r"multiplied by|\btimes\b|×|·|(?<=\d) ?x ?(?=\d)", "*"),
    (r"divided by|÷", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
)
_RUN = re.compile(rf"(?:(?:sqrt|factorial)\(|{_NUMBER}|\*\*|[-+*/%()]|\s)+")
_FRAME = frozenset(words("calculate compute evaluate result value much equal answer please exact exactly"))
_SIGNS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"sqrt": math.sqrt, "factorial": math.factorial}
_LONGEST = 300
_LARGEST = 1_000


def find_expression(question: str) -> str:
    """The expression that a question wants computed, as Python writes it; empty if the question asks anything else."""
    if len(question) > _LONGEST:
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
    return found if isinstance(tree, ast.BinOp | ast.Call) else ""


def write_program(expression: str) -> str:
    """A program that prints the expression and its value in one line."""
    shown = 'f"{value:.12g}" if isinstance(value, float) else value'
    return f'from math import factorial, sqrt\n\nvalue = {expression}\nprint("{expression} =", {shown})'


def compute(expression: str) -> str:
    """The expression and its value, or why it has none."""
    try:
        value = _value_of(ast.parse(expression, mode="eval").body)
    except (ArithmeticError, ValueError) as error:
        return f"{expression} cannot be computed: {error}."
    return f"{expression} = {value:.12g}." if isinstance(value, float) else f"{expression} = {value}."


def _value_of(node: ast.AST) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value_of(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](*(_small(_value_of(one)) for one in node.args))
    if isinstance(node, ast.BinOp):
        left, right = _value_of(node.left), _value_of(node.right)
        return _SIGNS[type(node.op)](left, _small(right) if isinstance(node.op, ast.Pow) else right)
    raise ValueError("it holds more than arithmetic")


def _small(value: Any) -> Any:
    if abs(value) > _LARGEST:
        raise ValueError(f"{value} is too large here")
    return value
