"""A scripted OpenAI-compatible server on this machine, that misbehaves on request."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request, Usage
from hira.testing import wire
from hira.testing.faults import FAULTS, Fault
from hira.testing.script import Replies, ScriptedPolicy, ScriptError
from hira.testing.server import Exchange, HttpServer, Received

RESPONSES = "/responses"


class Endpoint:
    """A scripted endpoint over real HTTP, in a separate thread, so that synchronous code can use it too. It speaks the
    chat API, the older completions, and the Responses API.

    >>> with Endpoint(["first reply", calling("search", query="mars"), "the answer"]) as endpoint:
    ...     policy = open_policy(endpoint.model, base_url=endpoint.base_url)

    Replies are those of `ScriptedPolicy`; a mapping's keys are names of models, because requests do not name their
    conversations. `faults` are served in order, one a request, before the replies: the keys of
    `hira.testing.faults.FAULTS`, such as "429-ra1". A function in their place gets the number of each request, from 1,
    and returns the name of its fault or a `Fault`, or "" for a reply of the script. `delay` is the seconds before a
    reply, or a function of the request that returns them. `stops` says whether the server strips a stop string, keeps
    it in the text, or names it separately as vLLM does. `keep` keeps the requests; turn it off for many thousands.
    `port` 0 is a free one. `pages` are the replies at other paths, such as `/props`.
    """

    def __init__(  # noqa: PLR0913 - each is one way in which servers differ
        self,
        replies: Mapping[str, Replies] | Replies = (),
        *,
        model: str = "scripted",
        delay: float | Callable[[Request], float] = 0.0,
        stops: wire.StopStyle = "strip",
        faults: Iterable[str] | Callable[[int], str | Fault] = (),
        keep: bool = True,
        port: int = 0,
        pages: Mapping[str, Any] | None = None,
    ) -> None:
        self._fault_of = faults if callable(faults) else None
        self._faults = [] if callable(faults) else list(faults)
        if unknown := set(self._faults) - set(FAULTS):
            raise ValueError(f"no faults named {sorted(unknown)}; there are {sorted(FAULTS)}")
        self.model = model
        self.requests: list[Received] = []
        self.script = ScriptedPolicy(replies)
        self.broken = ""
        self._delay = delay
        self._stops: wire.StopStyle = stops
        self._asked = 0
        self._keep = keep
        self._server = HttpServer(self._respond, port)
        self._pages = dict(pages or {})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}/v1"

    @property
    def calls(self) -> list[Received]:
        """The requests for completions, without those for the list of models."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def in_flight(self) -> int:
        return sum(connection.serving for connection in list(self._server.connections))

    @property
    def connections(self) -> int:
        return len(self._server.connections)

    def start(self) -> Self:
        self._server.start()
        return self

    def close(self) -> None:
        self._server.close()

    def assert_done(self) -> None:
        """Fail if replies or faults are left, or if a request came that the script has no reply for."""
        if self.broken:
            raise ScriptError(self.broken)
        if self._faults:
            raise ScriptError(f"faults were not used: {self._faults}")
        self.script.assert_done()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def _respond(self, received: Received, exchange: Exchange) -> None:
        if self._keep:
            self.requests.append(received)
        if received.path in self._pages:
            await exchange.json(200, self._pages[received.path])
            return
        if received.method == "GET":
            await self._get(received, exchange)
            return
        if received.path.endswith(RESPONSES):
            received = replace(received, body=wire.chat_body(received.body))
        fault = self._next_fault()
        if fault and fault.act:
            await fault.act(exchange)
            return
        if seconds := self._delay(wire.request_of(received.body)) if callable(self._delay) else self._delay:
            await asyncio.sleep(seconds)
        try:
            good = Completion("OK 42", usage=Usage(1, 9, 3))
            completion = good if fault else self.script.reply(wire.request_of(received.body))
        except ScriptError as error:
            self.broken = str(error)
            await exchange.json(500, {"error": {"message": str(error), "type": "script_error"}})
            return
        if not self._keep:
            self.script.requests.clear()
        reply = wire.reply_of(completion, received.body.get("model", self.model), self._stops)
        if fault and fault.alter:
            reply = fault.alter(reply)
        await self._say(received, exchange, reply)

    def _next_fault(self) -> Fault | None:
        self._asked += 1
        if self._fault_of:
            fault = self._fault_of(self._asked)
            return fault if isinstance(fault, Fault) else FAULTS[fault] if fault else None
        return FAULTS[self._faults.pop(0)] if self._faults else None

    async def _say(self, received: Received, exchange: Exchange, reply: dict[str, Any]) -> None:
        if received.path.endswith(RESPONSES):
            response = wire.response_of(reply)
            if received.body.get("stream"):
                await exchange.stream(wire.events_of(response))
            else:
                await exchange.json(200, response)
            return
        if not received.body.get("stream"):
            await exchange.json(200, wire.as_completion(reply) if "prompt" in received.body else reply)
            return
        usage = bool((received.body.get("stream_options") or {}).get("include_usage"))
        events = [wire.event(chunk) for chunk in wire.chunks_of(reply, usage=usage)]
        await exchange.stream([*events, b"data: [DONE]\n\n"])

    async def _get(self, received: Received, exchange: Exchange) -> None:
        if received.path == "/v1/models":
            listed = [{"id": self.model, "object": "model", "created": 0, "owned_by": "hira.testing"}]
            await exchange.json(200, {"object": "list", "data": listed})
        else:
            await exchange.json(404, {"error": {"message": f"no page at {received.path}", "type": "not_found"}})


def turns(number: int) -> Replies:
    """Replies for benchmarks: call the first tool until the conversation contains `number` results, then answer."""

    def reply(request: Request) -> Completion:
        done = sum(message.role == "tool" for message in request.messages)
        usage = Usage(1, 100 * (done + 1), 20)
        if done >= number or not request.tools:
            return Completion("The answer is 42.", usage=usage)
        name = request.tools[0]["function"]["name"]
        call = ToolCall(f"call_{done}", name, json.dumps({"query": f"question {done}"}))
        return Completion("I look it up.", calls=(call,), finish="calls", usage=usage)

    return reply
