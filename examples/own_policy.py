"""A policy of your own: whatever can answer messages with a text may speak for a role, here a function.

python examples/own_policy.py
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hira import Hira
from hira.core.messages import Message
from hira.core.policy import Completion, Request, Usage, Watch


def library(messages: Sequence[Message]) -> str:
    """Stands for a model of your own: a library in this process, a queue, a colleague at another terminal."""
    return rf"Asked {len(messages)} message: the capital of Myanmar is \boxed{{Naypyidaw}}."


@dataclass
class Library:
    """An `EndpointError` that `complete` raises is asked again, told, or another model's turn, as for any endpoint.

    `watch` wants the text as it comes, if somebody looks on.
    """

    model: str = "library"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        text = await asyncio.to_thread(library, request.messages)  # others go on meanwhile
        read = sum(len(message.text) for message in request.messages)
        return Completion(text, usage=Usage(calls=1, prompt_tokens=read // 4, completion_tokens=len(text) // 4))

    async def aclose(self) -> None:
        """Free what is held."""


with Hira(policies={"*": Library()}, workflow="direct") as hira:
    answer = hira.ask_sync("What is the capital of Myanmar?")
print(answer.text, "·", answer.model, "·", answer.usage.calls, "call")
