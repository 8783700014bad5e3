"""How the code is kept: one place for parsing, short functions, a light start, and the way that docs/architecture.md
shows.

Import contracts are in pyproject.toml.
"""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from ways import check_order, code_below, steps_below

PACKAGE = Path(__file__).parent.parent / "hira"
sys.path.insert(0, str(PACKAGE.parent / "benchmarks"))
from structure import (  # noqa: E402 - it is a script and no package
    count_modules,
    count_nodes,
    find_chains,
    find_circles,
    find_helpers,
    formats_duration,
    functions,
    is_codec,
    lists_option,
    measure_class,
    replaces_file,
    suggests,
    trace_ask,
)

LONGEST = 80


@cache
def modules() -> list[tuple[str, Path, ast.Module]]:
    """Each file of the package with the name of its part (the first folder, or the module itself)."""
    return [
        (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path, ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def test_only_dialects_parse_what_a_model_wrote() -> None:
    for part, path, _ in modules():
        if part in {"agents", "workflows"}:
            assert "json.loads" not in path.read_text(encoding="utf-8"), path
            assert "raw_decode" not in path.read_text(encoding="utf-8"), path


def test_no_function_is_over_eighty_lines() -> None:
    long = [
        f"{path.name}:{node.name} {node.end_lineno - node.lineno + 1}"
        for _, path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno
        and node.end_lineno - node.lineno + 1 > LONGEST
    ]
    assert not long, long


LOADED = 79
"""Modules of hira's that a question may load before its first request goes out; start-up time hangs on them."""
FIRST_REQUEST = """
import sys
from hira import Hira
from hira.core.errors import EndpointError
from hira.core.policy import Policy

class Counting:
    model = "counting"
    async def complete(self, request, watch=None):
        print(sum(name.split(".")[0] == "hira" for name in sys.modules), "httpx" in sys.modules)
        raise EndpointError("that is all")
    async def aclose(self): ...

try:
    Hira(workflow="react", policies={"*": Counting()}).ask_sync("How high is the tower?")
except EndpointError:
    pass
"""


def test_a_question_loads_few_modules_before_its_first_request(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_REQUEST], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded, http = done.stdout.split()[:2]
    assert int(loaded) <= LOADED
    assert http == "False", "only an endpoint needs it"


TRACED = """
import sys
from pathlib import Path

seen = {}

def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and "hira" in code.co_filename:
        seen.setdefault((code.co_filename, code.co_qualname))

sys.setprofile(trace)
from hira.cli import main
try:
    main(["ask", "How many memory entries does the coordinator recall at most?", "--docs", sys.argv[1], "--quiet", "--journal", sys.argv[2]])
except SystemExit:
    pass
sys.setprofile(None)
for file, name in seen:
    print(f"{Path(file).as_posix()} {name}", file=sys.stderr)
"""


def test_from_the_command_to_a_model_are_eleven_functions_and_fifteen_to_the_wire() -> None:
    way = [name.strip(" \n") for name in code_below("The path of a call").split("→")]
    assert [*reversed(trace_ask("offline").complete)] == [*way[:10], "OfflinePolicy.complete"]
    assert [*reversed(trace_ask("remote").wire)] == way


UNUSED = {
    "hira.agents.expert",
    "hira.agents.faults",
    "hira.agents.history",
    "hira.agents.hooks",
    "hira.agents.retrieval",
    "hira.agents.summary",
    "hira.cli.approve",
    "hira.cli.chat",
    "hira.cli.commands",
    "hira.cli.dry_run",
    "hira.cli.export",
    "hira.cli.missing",
    "hira.cli.progress",
    "hira.cli.report_pdf",
    "hira.cli.report_sources",
    "hira.cli.report_word",
    "hira.cli.runs",
    "hira.core.child",
    "hira.core.files",
    "hira.core.markdown_code",
    "hira.core.statements",
    "hira.core.window",
    "hira.journal.records",
    "hira.policies.dialects.dialect",
    "hira.policies.dialects.quoted",
    "hira.policies.dialects.value_reader",
    "hira.policies.offline.roles",
    "hira.policies.waiting",
    "hira.runtime.chat",
    "hira.runtime.discovery",
    "hira.runtime.loop_thread",
    "hira.runtime.objects",
    "hira.runtime.replay",
    "hira.runtime.resuming",
    "hira.runtime.services",
    "hira.runtime.settings.files",
    "hira.runtime.trace.reading",
    "hira.tools.addresses",
    "hira.tools.charsets",
    "hira.tools.documents.document",
    "hira.tools.documents.encoder",
    "hira.tools.documents.parsing",
    "hira.tools.documents.reader",
    "hira.tools.documents.refresh",
    "hira.tools.documents.showing",
    "hira.tools.documents.vectors",
    "hira.tools.media",
    "hira.tools.opening",
    "hira.tools.python.confine",
    "hira.tools.python.process",
    "hira.tools.python.results",
    "hira.tools.python.sandbox",
    "hira.workflows.baselines.search_o1",
    "hira.workflows.bound",
}
"""Parts that a question over indexed documents does not need unless its model calls for them."""


def test_a_question_over_indexed_documents_loads_no_part_that_it_does_not_use() -> None:
    ways = trace_ask("offline")
    assert UNUSED.isdisjoint(ways.modules)
    assert len(ways.modules) <= 95
    assert ways.lines <= 17_680
    assert len(ways.functions) <= 160


def test_one_place_replaces_files_and_one_suggests_names() -> None:
    assert count_nodes(replaces_file) == 1
    assert count_nodes(suggests) == 1


@pytest.mark.parametrize(
    ("name", "fields", "methods"),
    [("Loop", 12, 12), ("Conversation", 10, 15), ("RunContext", 15, 12), ("Request", 8, 0)],
)
def test_the_central_classes_stay_small(name: str, fields: int, methods: int) -> None:
    measured = [int(figure) for figure in measure_class(name).split("/")]
    assert measured[0] <= fields
    assert measured[1] <= methods


def test_short_helpers_handed_parameters_and_codecs_do_not_become_more() -> None:
    assert len(find_helpers()) <= 151
    assert len(find_chains()) <= 61
    assert sum(is_codec(function) for _, function in functions()) <= 3


def test_one_function_writes_durations_and_few_files_name_the_option_parallel() -> None:
    assert [function.name for _, function in functions() if formats_duration(function)] == ["format_duration"]
    assert count_modules(lists_option) <= 2


def test_only_the_door_of_the_commands_knows_the_namespace_of_argparse() -> None:
    knowing = {
        path.relative_to(PACKAGE).as_posix() for _, path, _ in modules() if "Namespace" in path.read_text("utf-8")
    }
    assert knowing == {"cli/options.py"}


def test_no_files_import_each_other_in_a_circle() -> None:
    assert find_circles() == []


def test_every_module_is_imported_or_named_in_a_string() -> None:
    known, strings = set[str](), (PACKAGE.parent / "pyproject.toml").read_text("utf-8").split('"')
    examples = [("", path, ast.parse(path.read_text("utf-8"))) for path in (PACKAGE.parent / "examples").rglob("*.py")]
    for _, path, tree in [*modules(), *examples]:
        package = path.parent.relative_to(PACKAGE.parent).parts
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                known |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                start = package[: len(package) + 1 - node.level] if node.level else []
                source = ".".join([*start, *filter(None, [node.module])])
                known |= {source, *(f"{source}.{name.name}" for name in node.names)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.append(node.value)
    named = {text.partition(":")[0].rpartition(".")[2] for text in strings}  # such as "baselines.single:ReAct"
    paths = [path for _, path, _ in modules() if path.stem not in {"__init__", "__main__", *named}]
    dotted = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    assert not [name for name in dotted if name not in known]


def test_a_question_takes_the_way_that_the_page_shows(tmp_path: Path) -> None:
    steps = steps_below("The path of a question")
    assert 10 <= len(steps) <= 12
    command = [sys.executable, "-c", TRACED, str(PACKAGE.parent / "docs"), str(tmp_path / "journal.sqlite")]
    environ = {"HIRA_MODEL": "offline", "HIRA_WORKFLOW": "hira", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, cwd=tmp_path)
    lines = [line for line in done.stderr.splitlines() if "/hira/" in line and line.count(" ") == 1]
    check_order(steps, [(path, name) for path, _, name in (line.partition(" ") for line in lines)])
