"""`hira prompts`: the prompts of a role as they are sent, seen in a run of a sample question without a model."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.agents.experts import EXPERTS, LOOK, MULTIMODAL, READER
from hira.api import Hira
from hira.cli import OK
from hira.cli.shell import Shell
from hira.core.errors import UsageError, suggest
from hira.core.policy import Completion, Request, Watch, role_of
from hira.evaluation.mini import DOCS, FOLDER
from hira.policies.offline import OfflinePolicy
from hira.runtime.settings import Settings
from hira.workflows import WORKFLOWS, BuiltIn, HiRA
from hira.workflows.baselines.webthinker import SECTION
from hira.workflows.marsrl.steps import CORRECTOR

QUESTION = "How many boats sail from the largest island of the Varn archipelago, and how old is its observatory?"


UNREACHED = {"multimodal": MULTIMODAL, "reader": READER, "look": LOOK, "corrector": CORRECTOR, "writer": SECTION}
"""Prompts that the sample question does not lead to; they are shown with their slots."""
READING = "multimodal"
"""The workflow that needs a file with the question."""


class RecordingPolicy:
    """`offline`, which keeps the requests that it answers."""

    model = "sample"

    def __init__(self) -> None:
        self.offline = OfflinePolicy()
        self.requests: list[Request] = []

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.requests.append(request)
        return await self.offline.complete(request, watch)

    async def aclose(self) -> None:
        await self.offline.aclose()


@dataclass(frozen=True, slots=True)
class PromptsOptions:
    role: str = ""
    workflow: str = ""


def prompts(options: PromptsOptions, shell: Shell) -> int:
    known = {name: sorted(make().roles) for name, make in WORKFLOWS.items()}
    if not options.role:
        shell.say("\n".join(f"{workflow:<16} {', '.join(roles)}" for workflow, roles in known.items()))
        return OK
    having = [workflow for workflow, roles in known.items() if options.role in roles]
    if not having:
        fix = suggest(options.role, sorted({role for roles in known.values() for role in roles}))
        raise UsageError(f"there is no role {options.role!r}", fix=fix or "hira prompts lists the roles")
    workflow = options.workflow or having[0]
    if workflow not in having:
        what = f"the workflow {workflow!r} has no role {options.role!r}"
        raise UsageError(what, fix=f"--workflow {' or '.join(having)}")
    if (workflow, options.role) != ("search-o1", "reader") and options.role in UNREACHED:
        shell.say(UNREACHED[options.role].text)
        return OK
    requests = asyncio.run(record_requests(workflow, options.role))
    # the name of a conversation ends with its role
    sent = [request for request in requests if role_of(request.conversation) == options.role]
    first = {request.messages[-1].prompt: request for request in reversed(sent) if len(request.messages) <= 2}
    texts = []
    for request in reversed(first.values()):  # each message under the name of its prompt, then the tools on offer
        texts += [f"[{message.role}: {message.prompt}]\n{message.text}" for message in request.messages]
        texts += [f"[tool]\n{json.dumps(tool, ensure_ascii=False, indent=2)}" for tool in request.tools]
    shell.say("\n\n".join(texts))
    return OK


async def record_requests(workflow: str, role: str) -> Sequence[Request]:
    """The requests of a run of the sample question. An expert of HiRA works alone, because a run may choose another."""
    flow: BuiltIn = WORKFLOWS[workflow]()
    alone = [expert for expert in EXPERTS if expert.name == role]
    if "coordinator" in flow.roles and (alone or workflow == "hira"):
        flow = HiRA(experts=alone or EXPERTS, faithful=True)
    reads_file = workflow == READING
    policy = RecordingPolicy()
    with tempfile.TemporaryDirectory() as cache:
        settings = Settings(docs=() if reads_file else (DOCS,), journal=None, cache=Path(cache), verify="lexical")
        async with Hira(settings=settings, policies={"*": policy}, workflow=flow) as hira:
            await hira.ask(QUESTION, files=[FOLDER / "files" / "letter.md"] if reads_file else [])
    return policy.requests
