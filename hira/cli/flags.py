"""The flags of single commands. Light: it is read at every start."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.cli.parser import Parser


Adds = Callable[["Parser"], None]


def add_compare(commands: Any, groups: Sequence[Adds]) -> None:
    """Add the command; the `groups` add the flags that other commands have too."""
    compare: Parser = commands.add_parser(
        "compare",
        help="ask several workflows the same question, side by side",
        description="Ask several workflows the same question, with the same models and tools.",
        hints={"--workflow": "name at least one: --workflow hira,mars,rag"},
    )
    compare.add_argument("question", help="the question; - reads it from standard input")
    for one in groups:
        one(compare)
    compare.add_argument(
        "--file", action="append", default=[], dest="files", metavar="PATH", help="file that the question is about"
    )
    group = compare.add_argument_group("comparison")
    group.add_argument("--workflow", required=True, metavar="A,B,C", help="the workflows, separated by commas")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="option of one of them, such as search-o1.searches=5; repeatable",
    )
    group = compare.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("--debug", action="store_true", help="show tracebacks")


WHAT = ("run", "ablate", "sweep", "diff", "preferences", "candidates")


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """`hira eval DATA` is short for `hira eval run DATA`, `hira help COMMAND` for `hira COMMAND --help`."""
    first, *rest = arguments or [""]
    if first == "help":
        return [*rest, "--help"]
    if first == "eval" and rest and rest[0] not in (*WHAT, "-h", "--help"):
        return ["eval", "run", *rest]
    return list(arguments)


def add_eval(commands: Any, model: Any, limits: Any) -> None:
    """Add the command; `model` and `limits` add the flags that other commands have too."""
    command: Parser = commands.add_parser(
        "eval",
        help="ask many questions in several ways, score the answers, and report",
        description="Evaluate: `hira eval DATA` asks every question of DATA with every workflow and model.",
        hints={"WHAT": "hira eval mini asks the questions that come with hira, hira eval FILE.jsonl yours"},
    )
    what = command.add_subparsers(dest="what", metavar="WHAT", required=True)
    run, ablate, sweep = _add_runs(what, model, limits)
    diff = what.add_parser(
        "diff",
        help="two evaluations of the same questions, or two ways in one, question by question",
        description="Compare two evaluations of the same questions, or two ways of asking in one, question by "
        "question.",
    )
    diff.add_argument(
        "folders",
        nargs="+",
        metavar="FOLDER",
        help="two folders of evaluations, or one and two of its ways of asking, such as hira rag",
    )
    diff.add_argument("--json", action="store_true", help="one JSON object on stdout")
    preferences, candidates = _add_preferences(what, model)
    for one in (run, ablate, sweep, diff, preferences, candidates):
        one.add_argument("--debug", action="store_true", help="show tracebacks")


def _add_runs(what: Any, model: Any, limits: Any) -> tuple["Parser", "Parser", "Parser"]:
    run = what.add_parser(
        "run",
        help="ask and score (`hira eval DATA` is short for it)",
        description="Ask every question of DATA with every workflow and model, score the answers, and report.",
    )
    _asked(run, model, limits)
    run.add_argument(
        "--workflow",
        action="append",
        metavar="NAME",
        help="workflows, several separated by commas, or `all` (hira); repeatable",
    )
    ablate = what.add_parser(
        "ablate",
        help="a workflow whole, and with the parts removed that its paper removes",
        description="Ask with a workflow whole, then with the parts removed that its paper removes: hira (HiRA, "
        "Table 2), mars (MARS, Table 3), matpo (MATPO, Fig. 6).",
    )
    _asked(ablate, model, limits)
    ablate.add_argument("--workflow", metavar="NAME", help="which workflow: hira (default), mars or matpo")
    sweep = what.add_parser(
        "sweep",
        help="accuracy against the limit of subtasks (HiRA, Fig. 3)",
        description="Ask with several limits of subtasks, and report accuracy against the limit (HiRA, Fig. 3).",
    )
    _asked(sweep, model, limits)
    sweep.add_argument("--workflow", metavar="NAME", help="which workflow (hira)")
    sweep.add_argument(
        "--max-subtasks",
        dest="subtasks",
        default="1,2,3,4,5,10,15",
        metavar="N,N",
        help="the limits, separated by commas (1,2,3,4,5,10,15)",
    )
    return run, ablate, sweep


def _add_preferences(what: Any, model: Any) -> tuple["Parser", "Parser"]:
    preferences = what.add_parser(
        "preferences",
        help="measure how well ways of scoring reports agree with human preferences",
        description="Score both reports of each pair (--model judges), and report how often the preferred one wins and "
        "by how much (rubrics paper, Table 1).",
    )
    model(preferences)
    preferences.add_argument(
        "file", metavar="FILE", help="query, accepted and rejected, or the output of `hira eval candidates`, annotated"
    )
    preferences.add_argument(
        "--way", action="append", metavar="NAME", help="general, pointwise, pairwise, rubric; all of them by default"
    )
    preferences.add_argument("--json", action="store_true", help="one JSON list on stdout")
    candidates = what.add_parser(
        "candidates",
        help="the two best reports of each query, for people to choose from",
        description="Write the two best reports of each query of an evaluation as JSON lines; a person writes first or "
        "second into `preferred` of each.",
    )
    candidates.add_argument("folder", metavar="FOLDER", help="the folder of an evaluation of reports")
    return preferences, candidates


def _asked(command: "Parser", model: Any, limits: Any) -> None:
    command.add_argument("data", metavar="DATA", help="mini, a file (.jsonl, .json, .csv), or a public set")
    group = command.add_argument_group("questions")
    group.add_argument(
        "--category", action="append", metavar="NAME", help="only questions of this category; repeatable"
    )
    group.add_argument("--sample", type=int, metavar="N", help="random sample of N questions")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of --sample (0)")
    group.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    group.add_argument("--split", default="", metavar="NAME", help="split of a public data set")
    group.add_argument("--config", default="", metavar="NAME", help="configuration of a public data set")
    group.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="PART=NAME",
        help="column names of a file, such as answer=NAME",
    )
    model(command, several=True)
    group = command.add_argument_group("how to ask and score")
    group.add_argument("--docs", action="append", metavar="PATH", help="file or folder to search; repeatable")
    group.add_argument("--search", metavar="NAME", help="web search service")
    group.add_argument(
        "--set", action="append", default=[], metavar="NAME.OPTION=VALUE", help="an option of a workflow; repeatable"
    )
    group.add_argument("--repeats", type=int, default=1, metavar="K", help="ask every question K times (1)")
    group.add_argument("--metric", metavar="NAME", help="how to score answers; the data set's own by default")
    group.add_argument("--judge", metavar="M", help="model of the judge, for metrics that need one")
    limits(command)
    group = command.add_argument_group("the evaluation")
    group.add_argument("--concurrency", type=int, default=8, metavar="N", help="questions at a time (8)")
    group.add_argument(
        "-o", "--output", metavar="FOLDER", help="output folder (eval/DATA); run the same command again to resume"
    )
    group.add_argument("--json", action="store_true", help="the summary as JSON on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


REPORTING = ("mams", "react-report")


def add_report(commands: Any, model: Adds, groups: Sequence[Adds]) -> None:
    """Add the commands; `model` and the `groups` add the flags that other commands have too."""
    report: Parser = commands.add_parser(
        "report", help="write a report on a topic, with references", description="Write a report on a topic."
    )
    report.add_argument("question", metavar="TOPIC", help="the topic; - reads it from standard input")
    model(report)
    report.add_argument(
        "--file", action="append", default=[], dest="files", metavar="PATH", help="file to use for the report"
    )
    group = report.add_argument_group("workflow")
    group.add_argument("--workflow", choices=REPORTING, metavar="NAME", help=f"{' or '.join(REPORTING)} (mams)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="an option of the workflow, such as mams.max_turns=5; repeatable",
    )
    for one in groups:
        one(report)
    group = report.add_argument_group("output")
    group.add_argument(
        "-o", "--output", metavar="FILE", help="write the report to a file instead of stdout: .md, .html or .json"
    )
    group.add_argument("--json", action="store_true", help="one JSON object on stdout")
    group.add_argument("--events", action="store_true", help="progress as JSON lines on stderr")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("--debug", action="store_true", help="show tracebacks")
    rubric: Parser = commands.add_parser(
        "rubric",
        help="write a rubric that scores reports on a query",
        description="Write a rubric for a query, and score a report with it.",
    )
    rubric.add_argument("query", help="topic of the report")
    model(rubric)
    rubric.add_argument("--report", metavar="FILE", help="score this report with the rubric")
    rubric.add_argument("--rubric", metavar="FILE", help="read the rubric from a file that --json wrote")
    rubric.add_argument("--json", action="store_true", help="one JSON object on stdout")
    rubric.add_argument("--debug", action="store_true", help="show tracebacks")


SHELLS = ("bash", "zsh", "fish")


def add_init(commands: Any) -> None:
    init = commands.add_parser(
        "init",
        help="write a hira.toml for this folder",
        description="Write a commented hira.toml from what is found: keys, local servers, searches, documents.",
    )
    init.add_argument(
        "--docs", action="append", metavar="PATH", help="file or folder to search (default: found automatically)"
    )
    init.add_argument("--force", action="store_true", help="overwrite a hira.toml that is there")
    init.add_argument("--debug", action="store_true", help="show tracebacks")


def add_completion(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes hira's commands and flags in a shell",
        description="Print a script for the shell; docs/cli.md explains where to put it.",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish")
