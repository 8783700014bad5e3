"""The engine that samples with transformers: what it samples, for whom, and what happens when things go wrong."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from later import Later, later, needs
from tiny_hf import tiny_model, tiny_tokenizer, with_adapters

from hira.core.errors import EndpointError, UsageError
from hira.core.policy import Sampling
from hira.policies.local.engine import Sampled, SampleRequest
from hira.policies.local.template import Template

torch = later("torch")
BatchingEngine = later("hira.policies.local.batching:BatchingEngine")
Choosing = later("hira.policies.local.decoding:Choosing")
choose = later("hira.policies.local.decoding:choose")
pytestmark = [
    needs("torch", "transformers", "peft"),
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]


def endless() -> Template:
    """Nothing but its length ends a reply."""
    made = Template(TOKENIZER)
    made.ends = frozenset()
    return made


TOKENIZER: Any = Later(tiny_tokenizer)
TEMPLATE: Any = Later(lambda: Template(TOKENIZER))
ENDLESS: Any = Later(endless)
PLAIN = Sampling(1.0, max_tokens=24)


def prompt(number: int) -> tuple[int, ...]:
    """Prompts of different lengths."""
    return tuple(TEMPLATE.encode(f"Question {number}: " + "why? " * (number % 7)))


def logprobs(model: Any, ids: list[int], sampled: tuple[int, ...], temperature: float = 1.0) -> list[float]:
    """The log-probabilities of what was sampled, from one pass over the whole, without any cache."""
    with torch.no_grad():
        logits = model(torch.tensor([[*ids, *sampled]])).logits[0].float() / temperature
    rows = torch.log_softmax(logits, -1)[len(ids) - 1 : -1]
    return [row[token].item() for row, token in zip(rows, sampled, strict=True)]


async def many(engine: BatchingEngine, *numbers: int, **asked: Any) -> list[Sampled]:
    """The replies to these prompts, each under the seed of its number."""
    requests = [
        SampleRequest(prompt(number), **{"sampling": replace(PLAIN, seed=number), **asked}) for number in numbers
    ]
    return list(await asyncio.gather(*map(engine.sample, requests)))


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model(TOKENIZER)


async def test_log_probabilities_are_the_models_own_at_the_temperature_asked_for(model: Any) -> None:
    engine = BatchingEngine(model, TEMPLATE)
    sampling = Sampling(0.7, top_p=0.9, top_k=30, max_tokens=24)
    for number, sampled in enumerate(await many(engine, *range(12), sampling=sampling)):
        assert sampled.logprobs == pytest.approx(logprobs(model, prompt(number), sampled.ids, 0.7), abs=2e-4)
        assert len(sampled.ids) == 24 or sampled.ids[-1] in TEMPLATE.ends


async def test_a_reply_under_a_seed_does_not_depend_on_what_else_is_asked(model: Any) -> None:
    crowd = BatchingEngine(model, TEMPLATE)
    together = await many(crowd, *range(24))
    alone = BatchingEngine(model, TEMPLATE)
    for number in (20, 3, 11):
        assert (await many(alone, number))[0].ids == together[number].ids


async def test_the_same_prompt_is_answered_differently_each_time_and_the_same_under_a_seed(model: Any) -> None:
    engine = BatchingEngine(model, TEMPLATE)
    assert len({sampled.ids for sampled in await many(engine, *[5] * 8, sampling=PLAIN)}) > 1
    assert len({sampled.ids for sampled in await many(engine, *[5] * 8)}) == 1


async def test_without_temperature_the_reply_is_that_of_generate(model: Any) -> None:
    engine = BatchingEngine(model, TEMPLATE)
    for number, sampled in enumerate(await many(engine, *range(8), sampling=Sampling(0.0, max_tokens=24))):
        ids = torch.tensor([prompt(number)])
        mask = torch.ones_like(ids)
        told = model.generate(ids, attention_mask=mask, max_new_tokens=24, do_sample=False)[0, ids.shape[1] :]
        assert list(sampled.ids) == told.tolist()


def test_tokens_come_as_often_as_the_filtered_distribution_says() -> None:
    """Top-k 4 of five, then top-p .8 of what is left: .4 and .3 stay, and are scaled to 4/7 and 3/7."""
    logits = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05]).log().repeat(4000, 1)
    how = Choosing.of([Sampling(1.0, top_p=0.7, top_k=4)] * 4000, logits)
    tokens, told = choose(logits, how, [(at + 0.5) / 4000 for at in range(4000)])
    counts = [tokens.count(token) / 4000 for token in range(5)]
    assert counts == pytest.approx([4 / 7, 3 / 7, 0, 0, 0], abs=1e-3)
    assert told[0] == pytest.approx(torch.tensor(0.4).log().item(), abs=1e-6)


def test_no_token_is_drawn_that_has_no_weight() -> None:
    """Half of a large vocabulary is shut out, tokens are drawn at the very ends of shares, and none of them is one."""
    logits = torch.zeros(512, 50_001)
    logits[:, ::2] = -torch.inf
    how = Choosing.of([Sampling()] * 512, logits)
    edges = [at / 25_000 for at in range(0, 25_000, 200)]
    randoms = [*edges, *(min(edge + 1e-12, 1.0) for edge in edges), *(max(edge - 1e-12, 0.0) for edge in edges)]
    randoms = [*randoms, *[1 - 2**-53] * (512 - len(randoms))]
    tokens, told = choose(logits, how, randoms)
    assert all(token % 2 for token in tokens)
    assert [tokens[at] for at in range(3)] == [1, 401, 801]
    assert told == pytest.approx([torch.tensor(1 / 25_000).log().item()] * 512, abs=1e-4)


async def test_a_stop_string_ends_a_turn_and_is_named(model: Any) -> None:
    engine = BatchingEngine(model, TEMPLATE)
    free = await many(engine, *range(6))
    for number, sampled in enumerate(free):
        said = TEMPLATE.decode(sampled.ids)
        stop = said[3:5]
        [told] = await many(BatchingEngine(model, TEMPLATE), number, stops=("never said", stop))
        assert (told.finish, told.stop) == ("stop", stop)
        assert told.ids == sampled.ids[: len(told.ids)]
        assert stop in TEMPLATE.decode(told.ids)
        assert stop not in TEMPLATE.decode(told.ids[:-1])


async def test_a_coroutine_that_is_cancelled_leaves_the_batch_and_the_others_go_on(model: Any) -> None:
    engine = BatchingEngine(model, ENDLESS)
    endless = Sampling(1.0, max_tokens=3000, seed=1)
    lost = [asyncio.create_task(engine.sample(SampleRequest(prompt(at), endless))) for at in range(4)]
    kept = asyncio.create_task(engine.sample(SampleRequest(prompt(9), PLAIN)))
    await asyncio.sleep(0.05)
    for task in lost:
        task.cancel()
    assert (await kept).ids
    assert all(isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*lost, return_exceptions=True))
    steps = engine.steps
    assert (await many(engine, 1))[0].ids
    assert engine.steps - steps <= 40


def faulty(model: Any, fault: Callable[[Any], None]) -> Any:
    """The model, with passes that fail while `fault` says so."""

    class Faulty(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.config, self.dtype = model, model.config, model.dtype

        def forward(self, input_ids: Any, **named: Any) -> Any:
            fault(input_ids)
            return self.inner(input_ids=input_ids, **named)

    return Faulty()


async def test_an_engine_that_dies_tells_all_who_wait_and_can_be_asked_again(model: Any) -> None:
    broken = [True]

    def fault(ids: Any) -> None:
        if broken[0] and ids.shape[1] == 1:
            raise RuntimeError("CUDA error: device-side assert triggered\nmore of it")

    engine = BatchingEngine(faulty(model, fault), TEMPLATE)
    asked = [engine.sample(SampleRequest(prompt(at), PLAIN)) for at in range(6)]
    told = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 30)
    assert all(isinstance(one, EndpointError) for one in told)
    assert str(told[0]).startswith("sampling failed: RuntimeError: CUDA error: device-side assert triggered\n")
    broken[0] = False
    assert (await many(engine, 1))[0].ids


async def test_with_too_little_memory_fewer_rows_are_decoded_at_once(model: Any) -> None:
    def fault(ids: Any) -> None:
        if ids.shape[0] > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")

    engine = BatchingEngine(faulty(model, fault), TEMPLATE)
    free = await many(BatchingEngine(model, TEMPLATE), *range(12))
    assert [one.ids for one in await asyncio.wait_for(many(engine, *range(12)), 60)] == [one.ids for one in free]


async def test_a_row_that_fits_into_no_memory_fails_alone(model: Any) -> None:
    def fault(ids: Any) -> None:
        if ids.numel() > 200:
            raise torch.OutOfMemoryError("CUDA out of memory")

    engine = BatchingEngine(faulty(model, fault), TEMPLATE)
    long = asyncio.create_task(engine.sample(SampleRequest(tuple(TEMPLATE.encode("x" * 300)), PLAIN)))
    assert (await many(engine, 1, 2))[0].ids
    with pytest.raises(EndpointError, match="out of memory"):
        await long


async def test_places_bound_the_batch_and_change_no_reply(model: Any) -> None:
    free = await many(BatchingEngine(model, TEMPLATE), *range(16))
    narrow = BatchingEngine(model, TEMPLATE, tokens=180)
    assert [one.ids for one in await many(narrow, *range(16))] == [one.ids for one in free]
    read_in_parts = BatchingEngine(model, TEMPLATE, reads=50)
    assert [one.ids for one in await many(read_in_parts, *range(16))] == [one.ids for one in free]


async def test_weights_that_are_no_numbers_are_told() -> None:
    broken = tiny_model(TOKENIZER)
    torch.nn.init.constant_(broken.model.norm.weight, float("nan"))
    with pytest.raises(EndpointError, match="the model's probabilities are not numbers"):
        await many(BatchingEngine(broken, TEMPLATE), 1)


async def test_nothing_is_sampled_while_paused_and_what_was_under_way_goes_on_with_new_weights() -> None:
    changing = tiny_model(TOKENIZER)
    engine = BatchingEngine(changing, ENDLESS)
    seen: list[int] = []
    asked = SampleRequest(prompt(1), Sampling(1.0, max_tokens=400, seed=4), seen=seen.append)
    long = asyncio.create_task(engine.sample(asked))
    while len(seen) < 5:
        await asyncio.sleep(0.001)
    with engine.pause():
        steps = engine.steps
        waiting = asyncio.create_task(engine.sample(SampleRequest(prompt(2), PLAIN)))
        await asyncio.sleep(0.05)
        assert engine.steps == steps
        before = len(seen)
        with torch.no_grad():
            changing.lm_head.weight.mul_(0.5)
        engine.record_update()
    after, sampled = await long, await waiting
    assert (after.version, (await many(engine, 3))[0].version) == (0, 1)
    assert sampled.ids
    anew = logprobs(changing, prompt(1), after.ids)
    assert list(after.logprobs[before:]) == pytest.approx(anew[before:], abs=2e-4)
    assert list(after.logprobs[:before]) != pytest.approx(anew[:before], abs=2e-4)


async def test_adapters_asked_for_at_once_each_speak_as_if_alone_and_the_model_stays_as_it_was() -> None:
    model = with_adapters(tiny_model(TOKENIZER), "planner", "worker")
    model.train()
    model.base_model.model.model.norm.eval()
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    engine = BatchingEngine(model, TEMPLATE)
    asked = [(name, at) for name in ("planner", "worker", None) for at in range(6)]
    told = await asyncio.gather(*(engine.sample(SampleRequest(prompt(at), PLAIN, (), name)) for name, at in asked))
    assert model.training
    assert not model.base_model.model.model.norm.training
    assert {name for name, one in model.named_parameters() if one.requires_grad} == trained
    assert model.active_adapters == ["planner"]
    model.eval()
    for (name, at), sampled in zip(asked, told, strict=True):
        if name:
            model.set_adapter(name)
            own = logprobs(model, prompt(at), sampled.ids)
        else:
            with model.disable_adapter():
                own = logprobs(model, prompt(at), sampled.ids)
        assert sampled.logprobs == pytest.approx(own, abs=2e-4)
    assert told[0].ids != told[6].ids
    with pytest.raises(UsageError, match="the model has no adapter 'judge'"):
        await engine.sample(SampleRequest(prompt(1), PLAIN, (), "judge"))


async def test_layers_with_a_sliding_window_see_what_they_should() -> None:
    layers = {"max_window_layers": 1, "layer_types": ["full_attention", "sliding_attention"]}
    sliding = tiny_model(TOKENIZER, use_sliding_window=True, sliding_window=8, **layers)
    for number, sampled in enumerate(await many(BatchingEngine(sliding, TEMPLATE), *range(6))):
        assert sampled.logprobs == pytest.approx(logprobs(sliding, prompt(number), sampled.ids), abs=2e-4)


async def test_a_model_without_keys_and_values_is_refused() -> None:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(UsageError, match="cannot be sampled in this process"):
        BatchingEngine(MambaForCausalLM(config), TEMPLATE)


async def test_a_closed_engine_ends_who_waits_and_serves_again(model: Any) -> None:
    engine = BatchingEngine(model, ENDLESS)
    long = asyncio.create_task(engine.sample(SampleRequest(prompt(1), Sampling(1.0, max_tokens=3000, seed=1))))
    await asyncio.sleep(0.02)
    await engine.aclose()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert (await many(engine, 2))[0].ids
