"""The flags of `hira-train curate`. Light: it is read at every start."""

from typing import Any


def add(commands: Any) -> None:
    curate = commands.add_parser(
        "curate",
        help="select questions that are worth training on, or generate new ones",
        description="Filter questions as MARS does, generate them from a graph, or rewrite queries. To resume, run "
        "the same command: decisions in the folder are kept.",
    )
    curate.add_argument("data", metavar="DATA", help="questions as hira eval takes them; a graph with --from-graph")
    curate.add_argument("-o", "--output", metavar="DIR", help="output folder (curation/NAME)")
    curate.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    curate.add_argument("--column", action="append", default=[], metavar="PART=NAME", help="question=NAME, answer=NAME")
    group = curate.add_argument_group("stages")
    group.add_argument(
        "--stages",
        default="level,duplicates,clarity,expert,challenge",
        metavar="A,B",
        help="level, duplicates, clarity, expert, challenge (all)",
    )
    group.add_argument(
        "--similarity",
        type=float,
        default=0.7,
        metavar="X",
        help="similarity from which questions are duplicates (0.7)",
    )
    group.add_argument("--attempts", type=int, default=16, metavar="N", help="attempts at each question (16)")
    group.add_argument("--keep", default="1-12", metavar="N-M", help="how many of them must be right (1-12)")
    group.add_argument(
        "--metric", default="match", metavar="NAME", help="how attempts are scored, as hira eval (match)"
    )
    group.add_argument(
        "--from-graph", type=int, metavar="N", help="generate N questions from chains of a graph's facts"
    )
    group.add_argument("--hops", default="2-4", metavar="N-M", help="with --from-graph: facts of a chain (2-4)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="with --from-graph: other chains (0)")
    group.add_argument("--rewrite", action="store_true", help="only rewrite queries as requests for reports")
    group = curate.add_argument_group("models")
    group.add_argument("--model", metavar="M", help="model that makes the attempts and writes questions")
    group.add_argument("--judge", metavar="M", help="model that judges questions and answers (--model)")
    group.add_argument("--base-url", metavar="URL", help="OpenAI-compatible endpoint")
    group.add_argument("--role", action="append", default=[], metavar="ROLE=M", help="another model for one role")
    group.add_argument("--workflow", metavar="NAME", help="workflow of the attempts (mars)")
    group.add_argument("--docs", action="append", metavar="PATH", help="file or folder that attempts may search")
    group.add_argument("--search", metavar="NAME", help="web search of the attempts")
    group.add_argument("--concurrency", type=int, default=8, metavar="N", help="attempts at a time (8)")
    curate.add_argument("--debug", action="store_true", help="show tracebacks")
