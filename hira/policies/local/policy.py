"""Weights in this process behind the policy seam; the same class answers questions and makes rollouts."""

import asyncio
from dataclasses import replace
from functools import lru_cache

from hira.core.errors import ContextOverflow, TimedOut
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Finish, Request, Tokens, Usage, Watch
from hira.policies.dialects.written import calls_in, thought_in
from hira.policies.local.conversation import Conversations, Prompt
from hira.policies.local.engine import Engine, Sampled
from hira.policies.local.streaming import Streamed
from hira.policies.local.template import Template, opens_thought
from hira.policies.reply import Parts, trim_repetition

LONGEST_REPLY = 8192
SECONDS = 900.0
REMEMBERED = 512
"""Texts whose numbers of tokens are kept."""


class LocalPolicy:
    """Samples with an engine, through a chat template; every completion carries its token ids.

    `model` is what the policy is called, `adapter` names the LoRA adapter that speaks, None the base alone. `seconds`
    is the longest that a call may take; a `versioned` policy tells how often its weights had been updated, in the
    completion's `model`. A JSON `schema` is left to the prompt: nothing forces the reply to follow it.
    """

    def __init__(
        self,
        model: str,
        template: Template,
        engine: Engine,
        adapter: str | None = None,
        *,
        seconds: float = SECONDS,
        versioned: bool = False,
    ) -> None:
        self.conversations = Conversations(template)
        self.engine = engine
        self.adapter = adapter
        self.template = template
        self._model = model
        self._seconds = seconds
        self._versioned = versioned
        self._where = f"model {model!r}"
        self._counted = lru_cache(REMEMBERED)(lambda text: len(template.encode(text)))

    @property
    def model(self) -> str:
        return self._model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        prompt = self.conversations.prompt(request)
        sampling = replace(request.sampling, max_tokens=self._room(len(prompt.ids), request.sampling.max_tokens))
        streamed = Streamed(self.template, request, watch, opened=opens_thought(prompt.text)) if watch else None
        try:
            async with asyncio.timeout(self._seconds):
                sampled = await self.engine.sample(
                    prompt.ids, sampling, request.stop, self.adapter, seen=streamed.seen if streamed else None
                )
        except TimeoutError:
            told = f"no whole reply within {self._seconds:g} seconds"
            fix = "reduce max_reply_tokens, or increase [timeout] in hira.toml"
            raise TimedOut(told, where=self._where, fix=fix) from None
        completion = self._completion(request, prompt, sampled)
        if streamed:
            streamed.end(completion)
        return completion

    def count(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer. The last texts are remembered: a page that was found again is
        not counted again."""
        return self._counted(text)

    async def aclose(self) -> None:
        await self.engine.aclose()

    def _completion(self, request: Request, prompt: Prompt, sampled: Sampled) -> Completion:
        said = self.template.decode(sampled.ids)
        self.conversations.keep(request, prompt, sampled.ids, said)
        if sampled.stop is not None and (at := said.find(sampled.stop)) >= 0:
            said = said[:at]
        elif sampled.finish == "stop" and sampled.ids and sampled.ids[-1] in self.template.ends:
            said = self.template.decode(sampled.ids[:-1])
        thought = thought_in(said, opened=opens_thought(prompt.text))
        parts = Parts(thought.text, thought.reasoning, finish=sampled.finish)
        trim_repetition(parts)
        text, calls = parts.text, tuple[ToolCall, ...]()
        if request.tools and request.choose == "auto":
            text, calls = calls_in(text, len(request.messages))
        finish: Finish = "stop" if parts.finish == "stop" else "length"
        return Completion(
            text,
            parts.reasoning,
            calls,
            finish="calls" if calls and finish == "stop" else finish,
            stop=sampled.stop,
            usage=Usage(1, len(prompt.ids), len(sampled.ids), cost=0.0),
            model=f"{self._model}@{sampled.version}" if self._versioned else self._model,
            tokens=Tokens(prompt.ids, sampled.ids, sampled.logprobs),
            notes=(parts.cut,) if parts.cut else (),
        )

    def _room(self, asked: int, wanted: int | None) -> int:
        """How many tokens the reply may have. `ContextOverflow` if the prompt leaves no room for any."""
        room = self.engine.window - asked
        if room < 1:
            what = f"the prompt has {asked:,} tokens, and the model's window takes {self.engine.window:,}"
            overflow = ContextOverflow(what, where=self._where, fix="give it less to read, or use another model")
            overflow.window, overflow.asked = self.engine.window, asked
            raise overflow
        return min(room, wanted or LONGEST_REPLY)
