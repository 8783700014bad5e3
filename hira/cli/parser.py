"""The command line. Only what exists is listed; what is mistyped gets the nearest name back."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from hira.cli import flags
from hira.core.errors import UsageError

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
ABILITIES = ("reasoning-transfer", "memory", "search", "code", "multimodal")


class Parser(argparse.ArgumentParser):
    """`hints` say what to do about an argument by its name, one that is missing or one that this command has not."""

    def __init__(self, *, hints: Mapping[str, str] | None = None, **named: Any) -> None:
        super().__init__(allow_abbrev=False, **named)
        self.hints = dict(hints or {})

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, fix=self._fix(message))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments, those that nobody takes told by the command that was to take them."""
        known, left = self.parse_known_args(args, namespace)
        if left:
            fix = self.find_command(known).about(left, self.commands().values())
            raise UsageError(f"unrecognized arguments: {' '.join(left)}", fix=fix)
        return known

    def find_command(self, known: argparse.Namespace) -> "Parser":
        """The parser of the command that was named, or of the command below it."""
        for name in (getattr(known, "command", None), getattr(known, "what", None)):
            if name in self.commands():
                return self.commands()[str(name)].find_command(known)
        return self

    def about(self, left: Sequence[str], commands: "Iterable[Parser]") -> str:
        """What to do about arguments that this command does not take, and perhaps another of the commands does."""
        flag = next((one.partition("=")[0] for one in left if one.startswith("-")), "")
        if not flag:
            return "put the question in quotes, and repeat the flag for each path: --docs A --docs B"
        if flag in self.hints:
            return self.hints[flag]
        if others := [parser.prog for parser in commands if flag in parser.flags()]:
            return f"{flag} is for {', '.join(others[:3])}; {self.prog} --help lists its own flags"
        return _near(flag, self.flags()) or f"{self.prog} --help lists the flags"

    def commands(self) -> "dict[str, Parser]":
        """The parsers of the commands below this one, by their names."""
        found: dict[str, Parser] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public name for it
                found |= action.choices
        return found

    def _fix(self, message: str) -> str:
        """The nearest command or value to what was written; else where help is."""
        if missing := re.search(r"arguments are required: ([\w-]+)", message):
            return self.hints.get(missing[1], f"{self.prog} --help shows how to use it")
        if number := re.search(r"argument (\S+): invalid (int|float) value", message):
            return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
        if message.endswith("is not a duration"):
            return "write 90, 90s, 5m or 1h"
        if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            known = re.findall(r"[\w-]+", choice[2])
            if self.prog == "hira" and not _near(choice[1], known):
                return 'to ask a question: hira ask "question"'
            return _near(choice[1], known) or f"{self.prog} --help lists the choices"
        return f"{self.prog} --help shows how to use it"

    def flags(self) -> list[str]:
        """All flags of this parser and of its commands."""
        own = [flag for action in self._actions for flag in action.option_strings]
        return own + [flag for parser in self.commands().values() for flag in parser.flags()]


def parse_duration(text: str) -> float:
    """The seconds of a duration such as "90", "90s", "5m" or "1.5h"."""
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def parser(version: str) -> Parser:
    main = Parser(
        prog="hira",
        description="Ask hard questions of any model; get answers bound to evidence.",
        epilog="exit codes: 0 answered, 1 a fault in hira, 2 usage or configuration, 3 endpoint or key, "
        "4 not verified or not enough evidence, 5 partial (a budget ran out), 130 interrupted",
        hints={"COMMAND": 'hira ask "question" asks; hira --help lists the commands'},
    )
    main.add_argument("--version", action="version", version=f"hira {version}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    ask = commands.add_parser("ask", help="answer a question", description="Answer a question.")
    ask.add_argument("question", nargs="?", help="the question; - reads it from standard input")
    _model(ask)
    _work(ask)
    _limits(ask)
    group = ask.add_argument_group("many questions at once")
    group.add_argument(
        "--batch", metavar="FILE", help="file of questions, one per line: text, or JSON with question, id and files"
    )
    group.add_argument("--concurrency", type=int, metavar="N", help="questions at a time (8)")
    group.add_argument("--ray", metavar="ADDRESS", help="ask on a Ray cluster: local, auto, ray://HOST:PORT")
    ask.add_argument("--approve", action="store_true", help="ask before each subtask runs; you can edit or reject it")
    _continue(ask)
    _record(ask)
    _output(ask, "; with --batch: the answers as JSON lines")
    ask.add_argument("--schema", metavar="FILE", help="answer with JSON that fits this JSON schema")
    chat = commands.add_parser(
        "chat",
        help="ask questions that follow up on each other",
        description="Read questions from standard input, one per line; each follows up on those before it. Ends at the "
        "end of the input, or at `exit`.",
    )
    _model(chat)
    _work(chat)
    _limits(chat)
    _continue(chat)
    _record(chat)
    _shown(chat)
    flags.add_init(commands)
    doctor = commands.add_parser(
        "doctor",
        help="show the configuration, what works, and how to turn on the rest",
        description="Show each setting and where its value came from, what works, and what is off.",
    )
    _model(doctor)
    _sources(doctor)
    doctor.add_argument(
        "--probe", action="store_true", help="test the endpoint's capabilities with a few short requests"
    )
    doctor.add_argument("--debug", action="store_true", help="show tracebacks")
    flags.add_report(commands, _model, (_sources, _limits, _record))
    flags.add_compare(commands, (_model, _sources, _limits, _record))
    flags.add_eval(commands, _model, _limits)
    _serve(
        commands.add_parser(
            "serve",
            help="serve an OpenAI-compatible endpoint, and a page to watch runs",
            description="Serve an OpenAI-compatible endpoint at /v1, where each workflow is a model, and a page at / "
            "to start and watch runs.",
            hints={"--workflow": "each workflow is a model of the server: a client, or the page, names it"},
        )
    )
    _mcp(commands.add_parser("mcp", help="serve hira as an MCP server", description="Serve the tool `ask` over MCP."))
    _runs(
        commands.add_parser(
            "runs",
            help="list recorded runs, export or delete them",
            description="List recorded runs, the newest first; `hira runs export` and `hira runs delete` do more.",
        )
    )
    _recorded(commands)
    flags.add_completion(commands)
    return main


def _runs(command: Parser) -> None:
    _journal(command)
    command.add_argument("--limit", type=int, default=20, metavar="N", help="number of runs, newest first (20)")
    command.add_argument("--json", action="store_true", help="one JSON array on stdout")
    command.add_argument("--debug", action="store_true", help="show tracebacks")
    what = command.add_subparsers(dest="what", metavar="WHAT", title="what else")
    export = what.add_parser(
        "export",
        help="write conversations as JSON lines, for training",
        description="Write the conversations of recorded runs as JSON lines, for training.",
    )
    export.add_argument(
        "runs", nargs="*", metavar="RUN", help="run, or the beginning of its id; default: all that ended"
    )
    export.add_argument("-o", "--output", required=True, metavar="FILE", help="output file; - is stdout")
    delete = what.add_parser(
        "delete", help="delete runs and all their data", description="Delete recorded runs and all their data."
    )
    delete.add_argument("runs", nargs="*", metavar="RUN", help="run, or the beginning of its id")
    delete.add_argument("--older", type=float, metavar="DAYS", help="delete runs older than this")
    for one in (export, delete):  # what was given before `export` or `delete` holds as well
        one.add_argument("--journal", metavar="FILE", default=argparse.SUPPRESS, help="journal file (yours by default)")
        one.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks")


def _recorded(commands: Any) -> None:
    """The commands that take one recorded run."""

    def command(name: str, told: str) -> Parser:
        made: Parser = commands.add_parser(name, help=told, description=f"{told[0].upper()}{told[1:]}.")
        made.add_argument("run", metavar="RUN", help="the run, or the beginning of its id; `last` is the newest")
        _journal(made)
        return made

    show = command("show", "show a run: subtasks, experts, costs, answer, citations")
    show.add_argument("--json", action="store_true", help="one JSON object on stdout")
    show.add_argument("--debug", action="store_true", help="show tracebacks")
    resume = command("resume", "resume a run where it ended")
    _limits(resume)
    _output(resume)
    _output(command("replay", "replay a recorded run without calling anything"))
    trace = command("trace", "write a run as one web page, or send it as spans to a collector")
    trace.add_argument("-o", "--output", metavar="FILE", help="output page, such as trace.html")
    trace.add_argument(
        "--otel", nargs="?", const="", metavar="URL", help="send spans over OTLP/HTTP (default URL: the configured one)"
    )
    trace.add_argument("--content", action="store_true", help="include prompts, replies and results")
    trace.add_argument("--debug", action="store_true", help="show tracebacks")
    verify = command("verify", "show how the claims of a run's answer were checked, or check them again")
    _model(verify)
    verify.add_argument("--verify", choices=("lexical", "model"), help="check again, by words alone or by the model")
    verify.add_argument("--json", action="store_true", help="one JSON object on stdout")
    verify.add_argument("--debug", action="store_true", help="show tracebacks")


def _journal(command: Parser) -> None:
    command.add_argument("--journal", metavar="FILE", help="journal file (yours by default)")


def _serve(command: Parser) -> None:
    _model(command)
    _sources(command)
    _limits(command)
    _record(command)
    group = command.add_argument_group("serving")
    group.add_argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1)")
    group.add_argument("--port", type=int, metavar="N", help="port (8811)")
    group.add_argument(
        "--api-key",
        dest="serve_key",
        metavar="KEY",
        help="require this key; other users of this machine can see it in the list of processes, so @FILE reads it from"
        " a file; more in your own hira.toml, [keys.NAME]",
    )
    group.add_argument("--debug", action="store_true", help="show tracebacks, and each request")


def _mcp(command: Parser) -> None:
    _model(command)
    _sources(command)
    group = command.add_argument_group("workflow")
    group.add_argument("--workflow", metavar="NAME", help="hira (default); a call may name another")
    _limits(command)
    group = command.add_argument_group("serving")
    group.add_argument(
        "--http", type=int, metavar="PORT", help="over HTTP on this machine's loopback address instead of stdio"
    )
    group.add_argument("--debug", action="store_true", help="show tracebacks")


def _model(command: Parser, *, several: bool = False) -> None:
    group = command.add_argument_group("model")
    told = "model name, gguf:FILE to run a file with llama.cpp, hf:PATH to load weights in this process, or `offline`"
    if several:
        group.add_argument("-m", "--model", action="append", dest="models", metavar="M", help=f"{told}; repeatable")
    else:
        group.add_argument("-m", "--model", metavar="M", help=told)
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


def _work(command: Parser) -> None:
    _sources(command)
    command.add_argument(
        "--file",
        action="append",
        default=[],
        dest="files",
        metavar="PATH",
        help="file to attach to the question; repeatable",
    )
    group = command.add_argument_group("workflow")
    group.add_argument(
        "--workflow", metavar="NAME", help="hira (default), mars, rag, react …; docs/workflows.md lists them"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="option of a workflow, such as mars.turns=5; repeatable",
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


LIMITS = ("max_tokens", "max_cost", "max_time", "max_calls")


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


def _output(command: Parser, more: str = "") -> None:
    told = f"write the answer to a .json, .md or .txt file as well{more}"
    _shown(command).add_argument("-o", "--output", metavar="FILE", help=told)


def _shown(command: Parser) -> "argparse._ArgumentGroup":
    group = command.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object on stdout")
    group.add_argument("--events", action="store_true", help="progress as JSON lines on stderr")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("--debug", action="store_true", help="show tracebacks")
    return group


def collect_flags(args: argparse.Namespace) -> dict[str, Any]:
    """The flags that were given and are settings, named as the settings are."""
    from hira.runtime.settings import Settings  # loads pydantic, which `hira --help` does without

    settings = Settings.model_fields.keys() - {"roles"}
    given = {name: value for name, value in vars(args).items() if value is not None and name in settings}
    if args.role:
        given["roles"] = dict(map(_role, args.role))
    if getattr(args, "set", None):
        given["workflows"] = _options(args.set)
    return given


def _options(texts: Iterable[str]) -> dict[str, dict[str, str]]:
    """Options by workflow."""
    options: dict[str, dict[str, str]] = {}
    for text in texts:
        named = re.fullmatch(r"([\w-]+)\.(\w+)=(.+)", text)
        if named is None:
            raise UsageError(f"--set {text!r} does not name an option", fix="write --set mars.turns=5")
        options.setdefault(named[1], {})[named[2]] = named[3]
    return options


def check_options(texts: Iterable[str], workflows: Iterable[str]) -> None:
    """Raise `UsageError` for an option of --set whose workflow is none of these."""
    used = list(workflows)
    for name in _options(texts):
        if name not in used:
            told = f"--set names an option of {name!r}, and the workflow is {' and '.join(map(repr, used))}"
            from hira.workflows import WORKFLOWS  # only here: `hira --help` does without them

            if name not in WORKFLOWS and any(":" in one for one in used):
                raise UsageError(told, fix="a workflow of your own takes no --set; write its options into its class")
            known = f"add --workflow {name}, or remove the option" if name in WORKFLOWS else ""
            raise UsageError(told, fix=known or _near(name, [*used, *WORKFLOWS]) or "leave the option out")


def _role(text: str) -> tuple[str, dict[str, str]]:
    role, equals, model = text.partition("=")
    if not (role and equals and model):
        raise UsageError(f"--role {text!r} does not name a model", fix="write --role planner=MODEL")
    return role, {"model": model}
