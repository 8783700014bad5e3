"""Token in, token out: what is kept as sampled, what is added, and when a new row begins."""

import asyncio
from typing import Any

import pytest
from later import needs
from scripted_engine import ScriptedEngine
from tiny_hf import CHATML, FORGETFUL, PLAIN, byte_pairs, tiny_tokenizer

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import ContextOverflow, TimedOut, ToolsRefused, UsageError
from hira.core.messages import Message, assistant, system, user
from hira.core.policy import Completion, Delta, Request, Sampling
from hira.policies.dialects import DIALECTS
from hira.policies.endpoint import Endpoint as Hardened
from hira.policies.local import LocalPolicy
from hira.policies.local.template import Template
from hira.tools import tool
from hira.trainers.rows import rows_of

pytestmark = needs("transformers")
SEARCH = {
    "type": "function",
    "function": {"name": "search", "description": "Look up.", "parameters": {"type": "object", "properties": {}}},
}


@tool
def search(query: str) -> str:
    """Look up."""
    return query


CALL = '<tool_call>\n{"name": "search", "arguments": {"query": "mars"}}\n</tool_call>'


def pairs_tokenizer() -> Any:
    """With merges: what a model samples need not be what its text is encoded to."""
    return byte_pairs(["the answer the answer user assistant"] * 9, 300)


class Talk:
    """A policy that says these texts in order, as one token a character and the end token."""

    def __init__(self, *said: str, template: str = CHATML, window: int = 100_000, ended: bool = True) -> None:
        self.tokenizer = tiny_tokenizer(template, window=window)
        self.replies = [self.tokenizer(one, add_special_tokens=False)["input_ids"] for one in said]
        self.end = [self.tokenizer.eos_token_id] if ended else []
        self.engine = ScriptedEngine(self.tokenizer, window, lambda _: [*self.replies.pop(0), *self.end])
        self.policy = LocalPolicy("tiny", Template(self.tokenizer), self.engine)

    async def ask(self, *messages: Message, **asked: Any) -> Completion:
        asked = {"conversation": "planner", "continues": messages[-1].role == "assistant", **asked}
        return await self.policy.complete(Request(messages, **asked))

    @property
    def counts(self) -> dict[str, int]:
        return {name: number for name, number in self.policy.conversations.counts.items() if number}

    def text(self, at: int) -> str:
        return str(self.tokenizer.decode(self.engine.prompts[at], skip_special_tokens=False))


async def test_sampled_ids_are_never_encoded_again() -> None:
    tokenizer = pairs_tokenizer()
    letters = [one for letter in "the answer".replace(" ", "Ġ") for one in [tokenizer.convert_tokens_to_ids(letter)]]
    assert letters != tokenizer("the answer", add_special_tokens=False)["input_ids"]
    engine = ScriptedEngine(tokenizer, say=lambda _: [*letters, tokenizer.eos_token_id])
    policy = LocalPolicy("tiny", Template(tokenizer), engine)
    asked = user("What?")
    first = await policy.complete(Request((asked,), conversation="planner"))
    assert first.text == "the answer"
    messages = (asked, assistant(first.text), user("And the answer?"))
    second = await policy.complete(Request(messages, conversation="planner"))
    assert first.tokens
    assert second.tokens
    before = (*first.tokens.prompt, *first.tokens.sampled)
    assert second.tokens.prompt[: len(before)] == before
    added = "\n<|im_start|>user\nAnd the answer?<|im_end|>\n<|im_start|>assistant\n"
    assert list(second.tokens.prompt[len(before) :]) == tokenizer(added, add_special_tokens=False)["input_ids"]


async def test_a_template_that_strips_earlier_thought_begins_a_new_row_each_turn() -> None:
    talk = Talk("<think>hm</think>one", "<think>so</think>two", template=FORGETFUL)
    assert "each later turn begins a new row" in talk.policy.template.notices[0]
    asked = user("first")
    said = await talk.ask(asked)
    assert (said.reasoning, said.text) == ("hm", "one")
    await talk.ask(asked, assistant("<think>hm</think>one"), user("next"))
    assert talk.counts == {"turns": 2, "rows": 2, "broken": 1}
    assert "hm" not in talk.text(1)


async def test_runs_that_ask_and_say_the_same_keep_their_own_ids() -> None:
    tokenizer = pairs_tokenizer()
    merged = tokenizer("the answer", add_special_tokens=False)["input_ids"]
    letters = [tokenizer.convert_tokens_to_ids(letter) for letter in "the answer".replace(" ", "Ġ")]
    replies = [merged, letters, merged, letters]
    engine = ScriptedEngine(tokenizer, say=lambda _: [*replies.pop(0), tokenizer.eos_token_id])
    policy = LocalPolicy("tiny", Template(tokenizer), engine)
    runs = [(user("What?"),), (user("What?"),)]
    firsts = [await policy.complete(Request(messages, conversation="planner")) for messages in runs]
    assert firsts[0].text == firsts[1].text
    for at in (1, 0):
        messages = (*runs[at], assistant(firsts[at].text), user("And?"))
        second = await policy.complete(Request(messages, conversation="planner"))
        first = firsts[at].tokens
        assert first
        assert second.tokens
        assert second.tokens.prompt[: len(first.prompt) + len(first.sampled)] == (*first.prompt, *first.sampled)


async def test_a_chain_goes_on_in_the_message_it_began() -> None:
    talk = Talk("I look. <|begin_q|> mars <|end_q|>", "Red. ", ended=False)
    asked = user("Which colour?")
    first = await talk.ask(asked, stop=("<|end_q|>",))
    assert (first.text, first.stop) == ("I look. <|begin_q|> mars ", "<|end_q|>")
    chain = assistant(f"{first.text}<|end_q|>\n\nresult: red\n\n")
    await talk.ask(asked, chain)
    assert talk.counts == {"turns": 2, "rows": 1}
    assert talk.text(1).endswith("assistant\nI look. <|begin_q|> mars <|end_q|>\n\nresult: red\n\n")


async def test_the_oldest_conversations_are_forgotten_and_go_on_in_a_new_row() -> None:
    talk = Talk("one", "one", "one", "two")
    talk.policy.conversations._kept = 2
    asked = user("first")
    for name in ("a", "b", "c"):
        await talk.ask(asked, conversation=name)
    await talk.ask(asked, assistant("one"), user("next"), conversation="a")
    assert talk.counts == {"turns": 4, "rows": 4}


async def test_thought_that_the_template_opened_or_that_never_ends_is_no_text() -> None:
    opening = CHATML.replace(
        "{% if add_generation_prompt %}<|im_start|>assistant\n",
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n",
    )
    talk = Talk("hm\n</think>\n\nyes", "hm", template=opening)
    said = await talk.ask(user("first"))
    assert (said.reasoning, said.text) == ("hm", "yes")
    never = await talk.ask(user("second"))
    assert (never.reasoning, never.text) == ("hm", "")


@pytest.mark.parametrize(
    "said", ["plain text", "<think>hm and hm</think>\n\nyes, it is so", f"I look up.\n{CALL}", "a <|end_q|>"]
)
async def test_what_is_streamed_is_what_is_said(said: str) -> None:
    talk = Talk(said)
    seen: list[Delta] = []
    request = Request((user("first"),), Sampling(), ("<|end_q|>",), (SEARCH,))
    completion = await talk.policy.complete(request, seen.append)
    assert "".join(delta.text for delta in seen if not delta.reasoning) == completion.text
    assert "".join(delta.text for delta in seen if delta.reasoning) == completion.reasoning
    assert len(seen) > 1 or len(said) < 24


async def test_a_prompt_that_is_too_long_is_refused_and_shortened_as_for_other_policies() -> None:
    talk = Talk("one", "two", window=2000)
    long = user("word " * 1000)
    with pytest.raises(ContextOverflow) as overflow:
        await talk.ask(long)
    assert overflow.value.window == 2000
    assert overflow.value.asked > 5000
    said = await Hardened(talk.policy).complete(Request((user("Answer."), long)))
    assert said.text == "one"
    assert "its oldest parts are removed" in said.notes[0]
    assert 200 < len(talk.engine.prompts[-1]) < 2000


async def test_a_reply_that_does_not_come_in_time_is_a_failure_that_may_pass() -> None:
    class Hanging(ScriptedEngine):
        async def sample(self, *_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

    tokenizer = tiny_tokenizer()
    policy = LocalPolicy("tiny", Template(tokenizer), Hanging(tokenizer), seconds=0.05)
    with pytest.raises(TimedOut, match=r"no whole reply within 0\.05 seconds") as late:
        await policy.complete(Request((user("first"),)))
    assert not late.value.retryable, "it would take as long again"


def test_a_tokenizer_without_a_chat_template_is_refused_with_a_way_out() -> None:
    with pytest.raises(UsageError, match="the tokenizer has no chat template") as refused:
        Template(tiny_tokenizer(None), where="model 'x'")
    assert "instruct version" in refused.value.fix
    with pytest.raises(UsageError, match="cannot render this"):
        Template(tiny_tokenizer("{{ raise_exception('broken') }}"))
    with pytest.raises(UsageError, match="leaves out what the model said"):
        Template(tiny_tokenizer("{{ messages[0].content }}"))


ENDLESS = {
    "late loops": "{% if messages | length > 3 %}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
    "{% endfor %}{% endif %}",
    "a text that doubles": "{% set it = namespace(x='abcdefgh') %}{% for a in range(99) %}{% set it.x = it.x ~ it.x %}"
    "{% endfor %}",
}


@pytest.mark.heavy
@pytest.mark.parametrize("template", ENDLESS.values(), ids=ENDLESS)
def test_a_chat_template_that_never_ends_is_refused_before_this_process_renders_it(template: str) -> None:
    with pytest.raises(UsageError, match="the model's chat template cannot be rendered") as refused:
        Template(tiny_tokenizer(template), where="model 'x'")
    assert "model 'x'" in str(refused.value)


async def test_a_template_without_tools_and_system_messages_is_used_as_it_can_be() -> None:
    talk = Talk("one", template=PLAIN)
    can = talk.policy.template.can
    assert (can.tools, can.system, can.repeats) == (False, False, False)
    with pytest.raises(ToolsRefused):
        await talk.ask(user("Which?"), tools=(SEARCH,))
    await talk.ask(system("Be brief."), user("Which?"), user("Now."))
    assert talk.text(0) == "<|im_start|>user\nBe brief.\n\nWhich?\n\nNow.<|im_end|>\n<|im_start|>assistant\n"


CALLS = {
    "native": '\n\n Twice.\n<tool_call>\n{"name": "double", "arguments": {"of": "2"}}\n</tool_call>',
    "tags": "\n\n Twice. <|begin_double_call|> 2 <|end_double_call|>",
    "xml": "\n\n Twice.\n<use_mcp_tool>\n<server_name>tools</server_name>\n<tool_name>double</tool_name>\n"
    '<arguments>\n{"of": "2"}\n</arguments>\n</use_mcp_tool>',
    "json": '\n\n Twice.\n```json\n{"name": "double", "arguments": {"of": "2"}}\n```\n',
}


@tool(pure=True)
def double(of: str) -> str:
    """Twice as many."""
    return str(2 * int(of))


@needs("torch")
@pytest.mark.parametrize("dialect", CALLS)
async def test_a_turn_that_begins_with_white_space_stays_one_row(dialect: str) -> None:
    talk = Talk(CALLS[dialect], CALLS[dialect].replace("2", "3"), "It is 6.")
    context = RunContext({"*": RoleConfig(talk.policy, dialect=DIALECTS[dialect])})
    conversation = context.conversation("planner")
    conversation.say(user("What is twice two, and twice three?"))
    step = await Loop(conversation, [double], final=True).run()
    assert step.text == "It is 6."
    assert talk.counts == {"turns": 3, "rows": 1}
    assert len(rows_of(context.rollout).rows) == 1
