"""The embedded default: deterministic and extractive, with no network, no key and no model. It looks at the name and
values of a prompt, never at the wording, so a run takes the same way as with a model."""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hira.core import tokens
from hira.core.bm25 import words
from hira.core.messages import Filled, Message, ToolCall
from hira.core.plugin import LazyMapping
from hira.core.policy import Completion, Delta, Request, Usage, Watch, cut_at_stop
from hira.core.sanitize import clean
from hira.core.tool import join_arguments
from hira.evidence import CITED, find_cited
from hira.policies.dialects import Call, Explained
from hira.policies.offline.answering import (
    NOTHING,
    UNSEARCHED,
    ShownPassage,
    cite,
    find_answer,
    find_bridge,
    find_passages,
    make_query,
    refuse,
    split_questions,
)

NOTICES = frozenset(
    """result repeated unreadable empty cut record_again mams_begin conclude matpo_planner_summary matpo_worker_summary
    matpo_brief_conclusion react_report_close""".split()
)
"""Prompts that set no task."""
ASKING = ("purpose", "task", "subtask", "question", "query", "topic", "problem")
"""Values that ask something, the first that a prompt has."""

Program = Generator[tuple[str, Mapping[str, Any]], str, str]
"""The way of a role through its work: yields calls, is sent their results, and returns the last word."""


@dataclass(frozen=True, slots=True)
class Act:
    """The next step of a role: it says `text` and makes `calls`, each a tool's name and its arguments."""

    text: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True)
class OfflineRequest:
    """A request as a role reads it: the last prompt that sets a task, its values, and what calls have brought since."""

    prompt: str
    values: Mapping[str, Any]
    text: str = ""
    results: tuple[tuple[Call, str], ...] = ()
    request: Request = field(default=Request(()))

    @property
    def closing(self) -> bool:
        return self.request.choose == "none"

    def value(self, name: str) -> str:
        value = self.values.get(name) or ""
        return str(value) if isinstance(value, Filled) else clean(str(value))

    def number(self, name: str, otherwise: int) -> int:
        match = re.search(r"\d+", self.value(name))
        return int(match[0]) if match else otherwise

    @property
    def question(self) -> str:
        """The question, without earlier turns of a conversation and without instructions after it."""
        named = next(filter(None, map(self.value, ASKING)), self.text)
        text = " ".join(named.rpartition('"}) ')[2].partition("\n\n")[0].split())
        return match[0] if (match := re.match(r".*[?？]", text)) else text

    @property
    def files(self) -> list[str]:
        filled = self.values.get("files")
        lines = str(filled.values.get("files", "")).splitlines() if isinstance(filled, Filled) else []
        return [line.removeprefix("- ").strip() for line in lines if line.strip()]

    @property
    def tools(self) -> dict[str, Mapping[str, Any]]:
        specs = [tool.spec for tool in self.explained.tools] if self.explained else self.request.tools
        return {spec["function"]["name"]: spec["function"].get("parameters", {}) for spec in specs}

    @property
    def explained(self) -> Explained | None:
        return next((value for value in self.values.values() if isinstance(value, Explained)), None)


def read_request(request: Request) -> OfflineRequest:
    task, position = Message("user", ""), -1
    for place, message in reversed(list(enumerate(request.messages))):
        if message.role in ("user", "system") and message.prompt not in NOTICES:
            task, position = message, place
            if message.role == "user":
                break
    since = request.messages[position + 1 :]
    results = [pair for message in since if message.prompt == "result" for pair in message.values.get("results", ())]
    first = request.messages[0].values if request.messages else {}
    return OfflineRequest(task.prompt, {**first, **task.values}, str(task.text), tuple(results), request)


def write_act(act: Act, request: OfflineRequest) -> tuple[str, tuple[ToolCall, ...]]:
    """The act as text and native calls, whichever the dialect takes. The text names a tool that is not offered."""
    explained, lines, calls = request.explained, [act.text], list[ToolCall]()
    offered = {tool.name: tool for tool in explained.tools} if explained else {}
    for nth, (name, arguments) in enumerate(act.calls, 1):
        if name not in request.tools:
            lines.append(f"This request offers no tool named {name}.")
        elif explained and (written := explained.dialect.write(Call(name, arguments), offered[name])):
            lines.append(written)
        else:
            id_ = f"call_{len(request.request.messages)}_{nth}"
            calls.append(ToolCall(id_, name, json.dumps(dict(arguments), ensure_ascii=False)))
    return "\n".join(lines).strip(), tuple(calls)


_NUMBER = r"\d+(?:\.\d+)?"
_PHRASES = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (rf"({_NUMBER})\s*(?:%|percent|per cent) of", r"\1 / 100 *"),
    (r"(?:raised )?to the power of|\^", "**"),
    (r"\bsquared\b|²", "** 2"),
    (r"multiplied by|\btimes\b|×|·|(?<=\d) ?x ?(?=\d)", "*"),
    (r"divided by|÷", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
)
_RUN = re.compile(rf"(?:{_NUMBER}|\*\*|[-+*/%()]|\s)+")
_FRAME = "calculate compute evaluate result value much equal answer please exact exactly"


def find_expression(question: str) -> str:
    """The expression that a question wants computed, as Python writes it; empty if the question asks anything else."""
    if len(question) > 300:
        return ""
    text = question.lower()
    for phrase, symbol in _PHRASES:
        text = re.sub(phrase, symbol, text)
    run = max((match[0] for match in _RUN.finditer(text)), key=lambda run: len(run.strip()), default="")
    expression = run.strip().strip("*/+%").strip()
    if {*words(text.replace(run, " "))}.difference(words(_FRAME)):
        return ""
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return ""
    return expression if isinstance(tree, ast.BinOp) else ""


REPORTING = frozenset("deep_search reader code matpo_subtask search_o1_condense mars_system1".split())
"""Prompts of roles that work for another: their answers get no box."""


def solve(request: OfflineRequest) -> Act:
    """The next step of a role that answers with its tools: its first call without a result, or its last word."""
    program = _solve(request)
    left = min(request.number("several", 1), request.number("limit", 10) - len(request.results))
    known = {(call.name, join_arguments(call.arguments)): text for call, text in request.results}
    try:
        name, arguments = next(program)
        while True:
            brought = known.get((name, join_arguments(arguments)))
            if brought is None and left > 0 and not request.closing:
                return Act("I look for what is asked.", ((name, arguments),))
            name, arguments = program.send(brought or "")
    except StopIteration as end:
        return Act(str(end.value))


def _solve(request: OfflineRequest) -> Program:
    """The answer to each question of the task, in a box if a prompt asks for a marked one, or a refusal."""
    texts = list[str]()
    shown = find_passages("\n\n".join(map(str, request.values.values())))
    for question in split_questions(request.question):
        text = yield from _answer(request, question, [*shown])
        if not text:
            brought = [text for _, text in request.results] + [request.value(name) for name in ("results", "brought")]
            # a search that was finished names sources, or says that it found none
            searched = any(CITED.search(text) or NOTHING in text or "nothing found" in text for text in brought)
            texts = [refuse(question, UNSEARCHED if request.closing and not searched else NOTHING)]
            break
        texts.append(text)
    text = " ".join(dict.fromkeys(texts))
    prompts = "".join(message.text for message in request.request.messages)
    if request.prompt in REPORTING or not ("\\boxed" in prompts or "<answer>" in prompts):
        return text
    paired = text.count("{") == text.count("}") and not re.search(r"^[^{]*\}", text)  # others would end it early
    return f"\\boxed{{{text if paired else text.replace('{', '(').replace('}', ')')}}}"


def _answer(request: OfflineRequest, question: str, read: list[ShownPassage]) -> Program:
    """The answer to one question with its citations, or an empty text. `read` grows."""
    if "python" in request.tools and (expression := find_expression(question)):
        whole = "/" not in expression and "." not in expression
        value = expression if whole else f'f"{{{expression}:.15g}}"'
        printed = yield "python", {"code": f'print("{expression} =", {value})'}
        lines = [(passage.id, passage.text.splitlines()[-1]) for passage in find_passages(printed) if passage.text]
        return next((f"{line}. [{id_}]" for id_, line in lines if " = " in line), "")
    for path in request.files if "files" in request.tools else ():
        read += find_passages((yield "files", {"path": path}))
    bridges = list[str]()
    for _ in range(2):
        if text := (yield from _consult(request, question, read)):
            return " ".join([text, *bridges])
        if (bridge := find_bridge(question, read)) is None:
            break
        question, bridges = bridge[1], [cite(bridge[0]), *bridges]
    return ""


def _consult(request: OfflineRequest, question: str, read: list[ShownPassage]) -> Program:
    """Call the tool that looks a question up, unless what was `read` answers it. `read` grows."""
    if sentence := find_answer(question, read):
        return cite(sentence)
    name = next((name for name in ("subtask", "search_and_browse", "search") if name in request.tools), "")
    if not name:
        return ""
    brought = yield name, _fill(request.tools[name], question)
    if passages := find_passages(brought):
        read += passages
        if not (sentence := find_answer(question, read)) and "browse" in request.tools:
            read += find_passages((yield "browse", _fill(request.tools["browse"], question, passages[0].location)))
            sentence = find_answer(question, read)
        return cite(sentence) if sentence else ""
    read += (stated := find_statements(brought))
    if len(stated) == 1 and not find_answer(question, stated) and find_bridge(question, stated):
        return ""
    return conclude(brought) or (cite(sentence) if (sentence := find_answer(question, stated)) else "")


def _fill(parameters: Mapping[str, Any], question: str, place: str = "") -> dict[str, Any]:
    """The required arguments of a tool by their names: a query, an address, or else what is asked, in full."""
    given: dict[str, Any] = {}
    properties = parameters.get("properties", {})
    for name in properties if place else parameters.get("required", properties):
        query = make_query(question) if name in ("query", "queries") else place if name in ("url", "path") else question
        given[name] = [query] if properties.get(name, {}).get("type") == "array" else query
    return given


def conclude(brought: str) -> str:
    return "" if NOTHING in brought or UNSEARCHED in brought else " ".join(map(cite, find_statements(brought)))


def find_statements(brought: str) -> list[ShownPassage]:
    """Find the statements of a report that cite a source: the texts that a mark ends, each in its line."""
    statements, begin = list[ShownPassage](), 0
    for mark in CITED.finditer(brought):
        piece = brought[begin : mark.start()].rpartition("\n")[2].strip()
        begin = mark.end()
        text = re.sub(r"^(?:Conclusion|Result): ", "", piece)
        statements += [ShownPassage(find_cited(mark[0])[0], "", "", text)] if words(text) else []
    return statements


_PLAYED = """assign recall distil simple_search_plan plan_and_solve_plan plan_and_solve_answer marsrl_verifier
    mams_search mams_state mams_report""".split()
ROLES: Mapping[str, Callable[[OfflineRequest], Act]] = LazyMapping(
    {prompt: f"{__name__}.roles:{prompt}" for prompt in _PLAYED}
)
"""The action of `offline` for each prompt. Any other prompt is a question to solve with the offered tools."""


class OfflinePolicy:
    """Answers any request without a model."""

    model = "offline"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        await asyncio.sleep(0)  # many questions at once take turns
        offline_request = read_request(request)
        text, calls = write_act(ROLES.get(offline_request.prompt, solve)(offline_request), offline_request)
        if watch:
            watch(Delta(text))
        usage = Usage(1, sum(tokens.count(message.text) for message in request.messages), tokens.count(text), cost=0.0)
        completion = Completion(text, calls=calls, finish="calls" if calls else "stop", usage=usage, model=self.model)
        return cut_at_stop(completion, request.stop)

    async def aclose(self) -> None:
        """There is nothing to close."""
