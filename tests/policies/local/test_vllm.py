"""The engine at a vLLM server: what goes over the wire, tested against a server that speaks its shape."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hira.core.errors import BadReply, ContextOverflow, EndpointError, UsageError
from hira.core.policy import Sampling
from hira.policies.local.engine import SampleRequest
from hira.policies.local.vllm import VllmEngine
from hira.testing.server import Exchange, HttpServer, Received

Reply = tuple[int, Any]


class Vllm:
    """Answers as vLLM does, from `completion`; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.completion: Callable[[Any], Reply] = lambda body: (200, said(body, [7, 8, 2]))
        self.adapters: Callable[[Any], Reply] = lambda body: (200, f"Success: {body['lora_name']}")
        self.http = HttpServer(self._respond)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}/v1"

    async def _respond(self, received: Received, exchange: Exchange) -> None:
        if received.method == "GET":
            listed = {"id": "base", "object": "model", "owned_by": "vllm", "max_model_len": 512}
            await exchange.json(200, {"object": "list", "data": [listed]})
            return
        self.asked.append((received.path, received.body))
        answer = self.completion if received.path == "/v1/completions" else self.adapters
        status, reply = await asyncio.to_thread(answer, received.body)
        raw = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
        await exchange.send(status, raw, "text/plain" if isinstance(reply, str) else "application/json")


def said(body: Any, ids: list[int], **choice: Any) -> dict[str, Any]:
    """A completion as vLLM writes it."""
    logprobs = {"token_logprobs": [-0.5 - at for at in range(len(ids))], "tokens": [f"t{one}" for one in ids]}
    told = {
        "index": 0, "text": "…", "token_ids": ids, "prompt_token_ids": body["prompt"], "logprobs": logprobs,
        "finish_reason": "stop", "stop_reason": None,
    }  # fmt: skip
    return {"object": "text_completion", "model": body["model"], "choices": [{**told, **choice}]}


@pytest.fixture
def server() -> Iterator[Vllm]:
    made = Vllm()
    made.http.start()
    yield made
    made.http.close()


@pytest.fixture
async def engine(server: Vllm) -> AsyncIterator[VllmEngine]:
    made = VllmEngine(server.base_url, "base", ends=(2,))
    yield made
    await made.aclose()


async def test_ids_go_in_and_ids_with_their_log_probabilities_come_out(server: Vllm, engine: VllmEngine) -> None:
    assert (await engine.open()).window == 512
    sampled = await engine.sample(SampleRequest((3, 4, 5), Sampling(1.0, max_tokens=9, seed=5), ("</a>",)))
    assert (sampled.ids, sampled.logprobs) == ((7, 8, 2), (-0.5, -1.5, -2.5))
    assert (sampled.finish, sampled.stop) == ("stop", None)
    _, body = server.asked[0]
    assert body == {
        "model": "base",
        "prompt": [3, 4, 5],
        "max_tokens": 9,
        "temperature": 1.0,
        "seed": 5,
        "top_p": 1.0,
        "top_k": 0,
        "stop": ["</a>"],
        "stop_token_ids": [2],
        "include_stop_str_in_output": True,
        "logprobs": 1,
        "return_token_ids": True,
        "add_special_tokens": False,
        "skip_special_tokens": False,
    }


async def test_a_stop_string_and_the_length_are_told_apart(server: Vllm, engine: VllmEngine) -> None:
    server.completion = lambda body: (200, said(body, [7], stop_reason="</a>"))
    assert (await engine.sample(SampleRequest((3,), Sampling(), ("</a>",)))).stop == "</a>"
    server.completion = lambda body: (200, said(body, [7], finish_reason="length"))
    assert (await engine.sample(SampleRequest((3,), Sampling()))).finish == "length"
    server.completion = lambda body: (200, said(body, [7, 2], stop_reason=2))
    told = await engine.sample(SampleRequest((3,), Sampling()))
    assert (told.finish, told.stop) == ("stop", None)


async def test_an_adapter_is_loaded_under_its_version_and_the_one_before_it_leaves(
    server: Vllm, engine: VllmEngine
) -> None:
    with pytest.raises(UsageError, match="adapter 'planner' is not loaded"):
        await engine.sample(SampleRequest((3,), Sampling(), (), "planner"))
    await engine.load("planner", Path("/run/1"), 1)
    first = await engine.sample(SampleRequest((3,), Sampling(), (), "planner"))
    await engine.load("planner", Path("/run/2"), 2)
    second = await engine.sample(SampleRequest((3,), Sampling(), (), "planner"))
    assert (first.version, second.version) == (1, 2)
    assert server.asked[0][1]["lora_path"] == "/run/1"
    await engine.aclose()
    told = [(path.removeprefix("/v1/"), body.get("lora_name") or body["model"]) for path, body in server.asked]
    one, two = told[0][1], told[2][1]
    assert one.startswith("planner-")
    assert (one.partition("@")[2], two) == ("1", f"{one.partition('@')[0]}@2")
    assert told == [
        ("load_lora_adapter", one),
        ("completions", one),
        ("load_lora_adapter", two),
        ("unload_lora_adapter", one),
        ("completions", two),
        ("unload_lora_adapter", two),
    ]


async def test_an_adapter_somebody_is_still_answered_by_is_not_unloaded(server: Vllm, engine: VllmEngine) -> None:
    await engine.load("planner", Path("/run/1"), 1)
    held, reached = threading.Event(), threading.Event()

    def slow(body: Any) -> Reply:
        reached.set()
        held.wait(20)
        return 200, said(body, [7])

    server.completion = slow
    asked = asyncio.create_task(engine.sample(SampleRequest((3,), Sampling(), (), "planner")))
    await asyncio.to_thread(reached.wait, 20)
    await engine.load("planner", Path("/run/2"), 2)
    assert not [path for path, _ in server.asked if "unload" in path]
    held.set()
    assert (await asked).version == 1
    await engine.load("planner", Path("/run/3"), 3)
    unloaded = sorted(body["lora_name"].partition("@")[2] for path, body in server.asked if "unload" in path)
    assert unloaded == ["1", "2"]


@pytest.mark.parametrize("spoilt", [{"token_ids": [7, 8]}, {"logprobs": None}, {"prompt_token_ids": [9, 9]}])
async def test_ids_and_log_probabilities_that_do_not_fit_are_no_reply(
    server: Vllm, engine: VllmEngine, spoilt: dict[str, Any]
) -> None:
    server.completion = lambda body: (200, said(body, [7, 8, 2], **spoilt))
    with pytest.raises(BadReply):
        await engine.sample(SampleRequest((3,), Sampling()))


async def test_failures_are_those_of_other_endpoints_and_say_what_to_do(server: Vllm, engine: VllmEngine) -> None:
    told = "This model's maximum context length is 512 tokens. However, your request has 600 input tokens."
    server.completion = lambda _: (400, {"error": {"message": told, "type": "BadRequestError", "code": 400}})
    with pytest.raises(ContextOverflow) as overflow:
        await engine.sample(SampleRequest((3,), Sampling()))
    assert overflow.value.window == 512
    other = VllmEngine(server.base_url, "other")
    with pytest.raises(UsageError, match="does not serve 'other'"):
        await other.open()
    with pytest.raises(EndpointError):
        await VllmEngine("http://127.0.0.1:9/v1", "base").open()
    await other.aclose()


@pytest.mark.parametrize(
    ("status", "said", "fits"),
    [
        (400, "LoRA is not enabled.", True),
        (400, "The lora adapter 'planner@1' has already been loaded.", False),
        (500, "out of memory", False),
    ],
)
async def test_how_to_start_the_server_is_told_where_its_answer_fits_that(
    server: Vllm, engine: VllmEngine, status: int, said: str, fits: bool
) -> None:
    server.adapters = lambda _: (status, {"error": {"message": said, "code": status}})
    with pytest.raises(EndpointError) as refused:
        await engine.load("planner", Path("/run/1"), 1)
    assert said in refused.value.what
    assert ("VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" in refused.value.fix) == fits
