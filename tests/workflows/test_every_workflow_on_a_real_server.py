"""Every workflow of the registry in every dialect, against a real llama.cpp server with a random model.

The model says nonsense. Where calls are written as text, a grammar makes calls of it, of the tools and in the dialect
of the request, for as long as little was called. All else is what the model happens to say: a model that knows
no function calls is among the things that a workflow has to live with.
"""

import base64
import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import BadReply, OutOfBudget
from hira.core.policy import Completion, Request, Sampling, Watch
from hira.policies.dialects import DIALECTS, Call, Dialect
from hira.policies.offline import read_request
from hira.policies.openai import OpenAIPolicy
from hira.tools import Observation, Tool, Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.python import refusal
from hira.workflows import MATPO, WORKFLOWS, HiRA, rollout

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the capital of Myanmar, and how many people live there?"
CALLS = 8
ENOUGH = 2
"""Results, after which a role may stop calling."""
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NONSENSE = "NONSENSE"
WORDS = '[a-z]{3,8} " " [a-z]{3,8}'


async def unused(arguments: Mapping[str, Any]) -> Observation:
    raise NotImplementedError(arguments)


def made_up(schema: Mapping[str, Any]) -> Any:
    """A value that fits the schema of a parameter, with nonsense for text."""
    kind = schema.get("type", "string")
    if kind == "array":
        return [made_up(schema.get("items", {}))]
    return {"integer": 1, "number": 1.5, "boolean": True, "object": {}}.get(kind, NONSENSE)


def grammar_of(tool: Tool, dialect: Dialect) -> str:
    """A rule for one call of a tool: as the dialect writes it, with words of the model in place of nonsense."""
    properties = tool.parameters.get("properties", {})
    written = dialect.write(Call(tool.name, {field: made_up(schema) for field, schema in properties.items()}), tool)
    parts = [json.dumps(part, ensure_ascii=False) for part in re.split(NONSENSE, written)]
    return f" {WORDS} ".join(parts)


def grammar(request: Request) -> str:
    """What the reply has to look like: a call, or later on a call or a boxed answer; empty where it is free."""
    asked = read_request(request)
    if request.schema or request.tools or not asked.explained:
        return ""
    dialect, tools = asked.explained.dialect, asked.explained.tools
    boxed = f'"\\\\boxed{{" {WORDS} "}}"'
    rules = [grammar_of(tool, dialect) for tool in tools]
    if request.choose == "none":
        return f"root ::= {boxed}"
    return "root ::= " + " | ".join(rules if len(asked.results) < ENOUGH else [*rules, boxed])


class Babbling:
    """Speaks through the real server. What a grammar made is read at once by the dialect it was made for."""

    model = "tiny"

    def __init__(self, base_url: str, dialect: str) -> None:
        self.base_url = base_url
        self.dialect = DIALECTS[dialect]
        self.policies: dict[str, OpenAIPolicy] = {}
        self.called = 0

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        rule = grammar(request)
        if rule not in self.policies:
            self.policies[rule] = OpenAIPolicy(self.model, self.base_url, extra_body={"grammar": rule} if rule else {})
        sampling = replace(request.sampling, max_tokens=600 if rule else 60, seed=len(request.messages))
        completion = await self.policies[rule].complete(replace(request, sampling=sampling), watch)
        if rule:
            tools = [Tool(name, "", parameters, run=unused) for name, parameters in read_request(request).tools.items()]
            parsed = self.dialect.parse(completion, tools)
            assert not parsed.error, (parsed.error, completion.text)
            self.called += len(parsed.calls)
        return completion

    async def aclose(self) -> None:
        for policy in self.policies.values():
            await policy.aclose()


PAIRS = [(name, dialect) for at, name in enumerate(WORKFLOWS) for to, dialect in enumerate(DIALECTS) if (at + to) % 2]
"""Two dialects for each workflow, and each dialect for half of them: all pairs take four minutes."""


@pytest.mark.heavy
@pytest.mark.skipif(bool(refusal("auto")), reason=refusal("auto"))
@pytest.mark.parametrize(("name", "dialect"), PAIRS)
async def test_it_ends_in_an_answer_or_in_a_clear_partial(
    name: str, dialect: Any, llama_server: str, tmp_path: Path
) -> None:
    (tmp_path / "flag.png").write_bytes(PICTURE)
    settings = Settings(
        model="tiny", docs=(ASEAN,), dialect=dialect, max_calls=CALLS, journal=tmp_path / "journal.sqlite"
    )
    policy = Babbling(llama_server, dialect)
    async with Hira(settings=settings, policies={"*": policy}, workflow=WORKFLOWS[name]()) as hira:
        run = hira.stream(QUESTION, files=[tmp_path / "flag.png"])
        await run.work()
    await policy.aclose()
    record = run.answer.rollout
    assert record.failure is None or isinstance(record.failure, OutOfBudget), record.error
    assert record.status in {"answered", "unverified", "insufficient_evidence", "partial"}
    assert record.usage.calls >= 1
    turns = [turn for trajectory in record.trajectories.values() for turn in trajectory.turns]
    went_back = any(message.prompt == "result" for turn in turns for message in turn.request.messages)
    assert went_back or len(record.trajectories) > 1 or not policy.called, "what was called was carried out"


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "native"])
async def test_a_real_server_takes_results_as_messages_of_the_tool(dialect: Any, llama_server: str) -> None:
    settings = Settings(model="tiny", docs=(ASEAN,), dialect=dialect, journal=None)
    policy, workflow = Babbling(llama_server, dialect), MATPO(results="tool", max_subtasks=1, worker_calls=1)
    async with Hira(settings=settings, policies={"*": policy}, workflow=workflow) as hira:
        run = hira.stream(QUESTION)
        await run.work()
    await policy.aclose()
    record = run.answer.rollout
    assert record.error == ""
    for name in ("planner", "1/worker"):
        brought = [one for one in record.trajectories[name].turns[-1].request.messages if one.prompt == "result"]
        assert [message.role for message in brought] == ["tool"]


SUBTASK = r'root ::= "<|begin_call_subtask|>find " [a-z]{4,12} " " [a-z]{4,12} "<|end_call_subtask|>"'


@pytest.mark.heavy
@pytest.mark.parametrize("continuation", ["turns", "chain"])
async def test_a_real_llama_cpp_server_goes_the_whole_way(llama_server: str, continuation: Any) -> None:
    """Its model is tiny and random: a grammar makes the planner call, a JSON schema makes the coordinator's records."""
    grammar: dict[str, Any] = {"extra_body": {"grammar": SUBTASK}}
    carry: Any = "continue_final_message" if continuation == "chain" else "none"
    planner = OpenAIPolicy("tiny", llama_server, continuation=carry, **grammar)
    others = OpenAIPolicy("tiny", llama_server, continuation=carry)
    sampling = Sampling(temperature=0.9, max_tokens=120, seed=3)
    dialect = DIALECTS["tags"]
    configs = {
        "*": RoleConfig(others, sampling, dialect),
        "planner": RoleConfig(planner, sampling, dialect, continuation),
    }
    with closing(Index([ASEAN])) as index:
        tools = Toolbox(search=search_documents(index), browse=browse_documents(index))
        record = await rollout(HiRA(max_subtasks=2), QUESTION, RunContext(configs, tools=tools))
    await planner.aclose()
    await others.aclose()
    assert not record.failure or isinstance(record.failure, BadReply), "a random model may write no answer"
    assert len(record.findings) == 2
    assert all(finding.subtask.text.startswith("find ") for finding in record.findings)
    assert {finding.expert for finding in record.findings} <= {"simple_search", "deep_search"}
    assert record.status in {"insufficient_evidence", "unverified", "answered", "failed"}
    assert record.usage.calls >= 7
