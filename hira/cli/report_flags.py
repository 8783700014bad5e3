"""The flags of `hira report` and `hira rubric`. Light: it is read at every start."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.cli.parser import Parser

WORKFLOWS = ("mams", "react-report")
Adds = Callable[["Parser"], None]


def add(commands: Any, model: Adds, groups: Sequence[Adds]) -> None:
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
    group.add_argument("--workflow", choices=WORKFLOWS, metavar="NAME", help=f"{' or '.join(WORKFLOWS)} (mams)")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="an option of the workflow, such as mams.max_turns=5; repeatable",
    )
    for one in groups:
        one(report)
    report.add_argument("--dry-run", action="store_true", help="print the maximum cost and exit")
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
