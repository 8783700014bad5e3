"""The flags of `hira eval`. Light: it is read at every start."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.cli.parser import Parser

WHAT = ("run", "ablate", "sweep", "diff", "judge", "preferences", "candidates", "report")


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """`hira eval DATA` is short for `hira eval run DATA`."""
    first, *rest = arguments or [""]
    if first == "eval" and rest and rest[0] not in (*WHAT, "-h", "--help"):
        return ["eval", "run", *rest]
    return list(arguments)


def add(commands: Any, model: Any, limits: Any) -> None:
    """Add the command; `model` and `limits` add the flags that other commands have too."""
    command: Parser = commands.add_parser(
        "eval",
        help="ask many questions in several ways, score the answers, and report",
        description="Evaluate: `hira eval DATA` asks every question of DATA with every workflow and model.",
        hints={"WHAT": "hira eval mini asks the questions that come with hira, hira eval FILE.jsonl yours"},
    )
    what = command.add_subparsers(dest="what", metavar="WHAT", required=True)
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
    judge = what.add_parser(
        "judge",
        help="measure how often a judge agrees with human labels",
        description="Have a judge (--model) judge answers that have human labels, and report how often both agree.",
    )
    model(judge)
    judge.add_argument("file", metavar="FILE", help="question, answer, response and label, one JSON object per line")
    judge.add_argument(
        "--metric", metavar="NAME", default="hira", help="judge prompt: hira (default), webwalker, simpleqa, hle"
    )
    judge.add_argument("--json", action="store_true", help="one JSON object on stdout")
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
    report = what.add_parser(
        "report",
        help="rebuild the report of a folder from its records",
        description="Rebuild the report of an evaluation from the records in its folder.",
    )
    report.add_argument("folder", metavar="FOLDER", help="the folder of an evaluation")
    for one in (run, ablate, sweep, diff, judge, preferences, candidates, report):
        one.add_argument("--debug", action="store_true", help="show tracebacks")


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
    group.add_argument("--ray", metavar="ADDRESS", help="ask on a Ray cluster: local, auto, ray://HOST:PORT")
    group.add_argument("--json", action="store_true", help="the summary as JSON on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
