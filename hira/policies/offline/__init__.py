"""The embedded default: a deterministic extractive policy, with no network, no key and no memory.

It plans by the form of the question, reads by words, follows one entity to a second hop, computes by program, and
answers with sentences that it found, or says that it found none. It looks at the name and the values of the prompt it
was sent, never at its wording, so the same run goes through the same planner, coordinator, experts and memory.
"""

import asyncio
from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

from hira import tokens
from hira.policies.offline import baselines, mams, mars, marsrl, matpo, planning, roles, rubrics
from hira.policies.offline.conversation import Act, Asked, read, write
from hira.policy import Completion, Delta, Request, Usage, Watch, cut_at_stop

ROLES: Mapping[str, Callable[[Asked], Act]] = {
    "planner": planning.plan,
    "assign": roles.assign,
    "recall": roles.recall,
    "distil": roles.distil,
    "simple_search_plan": roles.plan_search,
    "simple_search_answer": roles.answer_search,
    "deep_search": roles.deep_search,
    "reader": roles.deep_search,
    "code": roles.code,
    "look": roles.cannot_see,
    **baselines.ROLES,
    **mams.ROLES,
    **rubrics.ROLES,
    **mars.ROLES,
    **marsrl.ROLES,
    **matpo.ROLES,
}


class OfflinePolicy:
    """Answers any request without a model. Good for a first minute, for tests and for documents that say it plainly.

    It computes in the event loop, one request at a time, and lets the loop go round between two of them, so that many
    questions at once do not hold it up for longer than one does.
    """

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def model(self) -> str:
        return "offline"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            completion = self._completed(request, watch)
            await asyncio.sleep(0)
        return completion

    def _completed(self, request: Request, watch: Watch | None) -> Completion:
        asked = read(request)
        text, calls = write(ROLES.get(asked.prompt, roles.anything)(asked), asked)
        if watch:
            watch(Delta(text))
        usage = Usage(1, sum(tokens.count(message.text) for message in request.messages), tokens.count(text), cost=0.0)
        completion = Completion(text, calls=calls, finish="calls" if calls else "stop", usage=usage, model=self.model)
        return cut_at_stop(completion, request.stop)

    async def aclose(self) -> None:
        pass


__all__ = ["OfflinePolicy"]
