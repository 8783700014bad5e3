"""The documentation tells the truth: its code runs, its commands work, its links lead somewhere, its tables are whole.

A fence's first line says how it is taken: `python` blocks of a page run one after another in one namespace, with
`await` where they like; a `text` block right behind one is what it prints (`…` stands for anything); lines of `bash`
blocks that begin with `hira ` are run and must end with 0, or with N where the fence says `exit=N`, and a block `text
prints` right behind is what they write to standard output; a block `bash serves` starts the page's server, at which its
Python and its lines that begin with `curl ` are run; a `toml` block is a hira.toml; `file=NAME` writes the block into
the working folder first. `no-run` leaves a block out, and so does `needs=MODULE` where that is not installed, and
`needs=python` where nothing would hold Python code back.
"""

import argparse
import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

from hira import Hira, cli, tool
from hira.agents.coordinator import RECALLED
from hira.agents.distiller import LONGEST
from hira.agents.expert import reason
from hira.agents.experts import EXPERTS
from hira.agents.model_verifier import BATCH
from hira.agents.queries import QUERIES
from hira.agents.recovery import REPEATS
from hira.agents.retrieval import PAGES as PAGES_OPENED
from hira.cli.dry_run import USUAL
from hira.cli.options import build_parser
from hira.cli.shell import Shell
from hira.core.tool import SHOWN
from hira.evidence.verifiers import CANDIDATES, LONG, SECONDS
from hira.policies.names import LOCAL_PORTS
from hira.policies.probe import LOCAL_SECONDS
from hira.runtime.settings import (
    FILE,
    MCP_CONSENT,
    SEARCH_KEYS,
    TRUST,
    KeySettings,
    McpSettings,
    PriceSettings,
    RoleSettings,
    Settings,
    TimeoutSettings,
    load,
)
from hira.runtime.workflow_options import _NO_OPTIONS
from hira.testing.faults import FAULTS
from hira.tools import LONGEST_QUERY as QUERY
from hira.tools.addresses import PORTS
from hira.tools.documents import Index, search_documents
from hira.tools.fetch import HEAD_SECONDS, HOPS, Fetcher
from hira.tools.files import LARGEST as WRITTEN
from hira.tools.mcp import KEPT
from hira.tools.python import PythonLimits, refusal
from hira.tools.search import BACKENDS
from hira.tools.search.service import LIMIT as SEARCH_LIMIT
from hira.tools.search.service import SECONDS as SEARCH_SECONDS
from hira.trainers.configuration import Configuration
from hira.workflows import MARS, WORKFLOWS, HiRA, MarsRL
from hira.workflows.baselines.plan_and_solve import PlanAndSolve
from hira.workflows.baselines.search_o1 import SearchO1
from hira.workflows.baselines.single import CodeAct, Rag, ReAct
from hira.workflows.baselines.webthinker import WebThinker

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), ROOT / "README.md"]
LINKED = [
    *sorted(DOCS.rglob("*.md")),
    ROOT / "README.md",
    *(ROOT / name for name in ("CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md")),
]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_NOT_RUN = 1
SERVED_AT = "http://127.0.0.1:8811"

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@dataclass(frozen=True)
class Block:
    kind: str
    marks: tuple[str, ...]
    body: str
    line: int

    @property
    def runs(self) -> bool:
        needs = self.mark("needs")
        there = not refusal() if needs == "python" else not needs or find_spec(needs) is not None
        return "no-run" not in self.marks and there

    def mark(self, name: str) -> str:
        """The value of a mark `name=value`, empty if the fence has none."""
        return next((mark.partition("=")[2] for mark in self.marks if mark.startswith(f"{name}=")), "")


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        kind, *marks = match["info"].split() or [""]
        found.append(Block(kind, tuple(marks), match["body"], text.count("\n", 0, match.start()) + 1))
    return found


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table rows below a heading of a page, without the table's head."""
    text = "\n" + (DOCS / page).read_text(encoding="utf-8")
    section = re.split(r"^#{1,3} ", text.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documentation and examples in it, entered, in an environment that knows no model but `offline`."""
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name in [name for name in os.environ if name.startswith(("HIRA_", "OPENAI_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    for name, value in {"HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path, "XDG_CACHE_HOME": cache}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("HIRA_MODEL", "offline")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hira(place: Path, *argv: str) -> tuple[int, str, str]:
    """The command in this process: its exit code, what it said and what it told."""
    out, err = io.StringIO(), io.StringIO()
    code = cli.main(argv, Shell(io.StringIO(), out, err, os.environ, place, place))
    return code, out.getvalue(), err.getvalue()


def shown(expected: str, printed: str) -> bool:
    """Whether this was printed; `…` in a line stands for anything."""
    pattern = "\n".join(".*".join(map(re.escape, line.split("…"))) for line in expected.strip().splitlines())
    return re.fullmatch(pattern, printed.strip()) is not None


@pytest.mark.heavy(seconds=1)
@every_page
def test_the_python_of_a_page_runs_and_prints_what_it_says(page: Path, place: Path) -> None:
    namespace: dict[str, Any] = {"__name__": page.stem, "__file__": str(place / f"{page.stem}.py")}
    printed: str | None = None
    lay_out(page, place)
    with asyncio.Runner() as runner, page_server(page, place) as address:
        for block in blocks(page):
            if block.kind == "python" and block.runs:
                printed = run(replace(block, body=block.body.replace(SERVED_AT, address)), page, namespace, runner)
            elif block.kind == "bash" and block.body.startswith("curl ") and shutil.which("curl"):
                asked = shlex.split(block.body.replace(SERVED_AT, address).replace("\\\n", ""))
                printed = subprocess.run([*asked, "-sS"], check=True, capture_output=True, text=True).stdout
            elif block.kind == "text" and printed is not None:
                assert shown(block.body, printed), f"{page.name}:{block.line} shows otherwise than:\n{printed}"
                printed = None
            else:
                printed = None


@contextlib.contextmanager
def page_server(page: Path, place: Path) -> Iterator[str]:
    """The address at which the server of the page's block `bash serves` listens, if it has one."""
    command = next((one for block in blocks(page) if "serves" in block.marks for one in commands(block)), None)
    if command is None:
        yield ""
        return
    argv = [sys.executable, "-m", "hira", *shlex.split(command)[1:], "--port", "0"]
    with subprocess.Popen(argv, cwd=place, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        said = next(line for line in server.stderr if "a page to watch runs: " in line)
        try:
            yield said.rpartition(": ")[2].strip().rstrip("/")
        finally:
            server.terminate()


def lay_out(page: Path, place: Path) -> None:
    """Write the files that a page shows."""
    for block in blocks(page):
        if name := block.mark("file"):
            (place / name).write_text(block.body, encoding="utf-8")


def run(block: Block, page: Path, namespace: dict[str, Any], runner: asyncio.Runner) -> str:
    """Run a block, awaiting where it does, and return what it printed. Tracebacks name the page and its line. A block
    with the mark `process` changes its whole process and has one to itself."""
    if "process" in block.marks:
        return subprocess.run([sys.executable, "-c", block.body], check=True, capture_output=True, text=True).stdout
    source = "\n" * block.line + block.body
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        done = eval(code, namespace)  # noqa: S307 - our own documentation
        if inspect.isawaitable(done):
            runner.run(_awaited(done))
    return out.getvalue()


async def _awaited(work: Awaitable[Any]) -> None:
    await work


def commands(block: Block) -> Iterator[str]:
    for line in block.body.splitlines():
        yield from (part for part in line.split(" && ") if part.startswith("hira "))


@pytest.mark.heavy(seconds=1)
@every_page
def test_the_commands_of_a_page_end_and_print_as_it_says(page: Path, place: Path) -> None:
    lay_out(page, place)
    printed = ""
    for block in blocks(page):
        if block.kind == "bash" and block.runs and "serves" not in block.marks:
            printed = ""
            for line in commands(block):
                code, out, told = hira(place, *shlex.split(line, comments=True)[1:])
                assert code == int(block.mark("exit") or 0), f"{page.name}:{block.line}: {line}\n{told}"
                printed += out
        elif "prints" in block.marks:
            assert shown(block.body, printed), f"{page.name}:{block.line} shows otherwise than:\n{printed}"


def test_few_python_blocks_are_left_out() -> None:
    left = [
        (page.name, block.line)
        for page in PAGES
        for block in blocks(page)
        if block.kind == "python" and "no-run" in block.marks
    ]
    assert len(left) <= MOST_NOT_RUN, left


@every_page
def test_every_hira_toml_shown_can_be_read(page: Path, place: Path) -> None:
    for block in blocks(page):
        if block.kind == "toml":
            config = place / "hira" / FILE
            config.parent.mkdir(exist_ok=True)
            config.write_text(block.body, encoding="utf-8")
            assert load({}, {"XDG_CONFIG_HOME": str(place)}, place, place).model_fields_set


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(to), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_every_file_and_test_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path, name in re.findall(r"`((?:hira|tests|docs|examples|benchmarks)/[\w./-]+\.(?:py|md))(?:::(\w+))?`", text):
        assert (ROOT / path).is_file(), f"{page.name} names {path}"
        if name:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{page.name} names {path}::{name}"


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[(\w+\.md)\]", index)) == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("## Settings", Settings),
        ("## Roles", RoleSettings),
        ("## MCP servers", McpSettings),
        ("## Prices", PriceSettings),
        ("## Replies and waiting", TimeoutSettings),
        ("## Keys of the server", KeySettings),
    ],
)
def test_configuration_names_every_setting_with_its_default_and_nothing_else(
    heading: str, model: type[BaseModel]
) -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in rows("configuration.md", heading)}
    assert told == {
        name: spelled(field.get_default(call_default_factory=True)) for name, field in model.model_fields.items()
    }


SECTIONS = [name for name, field in Configuration.model_fields.items() if isinstance(field.default, BaseModel)]


@pytest.mark.parametrize("section", ["", *SECTIONS])
def test_training_names_every_key_of_a_training_file_with_its_default_and_nothing_else(section: str) -> None:
    part = Configuration.model_fields[section].default if section else Configuration()
    table = rows("training.md", f"### [{section}]" if section else "### At the top")
    open_ended = (*SECTIONS, "credit", "settings", "workflow")
    assert {name.strip("`"): default.strip("`") for name, default, _ in table} == {
        name: in_toml(getattr(part, name)) for name in type(part).model_fields if section or name not in open_ended
    }
    assert all(meaning for *_, meaning in table)


def in_toml(default: object) -> str:
    if isinstance(default, Mapping) and default:
        return "{ " + ", ".join(f'"{name}" = "{value}"' for name, value in default.items()) + " }"
    return spelled(default)


def spelled(default: object) -> str:
    """A default as a person writes it."""
    plain = default.get_secret_value() if isinstance(default, SecretStr) else default
    if plain in (None, "", PydanticUndefined) or (isinstance(plain, tuple | frozenset | Mapping) and not plain):
        return "–"
    if isinstance(plain, BaseModel):  # a table of its own
        return "–"
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


COMMANDS: dict[str, Any] = next(
    dict(action.choices) for action in build_parser("0")._actions if isinstance(action, argparse._SubParsersAction)
)


def test_workflows_lists_every_workflow_with_its_options_and_roles() -> None:
    told = {row[0].strip("`"): row for row in rows("workflows.md", "## The workflows")}
    assert list(told) == list(WORKFLOWS)
    for name, make in WORKFLOWS.items():
        workflow: Any = make()
        _, _, roles, options = told[name]
        shown = dict(re.findall(r"`(\w+)`(?: ([^,]+))?", options))
        values = {
            field.name: getattr(workflow, field.name) for field in fields(workflow) if field.name not in _NO_OPTIONS
        }
        known = {option: str(value).lower() for option, value in values.items()}
        assert shown == {option: "" if value in ("none", "frozenset()") else value for option, value in known.items()}
        named = set(re.findall(r"`(\w+)`", roles))
        assert named == workflow.roles if "the experts" not in roles else named < workflow.roles, name


def test_every_expert_is_listed_with_its_cost() -> None:
    told = {row[0].strip("`"): int(row[2]) for row in rows("experts.md", "# Experts")}
    assert told == {expert.name: expert.cost for expert in EXPERTS}


def test_cli_has_a_section_for_every_command() -> None:
    headings = re.findall(r"^## hira ([\w-]+)$", (DOCS / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(headings) == set(COMMANDS)


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"chat"}))  # chat takes flags of ask
def test_cli_names_every_flag_and_nothing_else(command: str) -> None:
    told = {flag for row in rows("cli.md", f"## hira {command}") for flag in re.findall(r"--?[a-z][\w-]*", row[0])}
    assert told == set(COMMANDS[command].flags())


def test_cli_names_every_exit_code() -> None:
    told = {int(row[0].strip("`")) for row in rows("cli.md", "## Exit codes")}
    assert told == {cli.OK, cli.BUG, cli.USAGE, cli.ENDPOINT, cli.NO_EVIDENCE, cli.PARTIAL, cli.INTERRUPTED}


def test_cli_names_every_key_of_the_json_object(place: Path) -> None:
    asked = ["ask", "How many memory entries does the coordinator recall at most?", "--docs", "docs", "--json"]
    _, out, _ = hira(place, *asked)
    told = {row[0].strip("`") for row in rows("cli.md", "## --json")}
    assert told == set(json.loads(out))


def test_cli_names_every_event() -> None:
    from hira.core import events

    known = {name for name, kind in vars(events).items() if inspect.isclass(kind) and issubclass(kind, events.Event)}
    assert {row[0].strip("`") for row in rows("cli.md", "## --events")} == known - {"Event"}


def test_the_imports_of_the_python_interface_bring_the_names_that_stand_beside_them() -> None:
    table = re.findall(
        r"^\| (.+?) \| `from ([\w.]+) import …` \|", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(table) > 8
    for names, module in table:
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(import_module(module), name), (module, name)


@pytest.mark.parametrize(
    ("heading", "function"),
    [("## Arguments of Hira", Hira), ("## Arguments of ask", Hira.ask), ("## Arguments of tool", tool)],
)
def test_the_python_interface_names_every_argument_with_its_default(heading: str, function: Any) -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in rows("api.md", heading)}
    given = inspect.signature(function).parameters.values()
    assert told == {one.name: default_of(one) for one in given if one.name not in ("self", "function")}


def default_of(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return "required"
    plain = isinstance(default, bool | int | float)
    return str(default) if plain else "–"


def test_tools_names_every_search_service_and_its_key() -> None:
    told = {row[0].strip("`"): row[1] for row in rows("tools.md", "## Web search")}
    assert set(told) == set(BACKENDS)
    settings = (DOCS / "configuration.md").read_text(encoding="utf-8")
    for service, variable in SEARCH_KEYS.items():
        assert f"`{variable}`" in told[service], service
        assert f"`{variable}`" in settings, variable
    assert f"`{MCP_CONSENT}`" in settings
    assert f"`{TRUST}`" in settings


def test_performance_names_every_benchmark_and_every_page_of_results() -> None:
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    folder = ROOT / "benchmarks"
    programs = [path for path in folder.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]
    assert not [path.name for path in programs if f"python benchmarks/{path.name}" not in text]
    assert not [path.name for path in (folder / "results").glob("*.md") if f"`{path.name}`" not in text]


FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*`)")


def test_every_mutation_of_a_row_of_papers_still_applies() -> None:
    spec = spec_from_file_location("mutations", ROOT / "benchmarks" / "mutations.py")
    assert spec
    assert spec.loader
    mutations = sys.modules["mutations"] = module_from_spec(spec)
    spec.loader.exec_module(mutations)
    rows = mutations.read_rows()
    for line in mutations.TABLE.read_text(encoding="utf-8").splitlines():
        mutation = mutations.Mutation(**json.loads(line))
        assert mutations.row_of(mutation, rows)
        assert mutations.place_of(mutation, ROOT)


RESULTS = ROOT / "benchmarks" / "results"


def figures(text: str) -> set[str]:
    return {figure.rstrip(",") for figure in FIGURE.findall(text)}


def test_figures_of_performance_are_those_of_the_pages_of_results() -> None:
    text = (DOCS / "performance.md").read_text(encoding="utf-8")
    told = re.split(r"^(?=\*\*)", text.partition("## Figures")[2].partition("\n## ")[0], flags=re.MULTILINE)[1:]
    assert len(told) > 4
    (light,) = re.findall(r"(?m)^- \*\*Light\.\*\* (.*)", (ROOT / "README.md").read_text(encoding="utf-8"))
    for block in [*told, light]:
        pages = re.findall(r"results/(\w+\.md)\)", block)
        found = set().union(*(figures((RESULTS / page).read_text(encoding="utf-8")) for page in pages))
        assert not figures(block) - found, block.partition("(")[0]


def test_goals_of_performance_are_called_met_or_missed_by_what_was_measured() -> None:
    text = (DOCS / "performance.md").read_text(encoding="utf-8").partition("## Goals")[2]
    goals = [re.split(r"\s*\|\s*", line.strip("| ")) for line in text.splitlines() if ".md` |" in line]
    assert len(goals) > 10
    for goal, aimed, measured, page, verdict in goals:
        assert measured in figures((RESULTS / page.strip("`")).read_text(encoding="utf-8")), goal
        sign, limit = aimed.split()
        value, most = (float(number.replace(",", "")) for number in (measured, limit))
        met = value <= most if sign == "≤" else value >= most
        assert verdict == ("met" if met else "**missed**"), goal


def list_public_costs(model: str) -> dict[tuple[str, str], list[str]]:
    """The calls and tokens of the public questions, by set and workflow; of the others on the company alone."""
    text = (RESULTS / "public.md").read_text(encoding="utf-8")
    page = text.partition(f"## {model}\n")[2].partition("\n## ")[0]
    of_sets = [line.strip("| ").split(" | ") for line in page.splitlines() if line.count(" | ") == 11]
    others = text.partition("## The other workflows\n")[2].partition("\n## ")[0]
    rest = [line.strip("| ").split(" | ") for line in others.splitlines() if line.count(" | ") == 5]
    return {("company", cells[0]): [cells[4], cells[3]] for cells in rest} | {
        (cells[0], cells[1]): [cells[9], cells[8]] for cells in of_sets
    }


def test_costs_of_workflows_are_those_of_the_public_questions() -> None:
    measured = list_public_costs("qwen2.5-coder-0.5b-instruct")
    shown_costs = {row[0].strip("`"): row[1:] for row in rows("workflows.md", "## What a question costs")}
    assert shown_costs.keys() == WORKFLOWS.keys()
    assert shown_costs == {name: measured["company", name] for name in shown_costs}


def test_the_usual_cost_that_a_dry_run_prints_is_that_of_the_public_questions() -> None:
    measured = [list_public_costs(f"qwen2.5-coder-{size}-instruct") for size in ("0.5b", "1.5b")]
    for name, (calls, tokens) in USUAL.items():
        costs = [cost for table in measured for (_, workflow), cost in table.items() if workflow == name]
        counted, spent = ([float(cost[at].replace(",", "")) for cost in costs] for at in (0, 1))
        assert (min(counted), ceil(max(counted))) == calls, name
        assert (min(spent), max(spent)) == tokens, name


def test_costs_of_auto_are_those_of_the_public_questions() -> None:
    measured = list_public_costs("qwen2.5-coder-0.5b-instruct")
    shown_costs = rows("workflows.md", "### What `auto` costs")
    assert len(shown_costs) == 3
    for name, *costs in shown_costs:
        of_sets = [measured[of, name.strip("`")] for of in ("company", "squad", "multihop")]
        assert costs == [cost for pair in of_sets for cost in pair]


def test_testing_names_only_faults_that_there_are() -> None:
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    assert {name for named in re.findall(r"faults=\[(.*?)\]", text) for name in re.findall(r'"(.*?)"', named)} <= set(
        FAULTS
    )


LIMITS = {
    "baselines.md": [
        f"| pages that `rag` reads | `pages` | {Rag().pages} |",
        f"| searches of `search-o1` | `searches` | {SearchO1().searches} |",
        f"| searches of `webthinker` | `searches` | {WebThinker().searches} |",
        f"| calls of all kinds for a report of `webthinker` | `interactions` | {WebThinker().interactions} |",
        f"| calls of `codeact` and of `multimodal` | `calls` | {CodeAct().calls} |",
        f"| steps of a plan | `max_subtasks` | {PlanAndSolve().max_subtasks} |",
        f"| calls of `react` | `calls` | {ReAct().calls} |",
    ],
    "mars.md": [
        f"| `{name}` | {getattr(MARS(), name):,} |" for name in ("max_turns", "queries", "pages", "papers", "window")
    ],
    "marsrl.md": [f"| `{name}` | {getattr(MarsRL(), name)} |" for name in ("passes", "rounds", "tries")],
    "hira.md": [
        f"| subtasks in a run | {HiRA().max_subtasks} |",
        f"| subtasks in a turn | {HiRA().parallel} |",
        f"| memory entries recalled | {RECALLED} |",
        f"| queries of simple search | {QUERIES} |",
        f"| pages that simple search opens for a query | {PAGES_OPENED} |",
        f"| calls of an expert in a subtask | {inspect.signature(reason).parameters['limit'].default} |",
        f"| repetitions of a call before the answer is asked for | {REPEATS} |",
        f"| tokens of an expert's work that are distilled | {LONGEST:,} |",
        f"| temperature, top-p | {Settings().temperature}, {Settings().top_p} |",
    ],
    "tools.md": [
        f"{PythonLimits().seconds:g} s a call, {PythonLimits().memory >> 30} GiB of memory, {PythonLimits().disk >> 20} MiB of disk",
        f"{PythonLimits().output:,} characters of output",
        f"a page of {Fetcher().limit / 1e6:g} MB, {Fetcher().seconds:g} s, {HEAD_SECONDS:g} s of them until its answer begins, {HOPS} redirects",
        f"at most {QUERY} characters; {SEARCH_SECONDS:g} s and {SEARCH_LIMIT / 1e6:g} MB an answer",
        f"200 MB a file, {WRITTEN // 2**20} MB of what a program wrote",
        f"{McpSettings(command='x').seconds:g} s a call, or `seconds`",
        f"about {SHOWN:,} tokens are shown, {KEPT:,} characters kept",
        f"about {SHOWN:,} tokens of each text are shown",
    ],
    "security.md": ["the ports {}, {}, {} and {}".format(*sorted(PORTS))],
    "policies.md": ["the ports {}, {}, {}, {} and {}, for".format(*LOCAL_PORTS), f"for {LOCAL_SECONDS * 1000:.0f} ms"],
    "quickstart.md": [f"| {port} |" for port in LOCAL_PORTS],
    "evidence.md": [
        f"an answer of {LONG} claims or more".replace("an", "An", 1),
        f"more than {SECONDS:g} seconds",
        {5: "the five sources closest to it"}[CANDIDATES],
        {12: "twelve in one call"}[BATCH],
    ],
}


@pytest.mark.parametrize("page", LIMITS)
def test_limits_are_told_as_the_code_has_them(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for told in LIMITS[page]:
        assert told in text, f"{page} does not say: {told}"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many memory entries does the coordinator recall at most?", "at most five"),
        ("What does the code expert do?", "Python"),
        ("Which Python version do I need?", "3.11"),
        ("Who founded hira?", ""),
        ("How many developers does hira have?", ""),
        ("Why is the planner blue?", ""),
    ],
)
def test_a_newcomers_question_is_answered_from_the_docs_offline_or_refused(
    question: str, answer: str, place: Path
) -> None:
    code, out, told = hira(place, "ask", question, "--docs", "docs", "--json")
    said = json.loads(out)
    assert code == (0 if answer else 4), told
    assert answer in said["answer"], said["answer"]
    verdicts = {citation["verdict"] for citation in said["citations"]}
    assert "supported" in verdicts if answer else not verdicts


NEWCOMERS_ASK = {
    "Can I use Claude?": "litellm/anthropic/",
    "Can I use my own vector store?": "Hira(search=",
    "Do citations have page numbers?": "citation.page",
    "Can it read scanned PDFs?": "ocrmypdf",
    "What does a question cost?": "--dry-run",
    "How do I separate several tenants?": "documents of each question",
    "Where are the logs?": "hira.runs",
    "How do I upgrade?": "--upgrade",
    "Does it run on Windows?": "WSL",
    "Does it use prompt caching?": "cached_tokens",
}


@pytest.mark.heavy
async def test_ten_questions_of_a_new_user_are_answered_by_one_search_of_the_pages() -> None:
    search = search_documents(Index([DOCS]))
    for question, answer in NEWCOMERS_ASK.items():
        passages = (await search.call({"query": question})).passages
        shown = "\n".join(passage.text for passage in passages if passage.source.location == "questions.md")
        assert passages[0].source.location == "questions.md", question
        assert answer in shown, question
