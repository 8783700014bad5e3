"""An engine that says what it is told, so that a conversation of many turns goes through real tokens and templates."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from hira.core.policy import Completion, Policy, Request, Watch
from hira.policies.local.engine import Sampled, SampleRequest
from hira.policies.offline import OfflinePolicy

NEXT: ContextVar[str] = ContextVar("next")


@dataclass
class ScriptedEngine:
    """Samples the text that stands in `NEXT`, or what `say` makes of the prompt, and its end token."""

    tokenizer: Any
    window: int = 1_000_000
    say: Callable[[tuple[int, ...]], Sequence[int]] | None = None
    prompts: list[tuple[int, ...]] = field(default_factory=list)

    async def sample(self, request: SampleRequest) -> Sampled:
        self.prompts.append(request.prompt)
        if self.say:
            ids = list(self.say(request.prompt))
        else:
            ids = [*self.tokenizer(NEXT.get(), add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        stop = min((stop for stop in request.stops if stop in text), key=text.index, default=None)
        while stop and stop in self.tokenizer.decode(ids[:-1], skip_special_tokens=False):
            ids = ids[:-1]
        if request.seen:
            for token in ids:
                request.seen(token)
        return Sampled(tuple(ids), tuple(-0.5 for _ in ids), "stop", stop)

    async def aclose(self) -> None:
        pass


@dataclass
class Speaking:
    """`offline` decides what is said, and `policy`, over a `ScriptedEngine`, says it: as text, native calls as Hermes
    does."""

    policy: Policy
    offline: OfflinePolicy = field(default_factory=OfflinePolicy)

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        NEXT.set(written(await self.offline.complete(request)))
        return await self.policy.complete(request, watch)

    async def aclose(self) -> None:
        await self.policy.aclose()


def written(said: Completion) -> str:
    calls = [
        f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>' for call in said.calls
    ]
    text = said.text + (said.stop or "")
    return "\n".join([*([text] if text else []), *calls])
