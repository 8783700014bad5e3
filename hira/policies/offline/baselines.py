"""The baselines' roles, as the offline policy plays them: mostly what HiRA's experts do, told to answer themselves."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hira.evidence import OUTPUT, cited
from hira.messages import Filled
from hira.policies.offline import computing, folder, planning, questions, reading, roles
from hira.policies.offline.attachments import speaks_of
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.opening import OPEN_TABLE
from hira.policies.offline.passages import Passage, passages_of
from hira.policies.offline.program import Program, advance
from hira.policies.offline.roles import boxed, failed, nothing, question_of
from hira.policies.offline.sentences import sentences
from hira.policies.offline.working import worked

UNREAD = "Without a model and without anything to read, only plain arithmetic can be answered. Asked was"
SHOWN = 8
"""Paragraphs that a program prints for a question."""
SENTENCES = 3
"""Sentences of a section at most."""
_SIGNS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"sqrt": math.sqrt, "factorial": math.factorial, "abs": abs}


def direct(asked: Asked) -> Act:
    """Nothing is known here but arithmetic."""
    question = question_of(asked.value("task"))
    if expression := computing.expression(question):
        try:
            value = _value(ast.parse(expression, mode="eval").body)
        except (ArithmeticError, ValueError) as error:
            return Act(boxed(f"{expression} cannot be computed: {error}."))
        return Act(boxed(f"{expression} = {value:.12g}." if isinstance(value, float) else f"{expression} = {value}."))
    return Act(boxed(f"{UNREAD}: {question}"))


def _value(node: ast.AST) -> Any:
    """The value of an expression that `computing.expression` wrote."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return _SIGNS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](*map(_value, node.args))
    raise ValueError("it holds more than arithmetic")


def search_o1(asked: Asked) -> Act:
    return advance(
        _searched(asked, _with_other_words), asked, "This has to be looked up.", limit=asked.number("limit", 10)
    )


def webthinker(asked: Asked) -> Act:
    """An explorer finds other words by itself, when it is told that looking it up found nothing."""
    return advance(_searched(asked, str), asked, "This has to be looked up.", limit=asked.number("limit", 20))


def _searched(asked: Asked, spelled: Callable[[str], str]) -> Program:
    """What HiRA's planner does, with a search in the place of each subtask."""
    question = " ".join(asked.value("task").split())
    plan = planning.solve_all(questions.parts(question), asked.files)
    calls = next(plan)
    try:
        while True:
            brought = yield [("search", {"query": spelled(arguments["task"])}) for _, arguments in calls]
            tasks = [arguments["task"] for _, arguments in calls]
            calls = plan.send([_concluded(text, task) for text, task in zip(brought, tasks, strict=True)])
    except StopIteration as end:
        return boxed(end.value.text or nothing(question))


def _with_other_words(task: str) -> str:
    """The query for a subtask; for one that was looked up in vain, the question with other words behind it."""
    question = question_of(task)
    return " ".join([question, *roles.other_words(question)]) if roles.FURTHER in task else task


def _concluded(brought: str, task: str) -> str:
    """What a search concluded, empty if that is nothing that can be cited; of passages, what they say."""
    if passages := passages_of(brought):
        found = reading.find(question_of(task), passages)
        return found.text if found else ""
    return brought.strip() if cited(brought) and not failed(brought) else ""


def condense(asked: Asked) -> Act:
    """The sentence that answers the query, if that is a question, else the one that answers what was asked."""
    query = asked.value("query")
    wanted = question_of(query if "?" in query or "？" in query else asked.value("task"))
    found = reading.find(wanted, passages_of(asked.value("documents")))
    return Act(found.text if found else nothing(wanted))


def react(asked: Asked) -> Act:
    """The planner's way, all of it done here: compute what is a computation, explore for everything else."""
    return advance(worked(asked, roles.explore), asked, "I look for what is asked.", limit=asked.number("limit", 20))


def codeact(asked: Asked) -> Act:
    """The planner's way: what is no computation is looked for in what a program prints of the files."""
    look = _printed if "python" in asked.tools else roles.explore
    return advance(worked(asked, look), asked, "I look into the files.", limit=asked.number("limit", 10))


def _printed(asked: Asked) -> Program:
    task = asked.value("task")
    question = question_of(task)
    if asked.files and (task.startswith(OPEN_TABLE) or speaks_of(task, asked.files)) and "files" in asked.tools:
        return (yield from roles.explore(asked))
    places = roles.roots(asked) + asked.files
    source = Path(folder.__file__).read_text(encoding="utf-8")
    program = f"# {question}\n{source}\n\nprint(shown({question!r}, {places!r}, {SHOWN}))"
    (brought,) = yield [("python", {"code": program})]
    read = [Passage(one.id, "", one.location, one.text.rpartition(OUTPUT)[2]) for one in passages_of(brought)]
    found = reading.find(question, read)
    return boxed(found.text if found else nothing(question))


def multimodal(asked: Asked) -> Act:
    """Attached files of text are read; what would have to be seen or heard is not."""
    if "files" in asked.tools and not all(roles.MEDIA.search(file) for file in asked.files):
        return roles.deep_search(asked)
    return roles.cannot_see(asked)


def plan(asked: Asked) -> Act:
    """The steps by the form of the question; what a later step would need of an earlier one cannot be put into it."""
    question = " ".join(asked.value("task").split())
    steps: list[str] = []
    for part in questions.parts(question):
        if compared := questions.comparison(part):
            steps += compared.lookups
        elif (inner := questions.hop(part)) and inner.sure:
            steps += [inner.inner, part]
        else:
            steps.append(part)
    return roles.record(steps=list(dict.fromkeys(steps))[: asked.number("most", 10)])


def solve(asked: Asked) -> Act:
    """What the steps concluded, the last first; nothing, if the last brought nothing or a comparison lacks a side."""
    shown = asked.values.get("brought")
    brought: Sequence[tuple[str, str]] = shown.values.get("pairs", ()) if isinstance(shown, Filled) else ()
    told = [result for _, result in brought if not failed(result)]
    question = question_of(asked.value("task"))
    halved = questions.comparison(question) and len(told) < len(brought)
    if not told or failed(brought[-1][1]) or halved:
        return Act(boxed(nothing(question)))
    return Act(boxed(" ".join(dict.fromkeys(reversed(told)))))


def report(asked: Asked) -> Act:
    return advance(_reported(asked), asked, "I gather what there is.", limit=asked.number("limit", 80))


def _reported(asked: Asked) -> Program:
    """One search and one section for each question of the topic."""
    topic, outline = " ".join(asked.value("task").split()), ""
    for part in questions.parts(topic):
        yield [("search", {"query": question_of(part)})]
        (outline,) = yield [("write_section", {"title": part.rstrip("?？."), "task": part})]
    return "The report is written." if "#" in outline else boxed(nothing(topic))


def section(asked: Asked) -> Act:
    """The sentence that answers the section's task, and those of its paragraph that follow, with the id of each."""
    title = asked.value("title")
    read = passages_of(asked.value("documents"))
    found = reading.find(question_of(asked.value("task")), read)
    if not found:
        return Act(f"## {title}\n\n{nothing(question_of(asked.value('task')))}")
    one = found.sentence
    rest = [other for other in sentences([one.passage]) if other.paragraph == one.paragraph]
    after = rest[rest.index(one) + 1 :][: SENTENCES - 1] if one in rest else []
    told = [found.text, *(f"{other.text} [{one.passage.id}]" for other in after)]
    return Act(f"## {title}\n\n{' '.join(told)}")


def edit(asked: Asked) -> Act:
    """The report as it stands: nothing here can judge an instruction."""
    return Act(asked.value("article") or nothing(asked.value("instruction")))


ROLES: Mapping[str, Callable[[Asked], Act]] = {
    "direct": direct,
    "search_o1": search_o1,
    "search_o1_condense": condense,
    "webthinker": webthinker,
    "webthinker_report": report,
    "webthinker_section": section,
    "webthinker_edit": edit,
    "codeact": codeact,
    "multimodal": multimodal,
    "plan_and_solve_plan": plan,
    "plan_and_solve_answer": solve,
    "react": react,
}
