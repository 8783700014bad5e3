"""One workflow object, unchanged, on a scripted endpoint over HTTP and on a real llama.cpp server. All workflows on
`offline` are in test_every_workflow_offline.py."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import BadReply
from hira.core.policy import Sampling
from hira.policies import open_policy
from hira.policies.dialects import DIALECTS
from hira.policies.openai import OpenAIPolicy
from hira.testing import Endpoint
from hira.testing.script import make_context
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.workflows import HiRA, rollout

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the capital of Myanmar?"
WORKFLOW = HiRA(max_subtasks=2)


@pytest.fixture
async def tools() -> AsyncIterator[Toolbox]:
    index = Index([ASEAN])
    yield Toolbox(search=search_documents(index), browse=browse_documents(index))
    index.close()


async def test_a_scripted_endpoint_over_http_answers_with_a_verified_citation(tools: Toolbox) -> None:
    replies = [
        "First the capital. <|begin_call_subtask|>Name the capital of Myanmar<|end_call_subtask|>",
        json.dumps({"reason": "a fact", "expert": "simple_search"}),
        "Naypyidaw is the capital of Myanmar [s1].",
        r"\boxed{Naypyidaw [s1]}",
    ]
    with Endpoint(replies) as endpoint:
        policy = open_policy(endpoint.model, base_url=endpoint.base_url, api_key="key")
        record = await rollout(WORKFLOW, QUESTION, make_context(policy, tools=tools))
        await policy.aclose()
        endpoint.assert_done()
    assert (record.status, record.answer) == ("answered", "Naypyidaw [s1]")


CALL = r'root ::= "<|begin_call_subtask|>find " [a-z]{4,12} " " [a-z]{4,12} "<|end_call_subtask|>"'


@pytest.mark.heavy
@pytest.mark.parametrize("continuation", ["turns", "chain"])
async def test_a_real_llama_cpp_server_goes_the_whole_way(tools: Toolbox, llama_server: str, continuation: Any) -> None:
    """Its model is tiny and random: a grammar makes the planner call, a JSON schema makes the coordinator's records."""
    grammar: dict[str, Any] = {"extra_body": {"grammar": CALL}}
    carry: Any = "continue_final_message" if continuation == "chain" else "none"
    planner = OpenAIPolicy("tiny", llama_server, continuation=carry, **grammar)
    others = OpenAIPolicy("tiny", llama_server, continuation=carry)
    sampling = Sampling(temperature=0.9, max_tokens=120, seed=3)
    dialect = DIALECTS["tags"]
    configs = {
        "*": RoleConfig(others, sampling, dialect),
        "planner": RoleConfig(planner, sampling, dialect, continuation),
    }
    record = await rollout(WORKFLOW, QUESTION, RunContext(configs, tools=tools))
    await planner.aclose()
    await others.aclose()
    assert not record.failure or isinstance(record.failure, BadReply), "a random model may write no answer"
    assert len(record.findings) == 2
    assert all(finding.subtask.text.startswith("find ") for finding in record.findings)
    assert {finding.expert for finding in record.findings} <= {"simple_search", "deep_search"}
    assert record.status in {"insufficient_evidence", "unverified", "answered", "failed"}
    assert record.usage.calls >= 7
