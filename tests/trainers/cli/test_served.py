"""Rollouts that a vLLM server samples: its requests and replies, behind which the adapters that it was given really
speak."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from peft import PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from hira.core.policy import Sampling  # noqa: E402
from hira.policies.local.batching import BatchingEngine  # noqa: E402
from hira.policies.local.engine import SampleRequest  # noqa: E402
from hira.policies.local.template import Template  # noqa: E402
from hira.testing.server import Exchange, HttpServer, Received  # noqa: E402
from hira.trainers import records  # noqa: E402

if TYPE_CHECKING:
    from small_place import Place

torch.set_num_threads(1)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]


class Refused(Exception):
    """A status, and what is said with it."""


class Server:
    """A base that takes adapters at run time and samples with them."""

    def __init__(self, model: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(model)
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self.engine: BatchingEngine | None = None
        self.told: list[str] = []
        self.there: set[str] = set()
        self.http = HttpServer(self.respond)

    async def respond(self, received: Received, exchange: Exchange) -> None:
        if received.method == "GET":
            await exchange.json(200, {"data": [{"id": "base", "max_model_len": 1024}]})
            return
        try:
            await exchange.json(200, await getattr(self, received.path.removeprefix("/v1/"))(received.body))
        except Refused as refused:
            status, message = refused.args
            await exchange.json(status, {"error": {"message": message, "type": "InvalidUserInput"}})

    async def load_lora_adapter(self, body: Any) -> str:
        name, place = body["lora_name"], body["lora_path"]
        if name in self.there:
            raise Refused(400, f"The lora adapter '{name}' has already been loaded.")
        self.told.append(f"+{name}")
        self.there.add(name)
        if self.engine is None:
            self.model = PeftModel.from_pretrained(self.model, place, adapter_name=name).eval()
            self.engine = BatchingEngine(self.model, Template(self.tokenizer))
        else:
            self.model.load_adapter(place, adapter_name=name)
        return f"Success: {name}"

    async def unload_lora_adapter(self, body: Any) -> str:
        name = body["lora_name"]
        if name not in self.there:
            raise Refused(404, f"The lora adapter '{name}' cannot be found.")
        self.told.append(f"-{name}")
        self.there.remove(name)
        self.model.delete_adapter(name)
        return "Success"

    async def completions(self, body: Any) -> Any:
        assert self.engine
        how = Sampling(body["temperature"], max_tokens=body["max_tokens"], seed=body["seed"])
        asked = SampleRequest(tuple(body["prompt"]), how, tuple(body.get("stop") or ()), body["model"])
        sampled = await self.engine.sample(asked)
        choice = {
            "token_ids": sampled.ids,
            "prompt_token_ids": body["prompt"],
            "logprobs": {"token_logprobs": sampled.logprobs},
            "finish_reason": sampled.finish,
            "stop_reason": sampled.stop,
        }
        return {"choices": [choice]}


@pytest.fixture
def server(place: "Place") -> Iterator[Server]:
    made = Server(place.folder / "model")
    made.http.start()
    yield made
    made.http.close()


RUN = ("grpo", "run.toml", "data.held_out=", "train.lr=0.01", "rollouts.vllm_model=base", "out=runs/served")
ROLES = 'model.adapters={planner="planner", "*"="default"}'


def tag(name: str) -> str:
    """What tells the adapters of one run from those of another."""
    return name.partition("@")[0].rpartition("-")[2]


def untagged(name: str) -> str:
    return name.replace(f"-{tag(name)}@", "@")


def test_rollouts_are_sampled_at_the_server_with_the_adapters_of_each_update(place: "Place", server: Server) -> None:
    given = (*RUN, ROLES, f"rollouts.vllm=http://127.0.0.1:{server.http.port}/v1")
    assert place.train(*given, "train.steps=2") == 0, place.err
    first = ["+planner@0", "+default@0"]
    second = ["+planner@1", "-planner@0", "+default@1", "-default@0"]
    assert [untagged(one) for one in server.told[:6]] == [*first, *second]
    assert sorted(untagged(one) for one in server.told[6:]) == ["-default@1", "-planner@1"]
    assert len({tag(one) for one in server.told}) == 1
    assert not server.there, "a run that ended leaves nothing at the server"
    run = place.folder / "runs" / "served"
    told = [one for one in records.read(run / records.METRICS) if "loss" in one]
    assert [one["step"] for one in told] == [1, 2]
    drifts = {name: one[name] for one in told for name in one if name.endswith("/sampler_drift")}
    assert drifts.keys() == {"planner/sampler_drift", "worker/sampler_drift"}
    assert max(drifts.values()) < 1e-4, "the server speaks with the weights that are trained"
    assert [path.name for path in (run / "sampled").iterdir()] == ["1"], "the version before it has left the disk"
