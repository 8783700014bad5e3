"""Random changes to the files that docs/papers.md names, for `benchmarks/mutations.py --random`.

Four kinds, drawn equally often: an operator becomes its neighbour, a number or truth value another one, a condition
always or never holds, a line of a prompt is dropped. Decorators, annotations, docstrings and f-strings are left alone:
a change there is not one of behaviour, or has no place of its own. So are assertions, with `strict` of `zip`, and what
is raised, which is the text of a message. The last unit of a limit decides nothing: a number of 100 and more is
doubled, and a comparison with a constant of the module is turned round.
"""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROMPT = re.compile(r'Prompt\(__file__, "(\w+)"')
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}
LARGE = 100


@dataclass(frozen=True)
class Mutant:
    """A change of one place, in a `line`: the bytes from `start` to `end` of a file become `new`."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.old.strip()[:90]!r} -> {self.new[:90]!r}"

    def apply(self, text: bytes) -> bytes:
        return text[: self.start] + self.new.encode() + text[self.end :]


def draw_mutants(root: Path, files: list[str], many: int, seed: int) -> list[Mutant]:
    """Draw `many` different changes to these files and to the prompts that their modules send."""
    kinds: dict[str, list[Mutant]] = {}
    for file in sorted({*files, *find_prompts(root, files)}):
        for mutant in find_mutants(root, file):
            kinds.setdefault(mutant.kind, []).append(mutant)
    chance = random.Random(seed)
    for mutants in kinds.values():
        chance.shuffle(mutants)
    drawn = []
    while len(drawn) < many and any(kinds.values()):
        kind = chance.choice(sorted(kind for kind, mutants in kinds.items() if mutants))
        drawn.append(kinds[kind].pop())
    return drawn


def find_prompts(root: Path, files: list[str]) -> dict[str, str]:
    """The prompts that the modules among these files send, with the module of each."""
    found = {}
    for file in files:
        if file.endswith(".py"):
            for name in PROMPT.findall((root / file).read_text(encoding="utf-8")):
                found[str(Path(file).parent / f"{name}.md")] = file
    return {prompt: file for prompt, file in found.items() if (root / prompt).is_file()}


def find_mutants(root: Path, file: str) -> Iterator[Mutant]:
    text = (root / file).read_text(encoding="utf-8")
    if file.endswith(".md"):
        start = 0
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if line.strip() and not line.startswith("## "):
                yield Mutant(file, number, "prompt", start, start + len(line.encode()), line, "")
            start += len(line.encode())
    elif file.endswith(".py"):
        yield from _find_in_code(file, text)


def _find_in_code(file: str, text: str) -> Iterator[Mutant]:
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def change(kind: str, node: ast.expr, new: str) -> Mutant:
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        start = starts[node.lineno - 1] + node.col_offset
        return Mutant(file, node.lineno, kind, start, end, ast.unparse(node), new)

    for node in _walk(ast.parse(text)):
        for kind, place, new in [*_find_conditions(node), *_find_operators(node)]:
            yield change(kind, place, new)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield change("constant", node, repr(_alter(node.value)))


def _alter(value: float) -> float:
    if isinstance(value, bool):
        return not value
    return value + 1 if (isinstance(value, int) and value < LARGE) or not value else value * 2


def _find_conditions(node: ast.AST) -> Iterator[tuple[str, ast.expr, str]]:
    if isinstance(node, ast.If | ast.IfExp) and ast.unparse(node.test) != "TYPE_CHECKING":
        yield "condition", node.test, "True"
        yield "condition", node.test, "False"
    elif isinstance(node, ast.comprehension):
        yield from (("condition", test, "True") for test in node.ifs)


def _find_operators(node: ast.AST) -> Iterator[tuple[str, ast.expr, str]]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "operator", node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BoolOp | ast.BinOp) and (swap := SWAPS.get(type(node.op))):
        yield "operator", node, f"({ast.unparse(_copy(node, op=swap()))})"
    elif isinstance(node, ast.Compare):
        limited = any(isinstance(side, ast.Name) and side.id.isupper() for side in (node.left, *node.comparators))
        swaps = SWAPS | OPPOSITES if limited else SWAPS
        for at, op in enumerate(node.ops):
            if swap := swaps.get(type(op)):
                ops = [*node.ops[:at], swap(), *node.ops[at + 1 :]]
                yield "operator", node, f"({ast.unparse(_copy(node, ops=ops))})"


def _copy(node: ast.expr, **changed: object) -> ast.expr:
    return type(node)(**{**dict(ast.iter_fields(node)), **changed})


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose change is one of behaviour: no annotation, decorator, type alias, docstring or f-string."""
    skipped = isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise)
    if skipped or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                if isinstance(child, ast.BinOp) and isinstance(child.op, ast.BitOr):
                    continue  # mostly a union of types
                yield from _walk(child)
