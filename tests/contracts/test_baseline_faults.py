"""The baselines under every fault of an endpoint, over real HTTP, and on a real llama.cpp server."""

from typing import Any

import pytest
from rows import DOZEN
from under_faults import LIBRARY, asked, endings

from hira.agents.run_context import RoleConfig
from hira.core.errors import BadReply
from hira.core.policy import Completion, Request, Sampling
from hira.policies.dialects import DIALECTS
from hira.policies.openai import OpenAIPolicy
from hira.runtime.run import Run
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.tools.python import refusal
from hira.workflows import WORKFLOWS, rollout
from hira.workflows.baselines import WebThinker

FILE = LIBRARY / "lighthouses.md"
QUESTION = "When was the lighthouse at Skerry Point built?"
ANSWER = r"\boxed{The lighthouse at Skerry Point was built in 1871 [s1].}"
NAMES = ("direct", "rag", "search-o1", "webthinker", "codeact", "multimodal", "plan-and-solve", "react")
ARGUMENTS = {
    "search": {"query": "lighthouse Skerry Point"},
    "python": {"code": "print('The lighthouse at Skerry Point was built in', 1700 + 171)"},
    "files": {"path": "lighthouses.md"},
}
needs_python = pytest.mark.skipif(bool(refusal("auto")), reason=refusal("auto"))


def reply(request: Request) -> str | Completion:
    """Whoever asks, and however often, gets what fits its prompt: one call of a tool, then the answer."""
    first = request.messages[0].text
    if '"steps"' in first:
        return f'{{"steps": ["{QUESTION}"]}}'
    if '"expert"' in first:
        return '{"reason": "a page states it", "expert": "simple_search"}'
    if '"queries"' in first and len(request.messages) == 1:
        return '{"queries": ["lighthouse Skerry Point"]}'
    tools = [tool["function"]["name"] for tool in request.tools if tool["function"]["name"] in ARGUMENTS]
    if tools and not any(message.role == "tool" for message in request.messages):
        return calling(tools[0], **ARGUMENTS[tools[0]])
    return ANSWER


async def answered(base_url: str, name: str) -> Run:
    return await asked(base_url, name, QUESTION, [FILE] if name == "multimodal" else [])


@needs_python
@pytest.mark.parametrize("name", NAMES)
async def test_without_a_fault_each_baseline_answers_over_http(name: str) -> None:
    with Endpoint(reply) as endpoint:
        run = await answered(endpoint.base_url, name)
    assert "1871" in run.answer.text
    assert run.answer.status == ("unverified" if name == "direct" else "answered")


@needs_python
@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
async def test_every_fault_ends_in_an_answer_or_in_an_error_of_three_lines(name: str) -> None:
    ended = await endings(reply, lambda base_url: answered(base_url, name))
    if name != "direct":
        assert ended["answered"] > len(DOZEN) // 3


SEARCHES = r'root ::= "<|begin_search_query|>" [a-z]{4,12} " " [a-z]{4,12} "<|end_search_query|>"'
RUNS = r'root ::= "<|begin_code_call|>print(" [0-9]{1,3} ")<|end_code_call|>"'
GRAMMARS = {"search-o1": SEARCHES, "webthinker": SEARCHES, "react": SEARCHES, "codeact": RUNS}


@needs_python
@pytest.mark.heavy
@pytest.mark.parametrize("name", [*NAMES, "webthinker-report"])
async def test_a_real_llama_cpp_server_with_a_random_model_crashes_no_baseline(llama_server: str, name: str) -> None:
    """A grammar makes the reasoner call its tool until it is at its limit, where it may say what it likes."""
    from hira.runtime.factory import open_session

    workflow: Any = WebThinker(report=True, interactions=3) if name == "webthinker-report" else _limited(name)
    grammar: dict[str, Any] = {"extra_body": {"grammar": GRAMMARS[name]}} if name in GRAMMARS else {}
    reasoner, others = OpenAIPolicy("tiny", llama_server, **grammar), OpenAIPolicy("tiny", llama_server)
    settings = Settings(docs=(LIBRARY,), journal=None, cache=None)
    made = await open_session(settings, policies={"*": others}, workflow=workflow)
    part = RoleConfig(others, Sampling(temperature=0.9, max_tokens=60, seed=3), DIALECTS["tags"])
    cast = {"*": part, "reasoner": RoleConfig(reasoner, part.sampling, part.dialect)}
    async with made.open_context("r", QUESTION, [FILE], ()) as context:
        context.cast = cast
        record = await rollout(workflow, QUESTION, context)
    await made.aclose()
    await reasoner.aclose()
    await others.aclose()
    assert record.error == "" or isinstance(
        record.failure, BadReply
    )  # a last turn that calls all the same says nothing
    assert record.status in {"answered", "unverified", "insufficient_evidence", "failed"}
    assert record.usage.calls >= (3 if name in GRAMMARS else 1)


def _limited(name: str) -> Any:
    """The workflow with few calls."""
    small = {
        "search-o1": {"searches": 2},
        "webthinker": {"searches": 2},
        "react": {"calls": 2},
        "codeact": {"calls": 2},
    }
    return WORKFLOWS[name](**{**small.get(name, {}), **({"max_subtasks": 2} if name == "plan-and-solve" else {})})
