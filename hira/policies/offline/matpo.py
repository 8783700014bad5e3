"""Planner and worker of MATPO, as the offline policy plays them: HiRA's plan, its subtasks done by exploring."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hira.dialects.answer import final
from hira.evidence import cited
from hira.policies.offline import planning, roles
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.program import Program, advance

TOOL = "search_and_browse"


def planner(asked: Asked) -> Act:
    asked = _with_rules(asked)
    several, limit = asked.number("several", 1), asked.number("limit", 20)
    act = advance(_handed_out(asked), asked, "", several=several, limit=limit)
    return act if act.calls else _closed(act.text, asked, "matpo_planner_summary")


def worker(asked: Asked) -> Act:
    act = roles.deep_search(_with_rules(asked))
    return act if act.calls else _closed(final(act.text), asked, "matpo_worker_summary")


def _with_rules(asked: Asked) -> Asked:
    """With the values of the role's own prompt, which stands before the question."""
    return replace(asked, values={**asked.request.messages[0].values, **asked.values})


def _handed_out(asked: Asked) -> Program:
    """The planner's way to the answer, with its subtasks handed out through its one tool."""
    plan = planning.answer(asked)
    try:
        calls = next(plan)
        while True:
            reports = yield [(TOOL, {"subtask": arguments["task"]}) for _, arguments in calls]
            calls = plan.send(reports)
    except StopIteration as end:
        return str(end.value)


def _closed(conclusion: str, asked: Asked, summary: str) -> Act:
    """The conclusion, in the sections of the summary where that is asked for."""
    last = asked.request.messages[-1]
    if last.prompt != summary:
        return Act(conclusion)
    ids = cited(conclusion)
    sections = {
        "Conclusion": conclusion,
        "Supporting Information": f"It rests on {', '.join(f'[{one}]' for one in ids)}." if ids else "There is none.",
        "Observations": f"Calls that brought something: {len(asked.brought)}.",
        "Contribution to Main Task": "This settles it." if ids else "It has to be looked for elsewhere.",
    }
    return Act("\n\n".join(f"## {heading}\n{text}" for heading, text in sections.items()))


ROLES: Mapping[str, Callable[[Asked], Act]] = {"matpo_question": planner, "matpo_subtask": worker}
