"""The one loop: reason, write a call, read its result, repeat. Planner, experts and every workflow run on it.

It always ends with an answer. The model is asked for it once, with the reason and after the last result: at a limit,
when it merely copies the call whose result it has just read, at the second repetition of calls, or when the run has to
stop. After two unreadable turns in a row the loop switches to the next dialect, and closes after the last one.
Unaccepted turns are left out, and so are the remarks on them once a turn is accepted: a model never reads its own
broken calls. `Recovery` judges the replies.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from weakref import proxy

from hira.agents.calls import format_arguments, use
from hira.agents.receiver import ReadableCalls
from hira.agents.recovery import CUT, Accept, Close, Recovery, Remark, check_spoken, is_echo
from hira.agents.reply_reader import MadeCalls, ReplyReader, name_call
from hira.agents.run_context import Conversation
from hira.agents.trajectory import Finding, Subtask
from hira.core.budget import size
from hira.core.concurrency import together
from hira.core.errors import BudgetTooSmall, EndpointError, Interrupted, OutOfBudget, RoleBudgetExceeded, Stop, count_of
from hira.core.events import Notice
from hira.core.messages import Filled, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.tokens import clip
from hira.evidence import find_cited
from hira.policies.dialects import Call, Parsed
from hira.policies.dialects.answer import find_final_answer
from hira.tools import Tool

CALLS = 10
"""The most calls of tools that an expert makes in a subtask."""
CONCLUDE = Prompt(__file__, "remarks", "conclude")
PROSE = Prompt(__file__, "remarks", "prose")
LEFT_OUT = Prompt(__file__, "remarks", "left_out")
READ = Prompt(__file__, "reports", "read")
SHOWN = 5
"""The most sources that are quoted in a run without an answer."""
QUOTED = 200
"""Characters of a quotation."""

Perform = Callable[[Call], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Step:
    """One accepted turn: `calls` to perform, or none; then `text` is the model's last word.

    `forced` is the reason why the model had to close; empty if it closed unasked.
    """

    text: str
    calls: tuple[Call, ...] = ()
    forced: str = ""

    @property
    def answer(self) -> str:
        return find_final_answer(self.text)


class Loop:
    """A role at work with tools. `limit` is the most accepted calls, `several` the most in one turn.

    `final` marks the role whose answer is the run's: when the run has to stop, only this role is asked once more, at
    the expense of the budget's reserve; the others close with their last words. `conclude` turns a reason into the
    request for the answer. A conversation of `window` tokens or more is closed, and loses its latest turns until this
    request fits (MATPO, "Rollout Summary Mechanism"); 0 means no limit. The model does not see the `hidden_tools`, but
    may call them. `Recovery` explains `known_answer` and `fallback_calls`.
    """

    def __init__(  # noqa: PLR0913 - what a role is given for its work
        self,
        conversation: Conversation,
        tools: Sequence[Tool],
        limit: int = 10,
        several: int = 1,
        *,
        final: bool = False,
        conclude: Callable[[str], Filled] = lambda reason: CONCLUDE.fill(reason=reason),
        window: int = 0,
        hidden_tools: Sequence[Tool] = (),
        task: str = "",
        known_answer: Callable[[], str] = lambda: "",
        fallback_calls: Callable[[], Sequence[Call]] | None = None,
    ) -> None:
        self.conversation = conversation
        self.several = several
        self.final = final
        self.conclude = conclude
        self.window = window
        self.calls = MadeCalls(limit)
        self.reader = ReplyReader(proxy(conversation), self.calls, several, task)  # which the conversation holds
        self.recovery = Recovery(conversation, self.reader, known_answer, fallback_calls)
        self.transcript: list[str] = []  # all that was said, called and seen
        self.said = ""
        self.plans = False
        self._left_out = 0
        conversation.closes = "run" if final else "role"
        conversation.tools = tools
        conversation.readable = ReadableCalls((*tools, *hidden_tools), self.reader.is_quoted)
        conversation.context.state.offered |= {tool.name: tool for tool in conversation.readable.tools}

    async def run(self, perform: Perform | None = None) -> Step:
        """Think and act until the model closes. `perform` makes the calls in place of the tools, where they are a
        workflow's own matter. A final role that ends without an answer leaves what it has read as a finding."""
        perform = perform or self.perform
        try:
            step = await self.think()
            while step.calls:
                results = await together([perform(call) for call in step.calls])
                self.observe(list(zip(step.calls, results, strict=True)))
                step = await self.think()
        except EndpointError:
            if self.conversation.context.rollout.usage.calls:  # passages alone are no answer of a model
                self.keep_read()
            raise
        if not step.answer:
            self.keep_read()
        return step

    async def think(self) -> Step:
        """Turns until one is accepted: a new call that can be read, or the end."""
        context = self.conversation.context
        while True:
            used, limit = self.calls.used, self.calls.limit
            reason = f"all {limit} calls are used" if used >= limit else self.recovery.find_end()
            if not reason and self.window and _list_turns(self.conversation):
                reason = "the context is full" if _count_prompt(self.conversation) >= self.window else ""
            if reason:
                calls = self.recovery.resort()
                self._write_down("", calls)
                return Step("", calls, forced=reason) if calls else await self.close(reason)
            try:
                completion = await self.conversation.turn(several=self.several)
            except Stop as stop:
                closes = self.final or isinstance(stop, RoleBudgetExceeded)
                has_answer = self.said and not self.conversation.readable.tools
                known = self.transcript or context.rollout.sources or isinstance(stop, OutOfBudget)
                if closes and known and not has_answer and context.stopping.closing_seconds() != 0.0:
                    return await self.close(stop.what)
                return Step(self.last_words, forced=stop.what)
            parsed = self.reader.parse(completion)
            self._left_out = parsed.left_out
            match self.recovery.judge(completion, parsed):
                case Accept(calls):
                    self.said, self.plans = parsed.text, bool(calls)
                    self._keep(parsed)
                    self._write_down(parsed.text, calls)
                    return Step(parsed.text, calls)
                case Close(reason):
                    return await self.close(reason)
                case Remark(notice, stays):
                    if stays:
                        self.said, self.plans = parsed.text, False
                        self._keep(parsed)
                    self.observe([], notice)

    def _write_down(self, text: str, calls: Sequence[Call]) -> None:
        self.transcript += [text] if text or not calls else []
        self.transcript += [f"Called {call.name}: {format_arguments(call.arguments)}" for call in calls]

    async def close(self, reason: str) -> Step:
        """Ask for the answer from the results so far, paid from the reserve. No `reason`: the role closed unasked."""
        if reason and not isinstance(self.conversation.context.stopped, Interrupted):
            self._notice(f"{reason.replace('your ', 'its ')}; asking for the answer")
        if self.recovery.is_stuck and (known := self.recovery.known_answer()):
            return Step(known, forced=reason)
        self.recovery.restore()
        asking = user(self.recovery.ask_afresh() or self.conclude(reason))
        if make_room(self.conversation, self.window, size([asking])):
            self._notice("the context is full; the latest of it is left out")
        if self.conversation.readable.tools or self.conversation.trajectory.turns:  # else its question asks for no more
            self.conversation.say(asking)
        try:
            completion = await self.conversation.turn(last=self.final, closing=True)
            if self.recovery.was_cut(completion) and not self.conversation.context.stopped:
                self.conversation.say(assistant(completion.text), user(CUT.fill()))
                completion = await self.conversation.turn(last=self.final, closing=True)
            elif _has_only_calls(self.reader.parse(completion)):
                self.conversation.say(user(PROSE.fill()))
                completion = await self.conversation.turn(last=self.final, closing=True)
        except Stop as stop:
            return Step(self.last_words, forced=stop.what)
        check_spoken(completion, self.conversation)
        parsed = self.reader.parse(completion)
        if _has_only_calls(parsed):
            self._notice("the model wrote a call instead of its answer")
        self.conversation.say(assistant(parsed.text))
        self.transcript.append(parsed.text)
        return Step("" if is_echo(parsed.text, asking.text, reason) else parsed.text, forced=reason)

    def observe(self, results: Sequence[tuple[Call, str]], notice: Filled | None = None) -> None:
        """Bring the results back into the conversation, in the order of the calls; the refused have theirs already."""
        results = self.calls.join(results)
        if self._left_out:
            left_out = LEFT_OUT.fill(number=self._left_out, several=count_of(self.several, "call"))
            notice = Filled(f"{notice}\n\n{left_out}") if notice else left_out
        self._left_out = 0
        conversation = self.conversation
        self.transcript += [f"{call.name} returned: {text}" for call, text in results]
        messages = conversation.config.dialect.results(results, notice)
        if conversation.config.continuation == "chain":
            conversation.carry_on("".join(f"\n\n{message.text}\n\n" for message in messages), results)
        else:
            conversation.say(*messages)

    async def perform(self, call: Call) -> str:
        """Run one call and return its result as the model reads it."""
        seen = await use(self.conversation, self.reader.find_tool(call), call.arguments)
        if not seen.ok:
            self.forget(call)
        if not (seen.ok and self.reader.find_tool(call).pure):
            self.recovery.repeats += self.calls.returned_again(call, seen)
        return seen.text

    def forget(self, call: Call) -> None:
        """Let a call be made again, because it failed; it counts as one that failed (MATPO, "Reward Function")."""
        self.conversation.trajectory.failed += 1
        self.calls.seen.discard(name_call(call))

    def keep_read(self) -> None:
        """Leave the beginnings of the latest sources that a final role has read as a finding of its run, unless there
        is another one or the budget pays for no call at all: a person can check them."""
        context, record = self.conversation.context, self.conversation.context.rollout
        closed = not self.final or isinstance(context.stopped, BudgetTooSmall)
        if closed or any(finding.ok for finding in record.findings):
            return
        quotes: list[str] = []
        for source in [source for source in record.sources.read.values() if source.evidence.strip()][-SHOWN:]:
            # the first sentence, without marks that would end a quotation; not the heading
            lines = [line.strip() for line in source.evidence.splitlines() if len(line.split()) > 4]
            first = (lines or source.evidence.strip().splitlines())[0]
            line = next((line for line in lines if line.endswith((".", "?", "!"))), first)
            line = line.partition("”")[0].partition('"')[0].lstrip("#*->| ")
            quotes.append(f"“{line if len(line) <= QUOTED else line[:QUOTED].rsplit(' ', 1)[0]}” [{source.id}]")
        if quotes:
            text = str(READ.fill(quotes=Filled("\n".join(quotes))))
            record.findings.append(Finding(Subtask("1", record.question), self.conversation.trajectory.role, "", text))

    @property
    def last_words(self) -> str:
        """The last words of a role that cannot be asked again. Words with a call are a plan: they are never the run's
        answer, and of another role they count only if they cite what it has read."""
        return self.said if not self.plans or (find_cited(self.said) and not self.final) else ""

    def _keep(self, parsed: Parsed) -> None:
        if self.conversation.config.continuation == "chain":
            self.conversation.carry_on(parsed.message.text)
        else:
            self.conversation.say(parsed.message)

    def _notice(self, text: str) -> None:
        self.conversation.context.events(Notice(f"{self.conversation.trajectory.role}: {text}"))


def make_room(conversation: Conversation, window: int, needed: int) -> bool:
    """Leave out the latest turns, each with its results, until that many tokens fit into the `window`. A chain, which
    is one message, loses its end. Return whether anything was left out."""
    turns = _list_turns(conversation) if window else []
    over = _count_prompt(conversation) + needed - window if turns else 0
    if over <= 0:
        return False
    messages, is_chain = list(conversation.messages), conversation.config.continuation == "chain"
    while over > 0 and turns:
        index = turns.pop()
        last, before = messages[index], size(messages[index:])
        del messages[index:]
        if is_chain and before > over:
            messages.append(replace(last, text=clip(last.text, before - over)))
        over -= before
    conversation.go_back(messages)
    return True


def _list_turns(conversation: Conversation) -> list[int]:
    """Return the positions of the role's turns in its conversation."""
    return [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]


def _count_prompt(conversation: Conversation) -> int:
    return conversation.tokens(conversation.config.dialect.specs(conversation.tools))


def _has_only_calls(parsed: Parsed) -> bool:
    """Return whether a turn consists of calls alone, readable or not."""
    return bool(parsed.calls or parsed.error) and not parsed.text


async def ask_for_text(conversation: Conversation, prompt: Filled) -> Completion:
    """Ask for one reply without tools, and keep it. Raises `BadReply` for one that is nothing but thought."""
    conversation.say(user(prompt))
    completion = await conversation.turn()
    check_spoken(completion, conversation)
    conversation.say(assistant(completion.text))
    return completion
