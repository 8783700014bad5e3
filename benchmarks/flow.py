"""What hira itself costs in HiRA's flow: three deep-search subtasks a question, a scripted endpoint without latency.

    python benchmarks/flow.py [--questions 20] [--write]

The endpoint runs in a process of its own. Printed: model calls a question, CPU milliseconds a question in this
process (median), the resident memory, and the share of each request that repeats its role's previous one exactly.
"""

import argparse
import asyncio
import json
import platform
import resource
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from apart import apart, serve

from hira.agents.experts import DeepSearch
from hira.agents.run_context import RoleConfig, RunContext
from hira.evidence import Source
from hira.policies import open_policy
from hira.policies.dialects import TAGS
from hira.testing import Endpoint
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.workflows import HiRA, rollout

PAGE = "The old mill of Varn was built in 1742 by Ida Lorn, and stands by the river. " * 12


def planner(request: Any) -> str:
    done = sum(message.role == "user" for message in request.messages) - 1
    if done == 3:
        return r"\boxed{The old mill of Varn was built in 1742 [s1].}"
    return f"I need part {done}. <|begin_call_subtask|>Find part {done} about the mill of Varn<|end_call_subtask|>"


def deep_search(request: Any) -> str:
    done = sum(message.role == "user" for message in request.messages) - 1
    calls = [
        "<|begin_search_query|>mill {}<|end_search_query|>",
        "<|begin_click_link|>https://{}.example<|end_click_link|>",
    ]
    if done == 3:
        return r"So: \boxed{The old mill of Varn was built in 1742 [s1].}"
    return "Thinking of it. " + calls[done % 2].format(f"p{done}-{len(request.messages[0].text)}")


def coordinator(request: Any) -> str:
    if "Select the first expert" in request.messages[0].text:
        return json.dumps({"reason": "deep", "expert": "deep_search"})
    fact = {"text": "The mill was built in 1742.", "sources": ["s1"]}
    return json.dumps({"reasoning": "Looked.", "conclusion": "Built in 1742 [s1].", "facts": [fact]})


def tool(name: str, field: str) -> Tool:
    async def run(arguments: dict[str, Any]) -> Observation:
        source = Source(str(arguments[field]), "Mill", PAGE)
        return Observation(passages=(Passage(source, PAGE),))

    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return Tool(name, f"{name} the web", schema, run)


SCRIPT = {"planner": planner, "coordinator": coordinator, "deep_search": deep_search}


def prefix_share(context: RunContext) -> float:
    """Mean share of a request that repeats the role's previous request, in characters; first requests do not count."""
    shares = []
    for trajectory in context.rollout.trajectories.values():
        texts = ["\n".join(message.text for message in turn.request.messages) for turn in trajectory.turns]
        for earlier, later in pairwise(texts):
            same = next((at for at, (a, b) in enumerate(zip(earlier, later, strict=False)) if a != b), len(earlier))
            shares.append(same / len(earlier))
    return statistics.mean(shares)


async def run(base_url: str, questions: int) -> str:
    configs = {role: RoleConfig(open_policy(role, base_url=base_url), dialect=TAGS) for role in SCRIPT}
    tools = Toolbox(search=tool("search", "query"), browse=tool("browse", "url"))
    cpu, calls, share, status = [], [], [], set()
    for _ in range(questions + 2):
        context = RunContext(configs, tools=tools)
        began = time.process_time()
        record = await rollout(HiRA(experts=(DeepSearch(), Quick())), "When was the mill of Varn built?", context)
        cpu.append((time.process_time() - began) * 1000)
        calls.append(record.usage.calls)
        share.append(prefix_share(context))
        status.add(record.status)
    for part in configs.values():
        await part.policy.aclose()
    assert status == {"answered"}, status
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    a_question, a_call = statistics.median(cpu[2:]), statistics.median(cpu[2:]) / statistics.median(calls)
    return f"""# HiRA's flow

Made by `python benchmarks/flow.py --write`: Python {platform.python_version()}, {platform.machine()}. Three deep-search
subtasks a question, {questions} questions one after the other, a scripted endpoint without latency in a process of its
own. CPU is this process's, a median; one run on a shared machine.

| measure | value | goal |
|---|---|---|
| model calls a question | {statistics.median(calls):.0f} | |
| CPU a question | {a_question:.0f} ms | 60 ms |
| CPU a model call | {a_call:.1f} ms | |
| resident memory | {resident:.0f} MB | 120 MB |
| share of a request that repeats its role's previous one | {statistics.mean(share):.3f} | 0.95 |
"""


class Quick(DeepSearch):
    """A second expert, so that the coordinator has something to choose from."""

    name, description, cost = "quick", "looks one fact up", 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/flow.md")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Endpoint(SCRIPT, keep=False))
        return
    with apart(__file__, "--serve") as base_url:
        told = asyncio.run(run(base_url, arguments.questions))
    print(told)
    if arguments.write:
        Path(__file__).with_name("results").joinpath("flow.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
