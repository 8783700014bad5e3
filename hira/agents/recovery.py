"""Recovery from bad replies: each is accepted, answered with a remark, or closes the role's loop."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hira.agents.reply_reader import ReplyReader, name_call
from hira.agents.run_context import Conversation
from hira.core.errors import BadReply
from hira.core.events import Notice
from hira.core.messages import Filled, Message
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import Prompt, is_copied, safe
from hira.core.sanitize import sanitize
from hira.evidence import find_cited
from hira.policies.dialects import Call, Parsed
from hira.policies.dialects.answer import only_thought, strip_thought
from hira.policies.facts import DIALECT
from hira.tools import LONGEST_QUERY

UNREADABLE = Prompt(__file__, "remarks", "unreadable")
EMPTY = Prompt(__file__, "remarks", "empty")
AFRESH = Prompt(__file__, "remarks", "conclude_afresh")
CUT = Prompt(__file__, "remarks", "cut")
REPEATS = 2
"""Repetitions of calls that end the loop: the second one, which is the third time for one call."""
UNREADABLE_IN_A_ROW = 2
SILENT = 3
"""Replies in a row without a word, after which no further one is asked for."""
_NUMBER = compile_lazily(r"^\s*\[\d+\]\s*")
_FRAME_END = compile_lazily(r"\[/s\d+\]")


@dataclass(frozen=True, slots=True)
class Accept:
    """The reply counts: its `calls` are to be made; without any it is the role's last word."""

    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """The reply does not count, and the model reads why. A reply that was cut off `stays` in the conversation."""

    notice: Filled
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """The role has to close, for this reason."""

    reason: str


@dataclass(slots=True)
class Recovery:
    """Judges the replies of a role, and remembers what is wrong with them.

    A model that only repeats itself, or says nothing after a result, gets its task once more with the results alone,
    because it keeps repeating its own words. Before that, the loop makes the `fallback_calls`, which the model should
    have made: by default, if it has read nothing, a search for its task. If there is a `known_answer` already, the
    model is not asked again.
    """

    conversation: Conversation
    reader: ReplyReader
    known_answer: Callable[[], str] = lambda: ""
    fallback_calls: Callable[[], Sequence[Call]] | None = None
    repeats: int = 0
    _unreadable: int = 0
    _cut: bool = False
    _resorted: bool = False
    _before: list[Message] | None = None

    def judge(self, completion: Completion, parsed: Parsed) -> Accept | Remark | Close:
        """Judge a reply. Raises `BadReply` if no further one would be better."""
        conversation = self.conversation
        conversation.trajectory.calls += len(parsed.calls)
        if parsed.error:
            conversation.trajectory.unreadable += 1
            self.reader.asked_for_form |= parsed.loose
            return self._refuse(UNREADABLE.fill(error=Filled(parsed.error)), parsed.error.partition(";")[0])
        if not parsed.calls:
            longest, written = conversation.config.replies, completion.usage.completion_tokens
            if longest and completion.finish == "length" and written >= longest.tokens:
                check_spoken(completion, conversation)  # where thought took it all, another try would end likewise
            if not parsed.text or only_thought(completion):
                return self._judge_silence(completion)
            if self.was_cut(completion):
                return Remark(CUT.fill(), stays=True)
        accepted = self.reader.calls.take(parsed.calls, self.reader.find_tool, self.reader.refuse_copied)
        conversation.trajectory.failed += len(parsed.calls) - len(accepted)
        if accepted or not parsed.calls:
            self.restore()
            self._unreadable = conversation.context.state.silent = 0
            if accepted:
                config, begun = conversation.config, conversation.context.config_of(conversation.trajectory.role)
                if config.dialect is not begun.dialect:  # it fell back to one that the model can write
                    config.facts.keep(DIALECT, config.dialect.name)
            return Accept(tuple(accepted))
        # a model that copies would copy again
        made = self.reader.calls
        reads = bool(self.reader.task and made.results)
        copies = reads and all(name_call(call) in made.latest or made.is_result(call) for call in parsed.calls)
        self.repeats = REPEATS if copies else self.repeats + 1
        (_, refusal), *_ = filter(None, made.refused)
        made.refused = []
        return self._remark(Filled(refusal))

    @property
    def is_stuck(self) -> bool:
        return self.repeats >= REPEATS or self._unreadable >= UNREADABLE_IN_A_ROW

    def find_end(self) -> str:
        """Why no further turn is taken, empty if one is. After unreadable turns the next dialect is tried."""
        if self.repeats >= REPEATS:
            return "the same call was repeated"
        if self._unreadable < UNREADABLE_IN_A_ROW:
            return ""
        self.restore()
        if not self.conversation.switch_dialect(f"{UNREADABLE_IN_A_ROW} turns in a row could not be read"):
            return "your calls could not be read"
        self._unreadable = 0
        return ""

    def resort(self) -> tuple[Call, ...]:
        """The calls that a stuck role should have made, once; none for any other role."""
        if self._resorted or not self.is_stuck or self.reader.calls.used >= self.reader.calls.limit:
            return ()
        self._resorted = True
        calls = tuple((self.fallback_calls or self._search_for_task)())
        if calls:
            self.restore()
            self.reader.calls.used += len(calls)
            self.reader.calls.seen.update(map(name_call, calls))
        return calls

    def ask_afresh(self) -> Filled | None:
        """The task with the results alone, in an empty conversation, for a model that is stuck; None for any other."""
        results = self._list_results()
        if not (self.is_stuck and results and self.reader.task):
            return None
        self.conversation.go_back([])
        return AFRESH.fill(results=Filled("\n\n".join(map(safe, results))), task=sanitize(self.reader.task))

    def was_cut(self, completion: Completion) -> bool:
        """Return whether an answer was cut off for its length; only once: a second one makes the run partial."""
        if self._cut or completion.finish != "length" or not completion.text:
            return False
        self._cut = True
        return True

    def restore(self) -> None:
        """Go back to the conversation as it was after the last turn that was accepted."""
        if self._before is not None:
            self.conversation.go_back(self._before)
        self._before = None

    def _judge_silence(self, completion: Completion) -> Remark | Close:
        """Count replies that say nothing. Raises `BadReply` at the third in a row, in whatever conversation."""
        context = self.conversation.context
        context.state.silent += completion.usage.calls
        if context.state.silent >= SILENT:
            check_spoken(completion, self.conversation)
            raise BadReply(
                f"the model wrote no answer: {context.state.silent} replies in a row are empty",
                where=f"role {self.conversation.trajectory.role!r}, model {completion.model!r}",
                fix="use another model for this role; one without a chat template cannot be asked",
            )
        if self.reader.task and self._list_results():
            self._unreadable = UNREADABLE_IN_A_ROW
            return Close("your reply was empty")
        return self._refuse(EMPTY.fill(), "the reply is empty")

    def _refuse(self, notice: Filled, why: str) -> Remark:
        """Leave out a turn that could not be read; the model and the person see why."""
        self._unreadable += 1
        said = f"{self.conversation.trajectory.role}: {re.sub(r'[Yy]our ', 'its ', why.rstrip('.'))}"
        self.conversation.context.events(Notice(f"{said}; the model is asked again"))
        return self._remark(notice)

    def _remark(self, notice: Filled) -> Remark:
        """A remark that leaves the conversation with the next turn that is accepted."""
        self.restore()
        self._before = list(self.conversation.messages)
        return Remark(notice)

    def _search_for_task(self) -> Sequence[Call]:
        """A search for the task itself, for a role that has read nothing."""
        tools = self.conversation.tools
        tool = next((tool for tool in tools if tool.parameters.get("required") == ["query"]), None)
        if tool is None or not self.reader.task or find_cited("\n".join(self._list_results())):
            return ()
        task = " ".join(self.reader.task.split())
        query = task[-LONGEST_QUERY:] if self.conversation.context.earlier else task[:LONGEST_QUERY]  # messages first
        call = Call(tool.name, {"query": query})
        return () if name_call(call) in self.reader.calls.seen else (call,)

    def _list_results(self) -> list[str]:
        """The results so far, each text once."""
        results = (text for message in self.conversation.messages for _, text in message.values.get("results", ()))
        return list(dict.fromkeys(results))


def is_echo(text: str, question: str, reason: str) -> bool:
    """Return whether a reply only repeats the request for the answer, as small models do. The request may contain an
    answer such as "No", or a sentence that was read, but these have neither the reason nor the frame of a source. What
    begins as the request does, up to the reason, is an echo, and so is this beginning alone."""
    before = question.partition(reason)[0] if reason else ""
    if before and text.strip(" .:\n") == before.strip(" .:\n"):
        return True
    framed = _FRAME_END.search(text) or (reason and reason in text)
    return bool(before and before + reason in text) or (bool(framed) and is_copied(_NUMBER.sub("", text), question))


def check_spoken(completion: Completion, conversation: Conversation) -> None:
    """Raise `BadReply` for an answer that is nothing but thought, also where the endpoint does not show it."""
    cut = completion.finish == "length" and not completion.calls
    if only_thought(completion) or (cut and not strip_thought(completion)):
        within = f" within {completion.usage.completion_tokens:,} tokens" if cut else ""
        raise BadReply(
            f"the model thought and gave no answer{within}",
            where=f"role {conversation.trajectory.role!r}, model {completion.model!r}",
            fix="let it write longer replies (--max-reply-tokens or max_reply_tokens=), or use another model",
        )
