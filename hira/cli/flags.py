"""The commands of `hira` and their flags, each described once. Light: it is read at every start."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hira.cli.parser import Parser, parse_column, parse_duration, parse_number, parse_numbers
from hira.core.errors import UsageError
from hira.core.options import COUNTS, PARTS, SHARED

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
REPORTING = ("mams", "react-report")
EVALUATING = ("run", "ablate", "sweep", "diff", "judge", "preferences", "candidates")

Arguments = tuple[tuple[str, ...], Mapping[str, Any]]
"""The positional and the named arguments of `add_argument`."""
_TYPES = {
    "N": int,
    "K": int,
    "PORT": int,
    "USD": parse_number,
    "DAYS": parse_number,
    "TIME": parse_duration,
    "N,N": parse_numbers,
    "PART=NAME": parse_column,
}


def flag(names: str, metavar: str, about: str, **more: Any) -> Arguments:
    """Describe a flag with a value, or a positional argument. The metavar decides on the type; an empty one is the
    choices, or the argument's name."""
    kind = {"type": _TYPES[metavar]} if metavar in _TYPES else {}
    return tuple(names.split()), {"metavar": metavar or None, "help": about, **kind, **more}


def repeatable_flag(names: str, metavar: str, about: str, **more: Any) -> Arguments:
    return flag(names, metavar, f"{about}; repeatable", action="append", **more)


def switch(names: str, about: str, **more: Any) -> Arguments:
    return tuple(names.split()), {"action": "store_true", "help": about, **more}


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """Flags under a heading of the help."""

    title: str
    flags: tuple[Arguments, ...]


def group(title: str, *flags: Arguments) -> FlagGroup:
    return FlagGroup(title, flags)


_NAMED = "model name, gguf:FILE to run a file with llama.cpp, hf:PATH to load weights in this process, or `offline`"
_MODEL = (
    flag("--adapter", "DIR", "LoRA adapter for a model loaded with hf:PATH"),
    flag("--profile", "RUN", "output folder of a hira-train run"),
    flag("--base-url", "URL", "OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1"),
    flag("--reasoning-effort", "E", f"reasoning effort of the model: {', '.join(EFFORTS)}", choices=EFFORTS),
    repeatable_flag(
        "--role", "ROLE=M", "model for one role; several separated by commas are tried in order", default=[]
    ),
)
MODEL = group("model", flag("-m --model", "M", _NAMED), *_MODEL)
MODELS = group("model", repeatable_flag("-m --model", "M", _NAMED, dest="models"), *_MODEL)
SOURCES = group(
    "sources",
    repeatable_flag("--docs", "PATH", "file or folder to search"),
    flag(
        "--search",
        "NAME",
        "web search: serper, tavily, brave, wikipedia (needs no key) …; or a retriever, module:function",
    ),
)
MEMORY = switch("--memory", "keep verified claims about your documents, and find them again", default=None)
FILES = repeatable_flag("--file", "PATH", "file to attach to the question", default=[], dest="files")
OPTIONS = repeatable_flag("--set", "NAME.OPTION=VALUE", "option of a workflow, such as mars.max_turns=5", default=[])
WORK = group(
    "workflow",
    flag("--workflow", "NAME", "hira (default), mars, rag, react …; docs/workflows.md lists them"),
    repeatable_flag("--tools", "NAME", "your own tool as module:function, or one of an installed package"),
    repeatable_flag("--without", "PART", SHARED["without"], choices=PARTS),
    *(flag(f"--{name.replace('_', '-')}", "N", about) for name, about in COUNTS.items()),
)
_LIMITS = group(
    "limits of the run; a tenth is reserved for the answer",
    flag("--max-tokens", "N", "prompt and reply tokens"),
    flag("--max-cost", "USD", "US dollars"),
    flag("--max-time", "TIME", "such as 90, 90s, 5m or 1h, without the time for indexing documents"),
    flag("--max-calls", "N", "model calls"),
    flag("--max-reply-tokens", "N", "tokens of one reply (4096)"),
)
_CHECKS = "check claims by words alone, ask the model about doubtful ones (default), or check nothing"
_CHECKING = group("verification", flag("--verify", "", _CHECKS, choices=("lexical", "model", "off")))
LIMITS = (_LIMITS, _CHECKING)
RECORD = group(
    "record",
    flag("--journal", "FILE", "journal file; `off` records nothing"),
    switch("--cache", "reuse the replies of recorded runs", dest="cache_responses", default=None),
)
JOURNAL = flag("--journal", "FILE", "journal file (yours by default)")
RUN = flag("run", "RUN", "the run, or the beginning of its id; `last` is the newest")
CONTINUE = flag("--continue", "RUN", "follow up on a recorded run, with its settings; or `last`", dest="continues")
RAY = flag("--ray", "ADDRESS", "ask on a Ray cluster: local, auto, ray://HOST:PORT")
DRY_RUN = switch("--dry-run", "print the maximum cost and exit")
OUTPUT = flag("-o --output", "FILE", "write the answer to a file as well: .md, .txt, .json, .docx, .pdf, .bib or .ris")
JSON = switch("--json", "one JSON object on stdout")
QUIET = switch("-q --quiet", "no progress on stderr")
PROGRESS = (JSON, switch("--events", "progress as JSON lines on stderr"), QUIET)
DEBUG = switch("--debug", "show tracebacks")
ASKING = (MODEL, SOURCES, MEMORY, FILES, OPTIONS, WORK, *LIMITS, CONTINUE, RECORD, *PROGRESS)
EVALUATION = (
    flag("data", "DATA", "mini, a file (.jsonl, .json, .csv), or a public set"),
    group(
        "questions",
        repeatable_flag("--category", "NAME", "only questions of this category"),
        flag("--sample", "N", "random sample of N questions"),
        flag("--seed", "N", "seed of --sample (0)", default=0),
        flag("--limit", "N", "only the first N questions"),
        flag("--split", "NAME", "split of a public data set", default=""),
        flag("--config", "NAME", "configuration of a public data set", default=""),
        repeatable_flag("--column", "PART=NAME", "column names of a file, such as answer=NAME", default=[]),
    ),
    *(MODELS, SOURCES, OPTIONS),
    group(
        "how to ask and score",
        flag("--repeats", "K", "ask every question K times (1)", default=1),
        flag("--metric", "NAME", "how to score answers; the data set's own by default"),
        flag("--judge", "M", "model of the judge, for metrics that need one"),
    ),
    *LIMITS,
    group(
        "the evaluation",
        flag("--concurrency", "N", "questions at a time (8)", default=8),
        flag(
            "-o --output",
            "FOLDER",
            "output folder (eval/DATA, with -ablate or -sweep); run the same command again to resume",
        ),
        RAY,
        DRY_RUN,
    ),
    *(JSON, QUIET),
)


def expand_short_forms(arguments: Sequence[str]) -> list[str]:
    """`hira eval DATA` is short for `hira eval run DATA`, `hira help COMMAND` for `hira COMMAND --help`."""
    first, *rest = arguments or [""]
    if first == "help":
        return [*rest, "--help"]
    if first == "eval" and rest and rest[0] not in (*EVALUATING, "-h", "--help"):
        return ["eval", "run", *rest]
    return list(arguments)


def parse_arguments(arguments: Sequence[str], version: str) -> Any:
    """Parse the command line with the parsers that its command needs; all of them are built only to explain an
    error."""
    try:
        return build_parser(version, *arguments[:1]).parse_args(arguments)
    except UsageError:
        return build_parser(version).parse_args(arguments)


def build_parser(version: str, command: str = "") -> Parser:
    """The parser of the command line; with a `command` only the part for this command and those like it."""
    main = Parser(
        prog="hira",
        description="Ask hard questions of any model; get answers bound to evidence.",
        epilog="exit codes: 0 answered, 1 a fault in hira, 2 usage or configuration, 3 endpoint or key, "
        "4 not verified or not enough evidence, 5 partial (a budget ran out), 130 interrupted",
        hints={"COMMAND": 'hira ask "question" asks; hira --help lists the commands'},
    )
    main.add_argument("--version", action="version", version=f"hira {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parts = [add for add, names in _PARTS.items() if command in names]
    for add in parts or _PARTS:
        add(commands)
    return main


def _add(
    commands: Any,
    name: str,
    about: str,
    *arguments: Arguments | FlagGroup,
    more: str = "",
    hints: Mapping[str, str] | None = None,
    debug: bool = True,
) -> Parser:
    """Add a command with these arguments, and with `--debug`."""
    description = f"{about[0].upper()}{about[1:]}.{f' {more}' if more else ''}"
    command: Parser = commands.add_parser(name, help=about, description=description, hints=hints)
    for argument in (*arguments, DEBUG) if debug else arguments:
        place, flags = (
            (command.add_argument_group(argument.title), argument.flags)
            if isinstance(argument, FlagGroup)
            else (command, (argument,))
        )
        for names, named in flags:
            place.add_argument(*names, **named)
    return command


def _add_asking(commands: Any) -> None:
    many = group(
        "many questions at once",
        flag("--batch", "FILE", "file of questions, one per line: text, or JSON with question, id and files"),
        flag("--concurrency", "N", "questions at a time (8)"),
        RAY,
    )
    _add(
        commands,
        "ask",
        "answer a question",
        flag("question", "", "the question; - reads it from standard input", nargs="?"),
        *(*ASKING, many, DRY_RUN),
        switch("--approve", "ask before each subtask runs; you can edit or reject it"),
        flag("-o --output", "FILE", f"{OUTPUT[1]['help']}; with --batch: the answers as JSON lines"),
        flag("--schema", "FILE", "answer with JSON that fits this JSON schema"),
    )
    text = "Reads them from standard input, one per line, until its end, `exit` or `quit`."
    _add(commands, "chat", "ask questions that follow up on each other", *ASKING, more=text)
    named = f"{' or '.join(REPORTING)} (mams)"
    _add(
        commands,
        "report",
        "write a report on a topic, with references",
        flag("question", "TOPIC", "the topic; - reads it from standard input"),
        *(MODEL, SOURCES, *LIMITS, RECORD, *PROGRESS, FILES, OPTIONS, DRY_RUN),
        group("workflow", flag("--workflow", "NAME", named, choices=REPORTING)),
        flag(
            "-o --output",
            "FILE",
            "write the report to a file instead of stdout: .md, .html, .json, .docx, .pdf, .bib or .ris",
        ),
    )
    _add(
        commands,
        "rubric",
        "write a rubric that scores reports on a query",
        flag("query", "", "topic of the report"),
        *(MODEL, JSON),
        flag("--report", "FILE", "score this report with the rubric"),
        flag("--rubric", "FILE", "read the rubric from a file that --json wrote"),
    )
    _add(
        commands,
        "compare",
        "ask several workflows the same question, side by side",
        flag("question", "", "the question; - reads it from standard input"),
        flag("--workflow", "A,B,C", "the workflows, separated by commas", required=True),
        *(MODEL, SOURCES, *LIMITS, RECORD, FILES, OPTIONS, JSON, QUIET),
        hints={"--workflow": "name at least one: --workflow hira,mars,rag"},
    )


def _add_setup(commands: Any) -> None:
    _add(
        commands,
        "init",
        "write a hira.toml for this folder, and test it",
        flag("--docs", "PATH", "file or folder to search (default: found automatically)", action="append"),
        switch("--force", "overwrite a hira.toml that is there"),
        switch("--no-try", "do not ask the model a test question"),
    )
    probing = switch("--probe", "test the endpoint's capabilities with a few short requests")
    _add(
        commands,
        "prompts",
        "list the roles, or show the prompts of a role as they are sent",
        flag("role", "ROLE", "the role, such as planner", nargs="?"),
        flag("--workflow", "NAME", "the workflow that has the role (default: the first that has it)"),
    )
    _add(commands, "doctor", "show the configuration, what works, and how to turn on the rest", MODEL, SOURCES, probing)
    shells = flag("shell", "", "the shell: bash, zsh or fish", choices=("bash", "zsh", "fish"))
    _add(commands, "completion", "print a script that completes hira's commands in a shell", shells, debug=False)


def _add_evaluation(commands: Any) -> None:
    command: Parser = commands.add_parser(
        "eval",
        help="ask many questions in several ways, score the answers, and report",
        description="Evaluate: `hira eval DATA` asks every question of DATA with every workflow and model.",
        hints={"WHAT": "hira eval mini asks the questions that come with hira, hira eval FILE.jsonl yours"},
    )
    what = command.add_subparsers(dest="what", metavar="WHAT", required=True)
    several = repeatable_flag("--workflow", "NAME", "workflows, several separated by commas, or `all` (hira)")
    _add(what, "run", "ask and score (`hira eval DATA` is short for it)", several, *EVALUATION)
    about = "a workflow whole, and with the parts removed that its paper removes"
    tables = "hira (HiRA, Table 2), mars (MARS, Table 3), matpo (MATPO, Fig. 6)."
    workflow = flag("--workflow", "NAME", "which workflow: hira (default), mars or matpo")
    _add(what, "ablate", about, workflow, *EVALUATION, more=tables)
    numbers = "1,2,3,4,5,10,15"
    swept = flag(
        "--max-subtasks", "N,N", f"the limits, separated by commas ({numbers})", dest="subtasks", default=numbers
    )
    workflow = flag("--workflow", "NAME", "which workflow (hira)")
    _add(what, "sweep", "accuracy against the limit of subtasks (HiRA, Fig. 3)", workflow, swept, *EVALUATION)
    about = "two evaluations of the same questions, or two ways in one, question by question"
    folders = "two folders of evaluations, or one and two of its ways of asking, such as hira rag"
    _add(what, "diff", about, flag("folders", "FOLDER", folders, nargs="+"), JSON)
    _add(
        what,
        "judge",
        "measure how often a judge (--model) agrees with human labels",
        flag("file", "FILE", "question, answer, response and label, one JSON object per line"),
        *(MODEL, JSON),
        flag("--metric", "NAME", "judge prompt: hira (default), webwalker, simpleqa, hle", default="hira"),
    )
    rows = "query, accepted and rejected, or the output of `hira eval candidates`, annotated"
    ways = "general, pointwise, pairwise, rubric; all of them by default"
    _add(
        what,
        "preferences",
        "measure how well ways of scoring reports agree with human preferences",
        *(flag("file", "FILE", rows), MODEL, JSON, flag("--way", "NAME", ways, action="append")),
        more="Rubrics paper, Table 1; --model judges.",
    )
    reports = flag("folders", "FOLDER", "folders of evaluations of reports, such as of several temperatures", nargs="+")
    text = (
        "A person writes first or second into `preferred` of each line. --model leaves out reports with evident faults."
    )
    about = "print the two best reports of each query, for people to choose from"
    _add(what, "candidates", about, reports, MODEL, more=text)


def _add_serving(commands: Any) -> None:
    key = (
        "require this key; other users of this machine see an argument in the list of processes, so set "
        "HIRA_SERVE_KEY, or read it from a file with @FILE; more in your own hira.toml, [keys.NAME]"
    )
    _add(
        commands,
        "serve",
        "serve an OpenAI-compatible endpoint, and a page to watch runs",
        *(MODEL, SOURCES, MEMORY, *LIMITS, RECORD),
        flag("--host", "ADDRESS", "address to listen on (127.0.0.1)"),
        flag("--port", "N", "port (8811)"),
        flag("--api-key", "@FILE", key, dest="serve_key"),
        more="Each workflow is a model of the endpoint at /v1; the page is at /.",
        hints={"--workflow": "each workflow is a model of the server: a client, or the page, names it"},
    )
    _add(
        commands,
        "mcp",
        "serve hira as an MCP server with the tools `ask`, `search` and `open`",
        *(MODEL, SOURCES, MEMORY, *LIMITS),
        flag("--workflow", "NAME", "hira (default); a call may name another"),
        flag("--http", "PORT", "over HTTP on this machine's loopback address instead of stdio"),
    )


def _add_recorded(commands: Any) -> None:
    """Add the commands about recorded runs."""
    limit = flag("--limit", "N", "number of runs, newest first (20)", default=20)
    runs = _add(commands, "runs", "list recorded runs, export or delete them", JOURNAL, JSON, limit)
    what = runs.add_subparsers(dest="what", metavar="WHAT", title="what else")
    # what was given before `export` or `delete` holds as well
    both = [(names, {**named, "default": argparse.SUPPRESS}) for names, named in (JOURNAL, DEBUG)]
    named = "run, or the beginning of its id"
    _add(
        what,
        "export",
        "write conversations as JSON lines, for training",
        flag("runs", "RUN", f"{named}; default: all that ended", nargs="*"),
        flag("-o --output", "FILE", "output file; - is stdout", required=True),
        *both,
        debug=False,
    )
    older = flag("--older", "DAYS", "delete runs older than this")
    _add(
        what,
        "delete",
        "delete runs and all their data",
        flag("runs", "RUN", named, nargs="*"),
        older,
        *both,
        debug=False,
    )
    _add(commands, "show", "show a run: subtasks, experts, costs, answer, citations", RUN, JOURNAL, JSON)
    again = (RUN, JOURNAL, *LIMITS, *PROGRESS, OUTPUT)
    _add(commands, "resume", "resume a run where it ended", *again)
    _add(commands, "replay", "replay a recorded run without calling anything", RUN, JOURNAL, *PROGRESS, OUTPUT)
    _add(
        commands,
        "trace",
        "write a run as one web page, or send it as spans to a collector",
        *(RUN, JOURNAL),
        flag("-o --output", "FILE", "output page, such as trace.html"),
        flag("--otel", "URL", "send spans over OTLP/HTTP (default URL: the configured one)", nargs="?", const=""),
        switch("--content", "include prompts, replies and results"),
    )
    by = flag("--verify", "", "check again, by words alone or by the model", choices=("lexical", "model"))
    about = "show how the claims of a run's answer were checked, or check them again"
    _add(commands, "verify", about, RUN, JOURNAL, MODEL, JSON, by)


def _add_memory(commands: Any) -> None:
    command = _add(commands, "memory", "list the verified claims that --memory keeps, or forget them", JSON)
    what = command.add_subparsers(dest="what", metavar="WHAT", title="what else")
    names, named = JSON
    after = (names, {**named, "default": argparse.SUPPRESS})
    _add(what, "list", "list the claims with their documents and dates, newest first", after, debug=False)
    ids = flag("ids", "ID", "number of a claim, as the list shows it; or `all`", nargs="+")
    _add(what, "forget", "delete claims", ids, debug=False)


_PARTS: Mapping[Callable[[Any], None], Sequence[str]] = {
    _add_asking: ("ask", "chat", "report", "rubric", "compare"),
    _add_setup: ("init", "prompts", "doctor", "completion"),
    _add_evaluation: ("eval",),
    _add_serving: ("serve", "mcp"),
    _add_memory: ("memory",),
    _add_recorded: ("runs", "show", "resume", "replay", "trace", "verify"),
}
"""Functions that add commands to the parser, in the order of the help, with their commands."""
