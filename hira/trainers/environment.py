"""An environment of `verifiers` (v1) whose rollouts are runs of hira: questions beside this file, any workflow.

`verifiers` gives each rollout an endpoint of its own, which answers with the policy in training and records all that
was said, token by token: hira is run against it as it is. This file is copied into what `hira-train export` writes;
it needs `verifiers` and hira installed together, and nothing else of hira-train."""

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found]

from hira.evaluation.rewards.match import contains, extract_answer

__all__ = ["HiraHarness", "HiraTaskset"]

HERE = Path(__file__).parent
ANSWERED = (0, 4, 5)
"""Exit codes of `hira ask` that are answers: whole, without enough evidence, ended by a budget."""


class HiraData(vf.TaskData):  # type: ignore[misc]
    answers: list[str] = []  # noqa: RUF012 - pydantic copies it


class HiraTask(vf.Task[HiraData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def right(self, trace: vf.Trace) -> float:
        """1 if the answer holds a known one. One reward for the whole trace, and so for every role in it."""
        answer = extract_answer(str(trace.info["hira"]["answer"]))
        return float(any(contains(answer, one) for one in self.data.answers))


class HiraTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    questions: str = str(HERE / "questions.jsonl")


class HiraTaskset(vf.Taskset[HiraTask, HiraTasksetConfig]):  # type: ignore[misc]
    def load(self) -> Iterable[HiraTask]:
        for line in Path(self.config.questions).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            data = HiraData(id=row["id"], prompt=row["question"], answers=row["answers"])
            yield HiraTask(data, self.config.task)


class HiraHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """`command` runs hira where rollouts run; `flags` are those of `hira ask`, such as --docs."""

    command: str = "hira"
    flags: list[str] = json.loads((HERE / "flags.json").read_text(encoding="utf-8"))


class HiraHarness(vf.Harness[HiraHarnessConfig]):  # type: ignore[misc]
    NEEDS_CONTAINER = False
    EXECUTES_CODE = True

    async def launch(  # noqa: PLR0913, PLR0917 - as verifiers calls it
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: HiraData,
        tool_interception_url: str | None = None,
    ) -> vf.ProgramResult:
        """Ask hira, with the rollout's endpoint as its model. What is no answer ends the rollout with an error."""
        del mcp_urls, tool_interception_url
        _, question = self.resolve_text_prompt(data)
        named = ["--model", ctx.model, "--base-url", endpoint, "--json", "--quiet"]
        argv = [*shlex.split(self.config.command), "ask", *named, *self.config.flags, "--", question or ""]
        environ = {**self.config.resolved_env, "OPENAI_API_KEY": secret, "HIRA_JOURNAL": "off"}
        result = await runtime.run_program(argv, environ)
        if result.exit_code not in ANSWERED:
            return result
        found: dict[str, Any] = json.loads(result.stdout)
        trace.info["hira"] = {name: found.get(name) for name in ("answer", "status", "citations", "workflow")}
        return vf.ProgramResult(0, result.stdout, result.stderr)
