"""The embedded default: a deterministic extractive policy, with no network, no key and no model.

It answers with a sentence that covers the whole question, or says that it found none. It looks at the name and values
of a prompt, never at the wording, so a run goes through the same planner, coordinator, experts and memory as with a
model. It is a demo and a test double.
"""

import asyncio
from collections.abc import Callable, Mapping

from hira.core import tokens
from hira.core.plugin import LazyMapping
from hira.core.policy import Completion, Delta, Request, Usage, Watch, cut_at_stop
from hira.policies.offline.solving import Act, OfflineRequest, read_request, solve, write_act

_ROLES = {
    "assign": "assign",
    "recall": "recall",
    "distil": "distil",
    "simple_search_plan": "plan",
    "plan_and_solve_plan": "plan",
    "plan_and_solve_answer": "combine",
    "marsrl_verifier": "verify",
    "mams_search": "research",
    "mams_state": "take_notes",
    "mams_report": "extend_report",
}
ROLES: Mapping[str, Callable[[OfflineRequest], Act]] = LazyMapping(
    {prompt: f"{__name__}.roles:{role}" for prompt, role in _ROLES.items()}
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
