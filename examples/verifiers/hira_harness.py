"""hira as a harness of `verifiers`: its workflows are the agent, and verifiers records, scores and trains their calls.

    python -m venv .verifiers && .verifiers/bin/pip install . "verifiers>=0.4,<0.5"
    cd examples/verifiers
    ../../.verifiers/bin/vf-eval hira_documents --env.taskset.questions questions.jsonl \
        --env.taskset.task.docs ../../docs \
        --env.agent.harness.id hira_harness --env.agent.harness.docs ../../docs --env.agent.runtime.type subprocess \
        --model MODEL --client.base-url http://127.0.0.1:8080/v1 --no-push

`vf-eval` finds harness and task set by the names of their modules, here in the current folder. Every call of every
role goes to the interception server of verifiers, which serves no list of models; `/models` is never needed. The
headers `X-Hira-Run`, `X-Hira-Role` and `X-Hira-Conversation` name what each call belongs to.
"""

from typing import Any

import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.clients import ModelContext

from hira import Hira, HiraError
from hira.trainers import score_citations


class HiraHarnessConfig(vf.HarnessConfig):
    workflow: str = "rag"
    """The workflow that answers, by its name or as `module:Object`."""
    docs: str = ""
    """The file or folder that it searches."""
    options: dict[str, Any] = Field(default_factory=dict)
    """More keyword arguments of `Hira`, such as `max_subtasks`."""


class HiraHarness(vf.Harness[HiraHarnessConfig]):
    """Runs in this process, without a container: only the model is somewhere else."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True  # it accepts tasks with tools, and searches with its own
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Answer the task's question. `trace.info["hira"]` has the status, and the verdicts on the citations."""
        instructions, question = self.resolve_text_prompt(data)
        config = self.config
        given = {"workflow": config.workflow, "docs": config.docs or (), "instructions": instructions or ""}
        endpoint_of = {"model": ctx.model, "base_url": endpoint, "api_key": secret}
        async with Hira(**endpoint_of, journal=False, **given, **config.options) as hira:
            try:
                answer = await hira.ask(question or "")
            except HiraError as error:
                return vf.ProgramResult(1, "", str(error))
        score = score_citations(answer.rollout)
        trace.info["hira"] = {"run": answer.run_id, "status": answer.status, "cited": score.value, **score.parts}
        trace.root_reply = answer.text
        return vf.ProgramResult(0, answer.text, "")


__all__ = ["HiraHarness"]
