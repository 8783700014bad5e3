"""The flags of `hira compare`. Light: it is read at every start."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.cli.parser import Parser

Adds = Callable[["Parser"], None]


def add(commands: Any, groups: Sequence[Adds]) -> None:
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
