"""The commands besides `ask` and `chat`, and their flags."""

import argparse
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hira.cli.assignments import parse_column
from hira.cli.flags import (
    DEBUG,
    DRY_RUN,
    FILES,
    JSON,
    LIMITS,
    MEMORY,
    MODEL,
    MODELS,
    OPTIONS,
    OUTPUT,
    PROGRESS,
    QUIET,
    RAY,
    RECORD,
    REPORTING,
    SOURCES,
    Arguments,
    FlagGroup,
    Parser,
    add_command,
    flag,
    repeatable_flag,
    switch,
)
from hira.core.errors import UsageError

JOURNAL = flag("--journal", "FILE", "journal file (yours by default)")
RUN = flag("run", "RUN", "the run, or the beginning of its id; `last` is the newest")
EVALUATION = (
    flag("data", "DATA", "mini, a file (.jsonl, .json, .csv), or a public set"),
    FlagGroup(
        "questions",
        repeatable_flag("--category", "NAME", "only questions of this category"),
        flag("--sample", "N", "random sample of N questions"),
        flag("--seed", "N", "seed of --sample (0)", default=0),
        flag("--limit", "N", "only the first N questions"),
        flag("--split", "NAME", "split of a public data set", default=""),
        flag("--config", "NAME", "configuration of a public data set", default=""),
        repeatable_flag(
            "--column", "PART=NAME", "column names of a file, such as answer=NAME", default=[], type=parse_column
        ),
    ),
    *(MODELS, SOURCES, OPTIONS),
    FlagGroup(
        "how to ask and score",
        flag("--repeats", "K", "ask every question K times (1)", default=1),
        flag("--metric", "NAME", "how to score answers; the data set's own by default"),
        flag("--judge", "M", "model of the judge, for metrics that need one"),
    ),
    *LIMITS,
    FlagGroup(
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

MAIN = ("--workflow", "--model", "--docs", "--sample", "--metric", "--judge", "--output", "--dry-run")
"""The flags of `hira eval DATA` in the help of `hira eval`."""


def parse_age(text: str) -> float:
    """Return an age in days, which is above 0."""
    try:
        if 0 < (days := float(text)) < math.inf:
            return days
    except ValueError:
        pass
    what = f"{text!r} is not an age in days"
    raise UsageError(what, fix="write a number above 0, such as --older 30; hira runs delete RUN deletes one run")


def parse_numbers(text: str) -> list[int]:
    """Return limits of subtasks, separated by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{text!r} is not a list of numbers", fix="write --max-subtasks 1,2,3") from None
    if min(numbers) < 1:
        raise UsageError(f"{min(numbers)} is not a number of subtasks", fix="give 1 or more")
    return numbers


def _add_reports(commands: Any) -> None:
    named = f"{' or '.join(REPORTING)} (mams)"
    add_command(
        commands,
        "report",
        "write a report on a topic, with references",
        flag("question", "TOPIC", "the topic; - reads it from standard input"),
        *(MODEL, SOURCES, *LIMITS, RECORD, *PROGRESS, FILES, OPTIONS, DRY_RUN),
        FlagGroup("workflow", flag("--workflow", "NAME", named, choices=REPORTING)),
        flag(
            "-o --output",
            "FILE",
            "write the report to a file instead of stdout: .md, .html, .json, .docx, .pdf, .bib or .ris",
        ),
    )
    add_command(
        commands,
        "rubric",
        "write a rubric that scores reports on a query",
        flag("query", "", "topic of the report"),
        *(MODEL, JSON),
        flag("--report", "FILE", "score this report with the rubric"),
        flag("--rubric", "FILE", "read the rubric from a file that --json wrote"),
    )
    add_command(
        commands,
        "compare",
        "ask several workflows the same question, side by side",
        flag("question", "", "the question; - reads it from standard input"),
        flag("--workflow", "A,B,C", "the workflows, separated by commas", required=True),
        *(MODEL, SOURCES, *LIMITS, RECORD, FILES, OPTIONS, JSON, QUIET),
        hints={"--workflow": "name at least one: --workflow hira,mars,rag"},
    )


def _add_setup(commands: Any) -> None:
    add_command(
        commands,
        "init",
        "write a hira.toml for this folder, and test it",
        flag("--docs", "PATH", "file or folder to search (default: found automatically)", action="append"),
        switch("--force", "overwrite an existing hira.toml"),
        switch("--no-try", "do not ask the model a test question"),
    )
    probing = switch("--probe", "test the endpoint's capabilities with a few short requests")
    add_command(
        commands,
        "prompts",
        "list the roles, or show the prompts of a role as they are sent",
        flag("role", "ROLE", "the role, such as planner", nargs="?"),
        flag("--workflow", "NAME", "the workflow that has the role (default: the first that has it)"),
    )
    about = "show the configuration, what works, and how to turn on the rest"
    add_command(commands, "doctor", about, MODEL, SOURCES, probing)
    shells = flag("shell", "", "the shell: bash, zsh or fish", choices=("bash", "zsh", "fish"))
    add_command(commands, "completion", "print a script that completes hira's commands in a shell", shells, debug=False)


def _format_main_flags(*arguments: Arguments | FlagGroup) -> str:
    """Format the flags that most evaluations need as a part of the help."""
    shown = Parser(usage=argparse.SUPPRESS, add_help=False)
    flags = [each for part in arguments for each in (part.flags if isinstance(part, FlagGroup) else (part,))]
    title = "main flags of `hira eval DATA` (hira eval run --help lists all)"
    shown.add(FlagGroup(title, *(each for each in flags if each[0][-1] in MAIN)))
    return shown.format_help()


def _add_evaluation(commands: Any) -> None:
    command = add_command(
        commands,
        "eval",
        "ask many questions in several ways, score the answers, and report",
        more="`hira eval DATA` asks every question of DATA with every workflow and model.",
        hints={"WHAT": "hira eval mini asks the questions that come with hira, hira eval FILE.jsonl yours"},
        debug=False,
    )
    several = repeatable_flag("--workflow", "NAME", "workflows, several separated by commas, or `all` (auto)")
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.description = textwrap.fill(str(command.description))
    command.epilog = _format_main_flags(several, *EVALUATION)
    what = command.add_subparsers(dest="what", metavar="WHAT", required=True)
    add_command(what, "run", "ask and score (`hira eval DATA` is short for it)", several, *EVALUATION)
    about = "a workflow whole, and with the parts removed that its paper removes"
    tables = "hira (HiRA, Table 2), mars (MARS, Table 3), matpo (MATPO, Fig. 6)."
    workflow = flag("--workflow", "NAME", "which workflow: hira (default), mars or matpo")
    add_command(what, "ablate", about, workflow, *EVALUATION, more=tables)
    numbers = "1,2,3,4,5,10,15"
    swept = flag(
        "--max-subtasks",
        "N,N",
        f"the limits, separated by commas ({numbers})",
        dest="subtasks",
        default=numbers,
        type=parse_numbers,
    )
    workflow = flag("--workflow", "NAME", "which workflow (hira)")
    add_command(what, "sweep", "accuracy against the limit of subtasks (HiRA, Fig. 3)", workflow, swept, *EVALUATION)
    about = "two evaluations of the same questions, or two ways in one, question by question"
    folders = "two folders of evaluations, or one and two of its ways of asking, such as hira rag"
    add_command(what, "diff", about, flag("folders", "FOLDER", folders, nargs="+"), JSON)
    add_command(
        what,
        "judge",
        "measure how often a judge (--model) agrees with human labels",
        flag("file", "FILE", "question, answer, response and label, one JSON object per line"),
        *(MODEL, JSON),
        flag("--metric", "NAME", "judge prompt: hira (default), webwalker, simpleqa, hle", default="hira"),
    )
    rows = "query, accepted and rejected, or the output of `hira eval candidates`, annotated"
    ways = "general, pointwise, pairwise, rubric; all of them by default"
    add_command(
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
    add_command(what, "candidates", about, reports, MODEL, more=text)


def _add_serving(commands: Any) -> None:
    key = (
        "require this key; other users of this machine see an argument in the list of processes, so set "
        "HIRA_SERVE_KEY, or read it from a file with @FILE; more in your own hira.toml, [keys.NAME]"
    )
    add_command(
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
    add_command(
        commands,
        "mcp",
        "serve hira as an MCP server with the tools `ask`, `search` and `open`",
        *(MODEL, SOURCES, MEMORY, *LIMITS),
        flag("--workflow", "NAME", "auto (default); a call may name another"),
        flag("--http", "PORT", "over HTTP on this machine's loopback address instead of stdio"),
    )


def _add_recorded(commands: Any) -> None:
    """Add the commands about recorded runs."""
    limit = flag("--limit", "N", "number of runs, newest first (20)", default=20)
    runs = add_command(commands, "runs", "list recorded runs, export or delete them", JOURNAL, JSON, limit)
    what = runs.add_subparsers(dest="what", metavar="WHAT", title="what else")
    # what was given before `export` or `delete` holds as well
    both = [(names, {**named, "default": argparse.SUPPRESS}) for names, named in (JOURNAL, DEBUG)]
    named = "run, or the beginning of its id"
    add_command(
        what,
        "export",
        "write conversations as JSON lines, for training",
        flag("runs", "RUN", f"{named}; default: all that ended", nargs="*"),
        flag("-o --output", "FILE", "output file; - is stdout", required=True),
        *both,
        debug=False,
    )
    older = flag(
        "--older", "DAYS", "delete runs older than this; asks before, or needs --yes without a terminal", type=parse_age
    )
    add_command(
        what,
        "delete",
        "delete runs and all their data",
        flag("runs", "RUN", named, nargs="*"),
        older,
        switch("--yes", "delete without asking"),
        *both,
        debug=False,
    )
    add_command(commands, "show", "show a run: subtasks, experts, costs, answer, citations", RUN, JOURNAL, JSON)
    again = (RUN, JOURNAL, *LIMITS, *PROGRESS, OUTPUT)
    add_command(commands, "resume", "resume a run where it ended", *again)
    add_command(commands, "replay", "replay a recorded run without calling anything", RUN, JOURNAL, *PROGRESS, OUTPUT)
    add_command(
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
    add_command(commands, "verify", about, RUN, JOURNAL, MODEL, JSON, by)


def _add_memory(commands: Any) -> None:
    command = add_command(commands, "memory", "list the verified claims that --memory keeps, or forget them", JSON)
    what = command.add_subparsers(dest="what", metavar="WHAT", title="what else")
    names, named = JSON
    after = (names, {**named, "default": argparse.SUPPRESS})
    add_command(what, "list", "list the claims with their documents and dates, newest first", after, debug=False)
    ids = flag("ids", "ID", "number of a claim, as the list shows it; or `all`", nargs="+")
    add_command(what, "forget", "delete claims", ids, debug=False)


COMMANDS: Mapping[Callable[[Any], None], Sequence[str]] = {
    _add_reports: ("report", "rubric", "compare"),
    _add_setup: ("init", "prompts", "doctor", "completion"),
    _add_evaluation: ("eval",),
    _add_serving: ("serve", "mcp"),
    _add_memory: ("memory",),
    _add_recorded: ("runs", "show", "resume", "replay", "trace", "verify"),
}
"""Functions that add commands to the parser, in the order of the help, with their commands."""
