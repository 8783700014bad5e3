"""The structure of hira, counted: how long the way of a call is, what a run loads, how much the code repeats itself.

    python benchmarks/structure.py            prints the table
    python benchmarks/structure.py --write    also writes results/structure.md
    python benchmarks/structure.py --list     prints the parameters, helpers and functions that three rows count

Every figure is the same on every machine. Each row says its rule; all but the first six rows read the source alone.
The runs use a folder of two documents whose index is warm, and `offline` or a scripted endpoint on this machine.
"""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hira"
RESULTS = Path(__file__).parent / "results" / "structure.md"
SHORT = 5
LONG_AGO = 1_000_000_000
HANDED_THROUGH = 4
FEW_WORDS = 12
NAMES = ("one", "found", "at", "own", "asked", "said")
VERDICTS = frozenset({"supported", "unsupported", "contradicted", "partially supported", "not checked", "unchecked"})
ABILITIES = frozenset({"reasoning-transfer", "memory", "search", "code", "multimodal"})
RECORDED = frozenset({"Message", "Completion", "ToolCall", "Observation", "Refusal", "Subtask", "Rejected", "Decision"})
OPTION = "parallel"
DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod)
PEERS = ("httpx", "pydantic", "anyio", "_pytest")
CLASSES = ("Loop", "Recovery", "Conversation", "RunContext", "Request")

Function = ast.FunctionDef | ast.AsyncFunctionDef

PAGE = """# Structure

Made by `python benchmarks/structure.py --write`.

| measured | figure |
|---|---|
{rows}
"""
TRACED = """
import json, sys
from asyncio import base_events, current_task, events
from pathlib import Path
from types import CodeType

package, home, mode, base_url = sys.argv[1:5]
OPTIMIZED = 0x1
begun, spawned, figures = {}, {}, {}

def way(frame):
    names, task = [], current_task() if events._get_running_loop() else None
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_run" and code.co_filename == events.__file__:
            break
        if code.co_filename.startswith(package) and code.co_name != "<module>":
            names.append(code.co_qualname)
        frame = frame.f_back
    return names + spawned.get(id(task.get_coro()) if task else 0, [])

def trace(frame, event, argument):
    if event != "call":
        return
    code = frame.f_code
    if code.co_filename.startswith(package):
        if code.co_flags & OPTIMIZED and code.co_name[0] != "<" and "complete" not in figures:
            begun.setdefault((code.co_filename, code.co_qualname))
        if code.co_name == "complete" and code.co_qualname.endswith("OfflinePolicy.complete"):
            figures.setdefault("complete", way(frame))
            figures.setdefault("functions", [*begun])
    elif code.co_name == "create_task" and code.co_filename == base_events.__file__:
        spawned[id(frame.f_locals.get("coro"))] = way(frame)
    elif code.co_name == "write" and code.co_qualname.endswith("_SelectorSocketTransport.write"):
        if bytes(frame.f_locals["data"][:4]) == b"POST":
            figures.setdefault("wire", way(frame))

from hira.cli import main
arguments = ["ask", "When was the tower of Varn built?", "--docs", home + "/docs", "--workflow", "react", "--quiet"]
remote = ["--model", "m", "--base-url", base_url, "--verify", "off"]
arguments += ["--model", "offline"] if mode == "offline" else remote
sys.setprofile(trace)
main(arguments)
sys.setprofile(None)
files = {name: Path(module.__file__) for name, module in list(sys.modules.items())
         if name.partition(".")[0] == "hira" and getattr(module, "__file__", None)}
lines = sum(file.read_text(encoding="utf-8").count("\\n") for file in files.values())
print(json.dumps({**figures, "modules": [*files], "lines": lines}))
"""


class Ways(NamedTuple):
    """What one `hira ask` of a kind did: the functions on the way to the policy and to the wire, the
    functions that ran before, the modules that were loaded and the lines in them."""

    complete: list[str]
    wire: list[str]
    functions: list[tuple[str, str]]
    modules: list[str]
    lines: int


def trace_ask(mode: str) -> Ways:
    """Trace `hira ask` in a process of its own; the first run only warms the index."""
    sys.path.insert(0, str(ROOT))
    from hira.testing import Endpoint

    with tempfile.TemporaryDirectory() as home, Endpoint(lambda _: "It was built in 1889.") as endpoint:
        docs = Path(home) / "docs"
        docs.mkdir()
        (docs / "tower.txt").write_text("The tower of Varn was built in 1889.\n", encoding="utf-8")
        (docs / "mill.txt").write_text("The mill of Varn stands by the river.\n", encoding="utf-8")
        for file in docs.iterdir():
            os.utime(file, (LONG_AGO, LONG_AGO))  # a file that has just changed is read again
        command = [sys.executable, "-c", TRACED, str(PACKAGE), home, mode, endpoint.base_url]
        environ = {"HOME": home, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HIRA_MODEL": "offline"}
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=home, env=environ)
        figures = json.loads(done.stdout.splitlines()[-1])
    lists = (figures.get(name, []) for name in ("complete", "wire"))
    return Ways(*lists, figures.get("functions", []), figures["modules"], figures["lines"])


@cache
def trees() -> Mapping[str, ast.Module]:
    """Each module of the package by its dotted name."""
    named = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return named


@cache
def functions() -> list[tuple[str, Function]]:
    """Each function of the package, methods included, with its module."""
    return [
        (module, node)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def count_lines(function: Function) -> int:
    """Lines from `def` to the end of the function, without its docstring."""
    first = function.body[0]
    told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    text = (first.end_lineno or 0) - first.lineno + 1 if told else 0
    return (function.end_lineno or 0) - function.lineno + 1 - text


def share_short(package: Path) -> float:
    """The share of a package's functions that have at most five lines."""
    nodes = [node for path in package.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    found = [node for node in nodes if isinstance(node, Function)]
    return sum(count_lines(function) <= SHORT for function in found) / len(found)


def find_helpers() -> list[tuple[str, Function]]:
    """Functions of at most five lines whose name the package mentions once besides the definition."""
    mentions = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    defined = Counter(function.name for _, function in functions())
    return [
        (module, function)
        for module, function in functions()
        if count_lines(function) <= SHORT and defined[function.name] == 1 and mentions[function.name] == 1
    ]


def find_imports(tree: ast.AST) -> Iterator[str]:
    """The modules of hira that the code imports, wherever the import is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in trees())
        elif isinstance(node, ast.ImportFrom) and node.module in trees():
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in trees() else str(node.module)


def find_circles() -> list[list[str]]:
    """Groups of modules that reach each other by imports."""
    graph = {module: {*find_imports(tree)} - {module, "hira"} for module, tree in trees().items() if module != "hira"}

    @cache
    def reach(start: str) -> frozenset[str]:
        reached, left = set[str](), [*graph[start]]
        while left:
            if (module := left.pop()) not in reached:
                reached.add(module)
                left += graph[module]
        return frozenset(reached)

    groups = {tuple(sorted(other for other in reach(module) if module in reach(other))) for module in graph}
    return [[*group] for group in sorted(groups) if group]


def count_back_arrows() -> int:
    """Imports inside functions, or for types alone, from a module of agents or policies to one of its circle."""
    arrows = 0
    for circle in find_circles():
        for module in circle:
            if module.split(".")[1] not in ("agents", "policies"):
                continue
            for node in ast.walk(trees()[module]):
                guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
                if guarded or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    arrows += sum(name in circle and name != module for name in find_imports(node))
    return arrows


Parameter = tuple[str, str, str]
"""A module, a function in it, and one of its parameters."""


def find_links() -> dict[Parameter, set[Parameter]]:
    """Which parameter is handed on unchanged as which of the functions that the function calls.

    A call is followed to the function of that name in its module, or to the only one in the package.
    """
    places: dict[str, list[tuple[str, Function]]] = defaultdict(list)
    for module, function in functions():
        places[function.name].append((module, function))

    def find(name: str, module: str) -> list[tuple[str, Function]]:
        near = [place for place in places.get(name, ()) if place[0] == module]
        return near if len(near) == 1 else places[name] if len(places.get(name, ())) == 1 else []

    links: dict[Parameter, set[Parameter]] = defaultdict(set)
    for module, function in functions():
        known = list_parameters(function)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            for place, callee in find(name, module):
                taken = list_parameters(callee)
                pairs = [*zip(taken, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
                for parameter, value in pairs:
                    if (
                        isinstance(value, ast.Name)
                        and value.id in known
                        and parameter in taken
                        and callee is not function
                    ):
                        links[module, function.name, value.id].add((place, name, str(parameter)))
    return links


def list_parameters(function: Function) -> list[str]:
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    return [
        name for name in (*names, *(argument.arg for argument in arguments.kwonlyargs)) if name not in ("self", "cls")
    ]


def find_chains() -> list[list[Parameter]]:
    """Parameters handed unchanged through at least four functions, each by its longest way from where it begins."""
    links = find_links()
    inner = {target for targets in links.values() for target in targets}

    def follow(node: Parameter, before: frozenset[Parameter]) -> list[Parameter]:
        targets = [target for target in links.get(node, ()) if target not in before]
        return [node, *max((follow(target, before | {node}) for target in targets), key=len, default=[])]

    ways = [follow(node, frozenset()) for node in links if node not in inner]
    return [way for way in ways if len(way) >= HANDED_THROUGH]


def measure_class(name: str) -> str:
    """Fields and methods of a class: declared fields and those that `__init__` sets; properties and special methods."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == name and not node.bases:
                fields = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
                made = [part for part in node.body if isinstance(part, Function) and part.name == "__init__"]
                stored = [inner for part in made for inner in ast.walk(part) if isinstance(inner, ast.Attribute)]
                fields |= {
                    part.attr
                    for part in stored
                    if isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self"
                }
                return f"{len(fields)}/{sum(isinstance(part, Function) for part in node.body)}"
    return "-"


def count_modules(holds: Callable[[ast.AST], bool]) -> int:
    return sum(any(map(holds, ast.walk(tree))) for tree in trees().values())


def count_nodes(holds: Callable[[ast.AST], bool]) -> int:
    return sum(holds(node) for tree in trees().values() for node in ast.walk(tree))


def spells_verdict(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in VERDICTS


def lists_abilities(node: ast.AST) -> bool:
    if not isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return False
    parts = node.keys if isinstance(node, ast.Dict) else node.elts
    return len(ABILITIES & {part.value for part in parts if isinstance(part, ast.Constant)}) >= 3


def lists_option(node: ast.AST) -> bool:
    return (
        (isinstance(node, ast.Constant) and node.value == OPTION)
        or (isinstance(node, ast.arg | ast.keyword) and node.arg == OPTION)
        or (isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == OPTION)
    )


def is_codec(function: Function) -> bool:
    """Whether the function turns one of the recorded types into plain values; the readers come with the writers."""
    if not (function.returns and function.args.args):
        return False
    taken = [argument.annotation for argument in function.args.args if argument.annotation]
    words = {word for annotation in taken for word in re.findall(r"\w+", ast.unparse(annotation))}
    made = ast.unparse(function.returns)
    return bool(RECORDED & words) and bool(re.match(r"dict\[str, (?:Any|object)\]|Any$", made))


def writes_lines(function: Function) -> bool:
    """Whether the function appends JSON to a file or forces it to the disk."""
    text = ast.unparse(function)
    return ("os.fsync" in text or re.search(r"open\('ab?\+?'", text) is not None) and "json" in text.lower()


def replaces_file(node: ast.AST) -> bool:
    """Whether a call puts a finished file in the place of another: `Path.replace` or `os.replace`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "replace"):
        return False
    on = ast.unparse(node.func.value)
    return on == "os" or (len(node.args) == 1 and not node.keywords and on != "dataclasses")


def formats_duration(function: Function) -> bool:
    """Whether the function divides by 60 or 3600 and writes a text."""
    divisions = [
        node.right for node in ast.walk(function) if isinstance(node, ast.BinOp) and isinstance(node.op, DIVIDING)
    ]
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and ast.unparse(node.func) == "divmod"]
    divisors = [*divisions, *(call.args[1] for call in calls)]
    numbers = {divisor.value for divisor in divisors if isinstance(divisor, ast.Constant)} & {60, 3600}
    written = any(isinstance(node, ast.JoinedStr) for node in ast.walk(function))
    made = function.returns is not None and ast.unparse(function.returns) == "str"
    return bool(numbers) and written and made


def suggests(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("get_close_matches")


def count_bindings() -> Counter[str]:
    """How often each of the names without a topic is bound: as a variable, a parameter or a field."""
    return Counter(
        name
        for tree in trees().values()
        for node in ast.walk(tree)
        if (
            name := node.id
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else getattr(node, "arg", None)
        )
        in NAMES
        and not isinstance(node, ast.keyword)
    )


def format_way(names: Sequence[str]) -> str:
    return " → ".join(f"`{name}`" for name in reversed(names))


def measure() -> dict[str, str]:
    """Each row of the table with its figure."""
    offline, remote = trace_ask("offline"), trace_ask("remote")
    peers = {name: Path(str(importlib.import_module(name).__file__)).parent for name in PEERS}
    names = count_bindings()
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in PACKAGE.rglob("*.py")}
    apart = ("trainers", "evaluation", "server")
    core = sum(count for path, count in lines.items() if path.relative_to(PACKAGE).parts[0] not in apart)
    prompts = [len(path.read_text(encoding="utf-8").split()) for path in PACKAGE.rglob("*.md")]
    circles = find_circles()
    return {
        "frames of hira from `main` to `policy.complete`, offline": str(len(offline.complete)),
        "frames of hira from `main` to the wire": str(len(remote.wire)),
        "functions that run before the first policy call (react, documents, warm index)": str(len(offline.functions)),
        "modules that `hira ask` loads": str(len(offline.modules)),
        "lines in them": f"{offline.lines:,}",
        "circles of files, imports inside functions included": str(len(circles)),
        "imports inside functions, or for types alone, within a circle (agents, policies)": str(count_back_arrows()),
        "functions": f"{len(functions()):,}",
        "of at most five lines, without docstrings": f"{share_short(PACKAGE):.0%}",
        f"the same in {', '.join(PEERS)}": ", ".join(f"{share_short(folder):.0%}" for folder in peers.values()),
        "helpers of at most five lines that one place mentions": str(len(find_helpers())),
        "parameters handed unchanged through four functions or more": str(len(find_chains())),
        **{f"fields/methods of {name}": measure_class(name) for name in CLASSES},
        "files that spell a verdict": str(count_modules(spells_verdict)),
        "lists of three abilities or more": str(count_nodes(lists_abilities)),
        "files that name the option `parallel`": str(count_modules(lists_option)),
        "functions that turn a message, completion, call, observation or decision into plain values": str(
            sum(is_codec(function) for _, function in functions())
        ),
        "functions that append JSON to a file": str(sum(writes_lines(function) for _, function in functions())),
        "places that replace a file at once": str(count_nodes(replaces_file)),
        "functions that write a duration": str(sum(formats_duration(function) for _, function in functions())),
        "places that suggest a near name": str(count_nodes(suggests)),
        f"bindings of {', '.join(NAMES)}": ", ".join(str(names[name]) for name in NAMES),
        f"prompt files of at most {FEW_WORDS} words, of {len(prompts)}": str(
            sum(count <= FEW_WORDS for count in prompts)
        ),
        "lines in hira/": f"{sum(lines.values()):,}",
        "without trainers, evaluation and server": f"{core:,}",
        "way offline": format_way(offline.complete),
        "way to the wire": format_way(remote.wire),
        "circles": "; ".join(", ".join(circle) for circle in circles) or "none",
    }


def print_lists() -> None:
    for file, name in trace_ask("offline").functions:
        print(f"runs before the first call: {Path(file).relative_to(PACKAGE)} {name}")
    for module, function in find_helpers():
        print(f"helper: {module} {function.name}")
    for chain in find_chains():
        print(f"chain of {chain[0][2]}: {' → '.join(f'{module}.{name}' for module, name, _ in chain)}")


def main() -> int:
    if "--list" in sys.argv:
        print_lists()
        return 0
    rows = "\n".join(f"| {name} | {figure} |" for name, figure in measure().items())
    page = PAGE.format(rows=rows)
    print(page)
    if "--write" in sys.argv:
        RESULTS.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
