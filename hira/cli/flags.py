"""The commands of `hira` and their flags. Light: it is read at every start."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hira.cli.parser import Parser, parse_duration

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
ABILITIES = ("reasoning-transfer", "memory", "search", "code", "multimodal")
REPORTING = ("mams", "react-report")
EVALUATING = ("run", "ablate", "sweep", "diff", "judge", "preferences", "candidates")
Group = Callable[[Parser], None]


def expand_short_forms(arguments: Sequence[str]) -> list[str]:
    """`hira eval DATA` is short for `hira eval run DATA`, `hira help COMMAND` for `hira COMMAND --help`."""
    first, *rest = arguments or [""]
    if first == "help":
        return [*rest, "--help"]
    if first == "eval" and rest and rest[0] not in (*EVALUATING, "-h", "--help"):
        return ["eval", "run", *rest]
    return list(arguments)


def build_parser(version: str) -> Parser:
    """The parser of the command line."""
    main = Parser(
        prog="hira",
        description="Ask hard questions of any model; get answers bound to evidence.",
        epilog="exit codes: 0 answered, 1 a fault in hira, 2 usage or configuration, 3 endpoint or key, "
        "4 not verified or not enough evidence, 5 partial (a budget ran out), 130 interrupted",
        hints={"COMMAND": 'hira ask "question" asks; hira --help lists the commands'},
    )
    main.add_argument("--version", action="version", version=f"hira {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_asking(commands)
    init = _add(commands, "init", "write a hira.toml for this folder, and test it")
    init.add_argument(
        "--docs", action="append", metavar="PATH", help="file or folder to search (default: found automatically)"
    )
    init.add_argument("--force", action="store_true", help="overwrite a hira.toml that is there")
    init.add_argument("--no-try", action="store_true", help="do not ask the model a test question")
    doctor = _add(
        commands, "doctor", "show the configuration, what works, and how to turn on the rest", _model, _sources
    )
    doctor.add_argument(
        "--probe", action="store_true", help="test the endpoint's capabilities with a few short requests"
    )
    _add_reporting(commands)
    _add_comparison(commands)
    _add_evaluation(commands)
    _add_serving(commands)
    _add_runs(commands)
    _add_recorded(commands)
    completion = commands.add_parser("completion", help="print a script that completes hira's commands in a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell: bash, zsh or fish")
    return main


def _add(
    commands: Any, name: str, about: str, *groups: Group, more: str = "", hints: Mapping[str, str] | None = None
) -> Parser:
    """Add a command with these groups of flags, and with `--debug`."""
    description = f"{about[0].upper()}{about[1:]}.{f' {more}' if more else ''}"
    command: Parser = commands.add_parser(name, help=about, description=description, hints=hints)
    for group in groups:
        group(command)
    command.add_argument("--debug", action="store_true", help="show tracebacks")
    return command


def _add_asking(commands: Any) -> None:
    ask = _add(commands, "ask", "answer a question", _model, _work, _limits, _continue, _record, _events)
    ask.add_argument("question", nargs="?", help="the question; - reads it from standard input")
    group = ask.add_argument_group("many questions at once")
    group.add_argument(
        "--batch", metavar="FILE", help="file of questions, one per line: text, or JSON with question, id and files"
    )
    group.add_argument("--concurrency", type=int, metavar="N", help="questions at a time (8)")
    _ray(group)
    ask.add_argument("--approve", action="store_true", help="ask before each subtask runs; you can edit or reject it")
    _dry_run(ask)
    _output(ask, "; with --batch: the answers as JSON lines")
    ask.add_argument("--schema", metavar="FILE", help="answer with JSON that fits this JSON schema")
    _add(
        commands,
        "chat",
        "ask questions that follow up on each other",
        *(_model, _work, _limits, _continue, _record, _events),
        more="Reads them from standard input, one per line, until its end or `exit`.",
    )


def _add_reporting(commands: Any) -> None:
    report = _add(
        commands, "report", "write a report on a topic, with references", _model, _sources, _limits, _record, _events
    )
    report.add_argument("question", metavar="TOPIC", help="the topic; - reads it from standard input")
    _files(report)
    group = report.add_argument_group("workflow")
    group.add_argument("--workflow", choices=REPORTING, metavar="NAME", help=f"{' or '.join(REPORTING)} (mams)")
    _options(report)
    _dry_run(report)
    report.add_argument(
        "-o", "--output", metavar="FILE", help="write the report to a file instead of stdout: .md, .html or .json"
    )
    rubric = _add(commands, "rubric", "write a rubric that scores reports on a query", _model, _json)
    rubric.add_argument("query", help="topic of the report")
    rubric.add_argument("--report", metavar="FILE", help="score this report with the rubric")
    rubric.add_argument("--rubric", metavar="FILE", help="read the rubric from a file that --json wrote")


def _add_comparison(commands: Any) -> None:
    compare = _add(
        commands,
        "compare",
        "ask several workflows the same question, side by side",
        *(_model, _sources, _limits, _record, _files, _options, _json, _quiet),
        hints={"--workflow": "name at least one: --workflow hira,mars,rag"},
    )
    compare.add_argument("question", help="the question; - reads it from standard input")
    compare.add_argument("--workflow", required=True, metavar="A,B,C", help="the workflows, separated by commas")


def _add_evaluation(commands: Any) -> None:
    command: Parser = commands.add_parser(
        "eval",
        help="ask many questions in several ways, score the answers, and report",
        description="Evaluate: `hira eval DATA` asks every question of DATA with every workflow and model.",
        hints={"WHAT": "hira eval mini asks the questions that come with hira, hira eval FILE.jsonl yours"},
    )
    what = command.add_subparsers(dest="what", metavar="WHAT", required=True)
    run = _add(what, "run", "ask and score (`hira eval DATA` is short for it)", _evaluation)
    run.add_argument(
        "--workflow",
        action="append",
        metavar="NAME",
        help="workflows, several separated by commas, or `all` (hira); repeatable",
    )
    about = "a workflow whole, and with the parts removed that its paper removes"
    tables = "hira (HiRA, Table 2), mars (MARS, Table 3), matpo (MATPO, Fig. 6)."
    ablate = _add(what, "ablate", about, _evaluation, more=tables)
    ablate.add_argument("--workflow", metavar="NAME", help="which workflow: hira (default), mars or matpo")
    sweep = _add(what, "sweep", "accuracy against the limit of subtasks (HiRA, Fig. 3)", _evaluation)
    sweep.add_argument("--workflow", metavar="NAME", help="which workflow (hira)")
    sweep.add_argument(
        "--max-subtasks",
        dest="subtasks",
        default="1,2,3,4,5,10,15",
        metavar="N,N",
        help="the limits, separated by commas (1,2,3,4,5,10,15)",
    )
    about = "two evaluations of the same questions, or two ways in one, question by question"
    diff = _add(what, "diff", about, _json)
    diff.add_argument(
        "folders",
        nargs="+",
        metavar="FOLDER",
        help="two folders of evaluations, or one and two of its ways of asking, such as hira rag",
    )
    judge = _add(what, "judge", "measure how often a judge (--model) agrees with human labels", _model, _json)
    judge.add_argument("file", metavar="FILE", help="question, answer, response and label, one JSON object per line")
    judge.add_argument(
        "--metric", metavar="NAME", default="hira", help="judge prompt: hira (default), webwalker, simpleqa, hle"
    )
    about = "measure how well ways of scoring reports agree with human preferences"
    preferences = _add(what, "preferences", about, _model, _json, more="Rubrics paper, Table 1; --model judges.")
    preferences.add_argument(
        "file", metavar="FILE", help="query, accepted and rejected, or the output of `hira eval candidates`, annotated"
    )
    preferences.add_argument(
        "--way", action="append", metavar="NAME", help="general, pointwise, pairwise, rubric; all of them by default"
    )
    about = "print the two best reports of each query, for people to choose from"
    candidates = _add(what, "candidates", about, more="A person writes first or second into `preferred` of each line.")
    candidates.add_argument("folder", metavar="FOLDER", help="the folder of an evaluation of reports")


def _evaluation(command: Parser) -> None:
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
    _model(command, several=True)
    _sources(command)
    _options(command)
    group = command.add_argument_group("how to ask and score")
    group.add_argument("--repeats", type=int, default=1, metavar="K", help="ask every question K times (1)")
    group.add_argument("--metric", metavar="NAME", help="how to score answers; the data set's own by default")
    group.add_argument("--judge", metavar="M", help="model of the judge, for metrics that need one")
    _limits(command)
    group = command.add_argument_group("the evaluation")
    group.add_argument("--concurrency", type=int, default=8, metavar="N", help="questions at a time (8)")
    group.add_argument(
        "-o", "--output", metavar="FOLDER", help="output folder (eval/DATA); run the same command again to resume"
    )
    _ray(group)
    _json(command)
    _quiet(command)


def _add_serving(commands: Any) -> None:
    serve = _add(
        commands,
        "serve",
        "serve an OpenAI-compatible endpoint, and a page to watch runs",
        *(_model, _sources, _limits, _record),
        more="Each workflow is a model of the endpoint at /v1; the page is at /.",
        hints={"--workflow": "each workflow is a model of the server: a client, or the page, names it"},
    )
    serve.add_argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="port (8811)")
    serve.add_argument(
        "--api-key",
        dest="serve_key",
        metavar="KEY",
        help="require this key; other users of this machine can see it in the list of processes, so @FILE reads it from"
        " a file; more in your own hira.toml, [keys.NAME]",
    )
    mcp = _add(commands, "mcp", "serve hira as an MCP server with the tool `ask`", _model, _sources, _limits)
    mcp.add_argument("--workflow", metavar="NAME", help="hira (default); a call may name another")
    mcp.add_argument(
        "--http", type=int, metavar="PORT", help="over HTTP on this machine's loopback address instead of stdio"
    )


def _add_runs(commands: Any) -> None:
    runs = _add(commands, "runs", "list recorded runs, export or delete them", _journal, _json)
    runs.add_argument("--limit", type=int, default=20, metavar="N", help="number of runs, newest first (20)")
    what = runs.add_subparsers(dest="what", metavar="WHAT", title="what else")
    export = what.add_parser("export", help="write conversations as JSON lines, for training")
    export.add_argument(
        "runs", nargs="*", metavar="RUN", help="run, or the beginning of its id; default: all that ended"
    )
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="output file; - is stdout")
    delete = what.add_parser("delete", help="delete runs and all their data")
    delete.add_argument("runs", nargs="*", metavar="RUN", help="run, or the beginning of its id")
    delete.add_argument("--older", type=float, metavar="DAYS", help="delete runs older than this")
    for one in (export, delete):  # what was given before `export` or `delete` holds as well
        one.add_argument("--journal", metavar="FILE", default=argparse.SUPPRESS, help="journal file (yours by default)")
        one.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")


def _add_recorded(commands: Any) -> None:
    """Add the commands that take one recorded run."""
    _add(commands, "show", "show a run: subtasks, experts, costs, answer, citations", _run, _json)
    _add(commands, "resume", "resume a run where it ended", _run, _limits, _events, _output)
    _add(commands, "replay", "replay a recorded run without calling anything", _run, _events, _output)
    trace = _add(commands, "trace", "write a run as one web page, or send it as spans to a collector", _run)
    trace.add_argument("-o", "--output", metavar="FILE", help="output page, such as trace.html")
    trace.add_argument(
        "--otel", nargs="?", const="", metavar="URL", help="send spans over OTLP/HTTP (default URL: the configured one)"
    )
    trace.add_argument("--content", action="store_true", help="include prompts, replies and results")
    about = "show how the claims of a run's answer were checked, or check them again"
    verify = _add(commands, "verify", about, _run, _model, _json)
    verify.add_argument("--verify", choices=("lexical", "model"), help="check again, by words alone or by the model")


def _run(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="the run, or the beginning of its id; `last` is the newest")
    _journal(command)


def _journal(command: Parser) -> None:
    command.add_argument("--journal", metavar="FILE", help="journal file (yours by default)")


def _model(command: Parser, *, several: bool = False) -> None:
    group = command.add_argument_group("model")
    about = "model name, gguf:FILE to run a file with llama.cpp, hf:PATH to load weights in this process, or `offline`"
    if several:
        group.add_argument("-m", "--model", action="append", dest="models", metavar="M", help=f"{about}; repeatable")
    else:
        group.add_argument("-m", "--model", metavar="M", help=about)
    group.add_argument("--adapter", metavar="DIR", help="LoRA adapter for a model loaded with hf:PATH")
    group.add_argument("--profile", metavar="RUN", help="output folder of a hira-train run")
    group.add_argument("--base-url", metavar="URL", help="OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1")
    group.add_argument(
        "--reasoning-effort",
        choices=EFFORTS,
        metavar="E",
        help=f"reasoning effort of the model: {', '.join(EFFORTS)}",
    )
    group.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE=M",
        help="model for one role; several separated by commas are tried in order; repeatable",
    )


def _sources(command: Parser) -> None:
    group = command.add_argument_group("sources")
    group.add_argument("--docs", action="append", metavar="PATH", help="file or folder to search; repeatable")
    group.add_argument(
        "--search", metavar="NAME", help="web search: serper, tavily, brave, searxng, wikipedia (needs no key) …"
    )


def _files(command: Parser) -> None:
    command.add_argument(
        "--file",
        action="append",
        default=[],
        dest="files",
        metavar="PATH",
        help="file to attach to the question; repeatable",
    )


def _options(command: Parser) -> None:
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="option of a workflow, such as mars.max_turns=5; repeatable",
    )


def _work(command: Parser) -> None:
    _sources(command)
    _files(command)
    _options(command)
    group = command.add_argument_group("workflow")
    group.add_argument(
        "--workflow", metavar="NAME", help="hira (default), mars, rag, react …; docs/workflows.md lists them"
    )
    group.add_argument(
        "--tools",
        action="append",
        metavar="NAME",
        help="your own tool as module:function, or one of an installed package; repeatable",
    )
    group.add_argument(
        "--without", action="append", choices=ABILITIES, metavar="PART", help=f"leave out: {', '.join(ABILITIES)}"
    )
    group.add_argument("--max-subtasks", type=int, metavar="N", help="maximum number of subtasks (10)")
    group.add_argument("--parallel", type=int, metavar="N", help="subtasks that run at the same time (1)")


def _limits(command: Parser) -> None:
    group = command.add_argument_group("limits of the run; a tenth is reserved for the answer")
    group.add_argument("--max-tokens", type=int, metavar="N", help="prompt and reply tokens")
    group.add_argument("--max-cost", type=float, metavar="USD", help="US dollars")
    group.add_argument("--max-time", type=parse_duration, metavar="TIME", help="such as 90, 90s, 5m or 1h")
    group.add_argument("--max-calls", type=int, metavar="N", help="model calls")
    group.add_argument("--max-reply-tokens", type=int, metavar="N", help="tokens of one reply (4096)")
    group = command.add_argument_group("verification")
    group.add_argument(
        "--verify",
        choices=("lexical", "model", "off"),
        help="check claims by words alone, ask the model about doubtful ones (default), or check nothing",
    )


def _record(command: Parser) -> None:
    group = command.add_argument_group("record")
    group.add_argument("--journal", metavar="FILE", help="journal file; `off` records nothing")
    group.add_argument(
        "--cache",
        dest="cache_responses",
        action="store_true",
        default=None,
        help="reuse the replies of recorded runs",
    )


def _continue(command: Parser) -> None:
    command.add_argument(
        "--continue",
        dest="continues",
        metavar="RUN",
        help="follow up on a recorded run, with its settings; `last` is the newest",
    )


def _ray(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--ray", metavar="ADDRESS", help="ask on a Ray cluster: local, auto, ray://HOST:PORT")


def _dry_run(command: Parser) -> None:
    command.add_argument("--dry-run", action="store_true", help="print the maximum cost and exit")


def _output(command: Parser, more: str = "") -> None:
    about = f"write the answer to a .json, .md or .txt file as well{more}"
    command.add_argument("-o", "--output", metavar="FILE", help=about)


def _json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _quiet(command: Parser) -> None:
    command.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _events(command: Parser) -> None:
    _json(command)
    command.add_argument("--events", action="store_true", help="progress as JSON lines on stderr")
    _quiet(command)
