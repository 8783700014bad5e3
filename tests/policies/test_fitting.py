"""Prompts that are too long: shortened before or after an endpoint has refused them, and replies that say nothing."""

from dataclasses import replace
from typing import Any

import pytest

from hira.core.errors import ContextOverflow, EndpointError
from hira.core.events import Events, Notice
from hira.core.messages import Message, ToolCall, assistant, user
from hira.core.policy import CallOptions, Completion, Request, Sampling, Usage
from hira.core.tokens import count
from hira.policies import open_policy
from hira.policies.dialects import DIALECTS, Call
from hira.policies.endpoint import Endpoint as Hardened
from hira.policies.fitting import SHORTEST, Window, trim_messages
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.script import make_context

SHORT = Request((user("Where is the court?"),), Sampling(max_tokens=4096))
LONG = replace(SHORT, messages=(user(" ".join(f"word{at}" for at in range(4000))), user("Where is the court?")))
CHATML = (
    "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "\n{%- endfor -%}"
)


def listing(**entry: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "scripted", "object": "model", **entry}]}


def llama(window: int, template: str) -> dict[str, Any]:
    """The pages of llama.cpp's server."""
    props = {"default_generation_settings": {"n_ctx": window}, "chat_template": template}
    return {"/v1/models": listing(owned_by="llamacpp", meta={"n_ctx": window}), "/props": props}


SAYING = {
    "vLLM": {"/v1/models": listing(owned_by="vllm", max_model_len=4096)},
    "llama.cpp": llama(4096, "{{ messages }}"),
    "LM Studio": {"/v1/models": listing(max_context_length="4096")},
}


async def sent(pages: dict[str, Any], *requests: Request) -> tuple[list[Any], list[str], Completion]:
    """The bodies that were sent, what was told before the reply, and the last reply."""
    told: list[str] = []
    with Endpoint(["here"] * 9, pages=pages) as endpoint:
        policy = open_policy("scripted", base_url=endpoint.base_url)
        for request in requests:
            completion = await policy.complete(request, CallOptions(tell=told.append))
        await policy.aclose()
        bodies = [call.body for call in endpoint.calls if call.path == "/v1/chat/completions"]
    return bodies, told, completion


def tokens(body: Any) -> int:
    return sum(count(message["content"]) for message in body["messages"])


@pytest.mark.parametrize("server", SAYING)
async def test_a_prompt_is_shortened_before_it_is_sent_and_that_is_told_at_once(server: str) -> None:
    (body,), told, completion = await sent(SAYING[server], LONG)
    assert tokens(body) + body["max_tokens"] <= 4096
    assert body["messages"][-1]["content"] == "Where is the court?"
    assert told == list(completion.notes)
    assert "longer than the model's window" in told[0]


async def test_a_reply_is_given_no_more_room_than_the_window_has() -> None:
    short, long = (await sent(SAYING["vLLM"], SHORT, LONG))[0]
    assert 3900 < short["max_tokens"] < 4096
    assert long["max_tokens"] == 1024


@pytest.mark.parametrize("pages", [{}, {"/v1/models": "nonsense"}, {"/v1/models": {"data": [1]}}, llama(0, "")])
async def test_a_server_that_says_nothing_is_sent_everything(pages: dict[str, Any]) -> None:
    (body,), told, _ = await sent(pages, LONG)
    assert (body["max_tokens"], told) == (4096, [])
    assert tokens(body) == sum(count(message.text) for message in LONG.messages)


async def test_the_server_is_asked_once() -> None:
    with Endpoint(["here"] * 3, pages=SAYING["vLLM"]) as endpoint:
        policy = open_policy("scripted", base_url=endpoint.base_url)
        for _ in range(3):
            await policy.complete(SHORT)
        await policy.aclose()
        assert len([one for one in endpoint.requests if one.method == "GET"]) == 1


async def test_a_model_without_a_chat_template_is_refused_in_one_line() -> None:
    pages = llama(2048, CHATML) | {"/tokenize": {"tokens": [27, 91, 318]}}
    with pytest.raises(EndpointError, match="the model has no chat template") as refused:
        await sent(pages, SHORT)
    assert "instruct" in refused.value.fix


async def test_a_vocabulary_that_knows_the_marks_of_the_servers_template_is_enough() -> None:
    bodies, _, _ = await sent(llama(2048, CHATML) | {"/tokenize": {"tokens": [1]}}, SHORT)
    assert len(bodies) == 1


ASKED = Request((user("x"),), conversation="planner")


def conversation(dialect: str, results: int, words: int = 300) -> tuple[Message, ...]:
    """A prompt, and as many calls with their results."""
    messages: list[Message] = [user("The task stands here.")]
    for at in range(results):
        call = Call("search", {"query": str(at)}, f"c{at}")
        messages.append(
            assistant(f"I look for {at}.", (ToolCall(f"c{at}", "search", "{}"),) if dialect == "native" else ())
        )
        messages += DIALECTS[dialect].results([(call, f"result {at} " + "word " * words)])
    return tuple(messages)


@pytest.mark.parametrize("dialect", ["tags", "native"])
def test_the_oldest_results_give_way_first_and_pairs_stay_paired(dialect: str) -> None:
    before = conversation(dialect, 5)
    after = trim_messages(before, 1000)
    assert sum(count(message.text) for message in after) <= 1000
    texts = [message.text for message in after]
    assert texts[0] == "The task stands here."
    gone = ["left out" in text for text in texts[2::2]]
    assert gone == sorted(gone, reverse=True)
    assert (gone[0], gone[-1]) == (True, False)
    assert [(message.role, message.call_id, message.calls) for message in after] == [
        (message.role, message.call_id, message.calls) for message in before
    ]
    assert texts[-1] == before[-1].text


def test_results_inside_one_reasoning_chain_give_way_too() -> None:
    results = [(Call("search", {"query": str(at)}), f"result {at} " + "word " * 300) for at in range(4)]
    chain = Message(
        "assistant", "\n\n".join(f"thought {text}" for _, text in results), prompt="result", values={"results": results}
    )
    (_, after) = trim_messages((user("task"), chain), 700)
    assert "result 0" not in after.text
    assert "result 3" in after.text
    assert after.text.count("thought") == 4


def test_of_two_equal_results_the_newest_stays() -> None:
    results = [(Call("search", {"query": str(at)}), "word " * 300) for at in range(2)]
    text = "\n\n".join(f"thought {text}" for _, text in results)
    (_, after) = trim_messages((user("task"), Message("assistant", text, values={"results": results})), 400)
    assert (after.text.count("thought"), after.text.count("word")) == (2, 300)


def test_one_long_prompt_loses_its_middle_and_keeps_both_ends() -> None:
    (after,) = trim_messages((user("Begin. " + "word " * 5000 + "Answer in JSON."),), 1000)
    assert count(after.text) <= 1050
    assert after.text.startswith("Begin.")
    assert after.text.endswith("Answer in JSON.")


async def test_a_prompt_that_is_too_long_is_shortened_sent_again_and_remembered() -> None:
    sent: list[int] = []

    def reply(request: Request) -> str:
        sent.append(sum(count(message.text) for message in request.messages))
        if sent[-1] > 1000:
            raise _overflow(1000, sent[-1])
        return "good"

    policy = Hardened(ScriptedPolicy(reply, model="m"))
    request = Request(conversation("tags", 6))
    first = await policy.complete(request)
    assert (first.text, len(sent)) == ("good", 2)
    assert first.notes == ("m: the prompt is longer than the model's window; its oldest parts are removed",)
    await policy.complete(request)
    assert len(sent) == 3, "what fits is known by now"
    assert (await policy.complete(ASKED)).notes == ()


async def test_a_window_that_nobody_names_is_found_by_halves_and_given_up_after_two() -> None:
    policy = ScriptedPolicy([ContextOverflow("too long")] * 3)
    with pytest.raises(ContextOverflow):
        await Hardened(policy).complete(Request(conversation("tags", 6)))
    sizes = [sum(count(message.text) for message in request.messages) for request in policy.requests]
    assert len(sizes) == 3
    assert sizes[1] <= sizes[0] / 2
    assert sizes[2] < 0.7 * sizes[1]


def _overflow(window: int, asked: int) -> ContextOverflow:
    error = ContextOverflow("too long", status=400)
    error.window, error.asked = window, asked
    return error


async def test_a_prompt_that_the_server_cut_silently_is_told_once_a_run() -> None:
    heard: list[str] = []
    usage = Usage(1, 2048, 5)
    with Endpoint([Completion("one", usage=usage), Completion("two", usage=usage)]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        context = make_context(
            policy, events=Events(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
        )
        talk = context.conversation("worker")
        await talk.reply(user("word " * 9000))
        await talk.reply(user("and?"))
        await policy.aclose()
    assert heard == ["the server seems to cut prompts: it read 2,048 of about 9,000 tokens (Ollama: raise num_ctx)"]


async def test_a_prompt_that_was_read_is_not_suspected() -> None:
    for text, read in (("word " * 9000, 8000), ("数学" * 4000, 6000), ("short", 1), ("word " * 9000, 0)):
        with Endpoint([Completion("one", usage=Usage(1, read, 5))]) as endpoint:
            policy = open_policy("m", base_url=endpoint.base_url)
            assert (await policy.complete(Request((user(text),)))).notes == ()
            await policy.aclose()


# --- replies that are no answer


@pytest.mark.parametrize(
    ("asked", "reply", "then"),
    [
        (None, Completion("", "thought", finish="length", usage=Usage(1, 9, 3000)), 6000),
        (100, Completion("", "thought", finish="length", usage=Usage(1, 9, 100)), 1024),
        (4000, Completion("", "thought", usage=Usage(1, 9, 50)), 8000),
        (None, Completion("", "thought", usage=Usage(1, 9, 50)), None),
    ],
)
async def test_a_reply_of_nothing_but_thought_is_asked_for_again_with_more_room(
    asked: int | None, reply: Completion, then: int | None
) -> None:
    with Endpoint([reply, "said"]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        said = await policy.complete(Request((user("x"),), Sampling(max_tokens=asked)))
        await policy.aclose()
        assert said.text == "said"
        assert endpoint.calls[1].body.get("max_tokens") == then


async def test_a_thought_that_a_stop_string_ended_is_left_to_the_dialect() -> None:
    with Endpoint([Completion("", "I need it: <|begin_search_query|>mars")]) as endpoint:
        policy = open_policy("m", base_url=endpoint.base_url)
        said = await policy.complete(Request((user("x"),), stop=("<|end_search_query|>",)))
        await policy.aclose()
        assert (said.text, said.reasoning, len(endpoint.calls)) == ("", "I need it: <|begin_search_query|>mars", 1)


# --- the window by its figures


MARK = 10
"""The most tokens of the mark where a text lost its middle."""


def of_size(words: int, most: int | None = None, tools: int = 0) -> Request:
    """A request of so many tokens, and functions of at least so many."""
    functions = ({"type": "function", "function": {"name": "x", "description": "word " * tools}},) if tools else ()
    return Request((user(" ".join(["word"] * words)),), Sampling(max_tokens=most), tools=functions)


def size_of(request: Request) -> int:
    return sum(count(message.text) for message in request.messages)


def test_a_reply_keeps_a_quarter_of_the_window_or_what_it_was_bounded_to() -> None:
    assert size_of(of_size(700)) == 700
    window = Window(size=1000)
    for request, fits in (
        (of_size(750), True),
        (of_size(751), False),
        (of_size(900, 100), True),
        (of_size(901, 100), False),
        (of_size(751, 600), False),
    ):
        fitted = window.fit(request)
        assert (fitted is request) is fits
        assert size_of(fitted) <= 1000 - min(request.sampling.max_tokens or 1000, 250) + MARK
    heavy = of_size(600, tools=300)
    assert size_of(window.fit(heavy)) <= 750 - count(str(heavy.tools)) + MARK, "functions take room, too"
    assert size_of(Window(limit=400, size=1000).fit(of_size(700))) <= 400 + MARK
    assert size_of(Window(limit=900, size=1000).fit(of_size(800))) <= 750 + MARK
    assert size_of(Window(limit=400).fit(of_size(700))) <= 400 + MARK
    assert Window(limit=400).fit(of_size(399)).messages == of_size(399).messages
    unknown = of_size(9000)
    assert Window().fit(unknown) is unknown
    assert SHORTEST <= size_of(Window(size=100).fit(of_size(700))) <= SHORTEST + MARK, "no message loses more"


def test_a_reply_is_bounded_by_the_room_that_the_prompt_leaves() -> None:
    for size, request, most in (
        (1000, of_size(300, 500), 500),
        (1000, of_size(300, 699), 699),
        (1000, of_size(300, 700), 1000 - 331),
        (1000, of_size(300, 900), 1000 - 331),
        (1000, of_size(900, 900), 250),
        (1000, of_size(900), None),
        (0, of_size(900, 900), 900),
    ):
        assert Window(size=size).leave_room(request).sampling.max_tokens == most
    with_tools = of_size(300, 900, tools=200)
    room = 1000 - int(1.1 * (300 + count(str(with_tools.tools))))
    assert Window(size=1000).leave_room(with_tools).sampling.max_tokens == room


@pytest.mark.parametrize(
    ("words", "window", "asked", "limit"),
    [
        (2000, 1000, 2000, 750),
        (2000, 1000, 4000, 375),  # the endpoint counts twice as much as we do
        (2000, 1000, 0, 750),
        (2000, 0, 0, 1000),
        (2000, 2800, 2000, 1200),  # more than there is: its figure is not to be trusted
        (300, 100, 300, SHORTEST),
    ],
)
def test_the_next_limit_is_three_quarters_of_the_window_that_an_endpoint_names(
    words: int, window: int, asked: int, limit: int
) -> None:
    known = Window()
    assert known.narrow(of_size(words), _overflow(window, asked))
    assert known.limit == limit


def test_what_is_short_already_cannot_be_shortened() -> None:
    assert not Window().narrow(of_size(SHORTEST), _overflow(100, 300))
    assert trim_messages(of_size(SHORTEST).messages, 50) == of_size(SHORTEST).messages
    (kept,) = trim_messages(of_size(SHORTEST + 50).messages, 50)
    assert count(kept.text) <= SHORTEST + MARK
    within = conversation("tags", 3)
    assert trim_messages(within, sum(count(message.text) for message in within)) == within
