"""The one loop: reason, write a call, read its result, repeat. Planner, experts and every workflow run on it.

It always ends with an answer. The model is asked for it once, with the reason and after the last result: at a limit,
when it merely copies the call whose result it has just read, at the third repeat of another call, or when the run has
to stop. After two unreadable turns in a row the loop switches to the next dialect, and closes after the last one.
Unaccepted turns are left out, and so are the remarks on them once a turn is accepted: a model never reads its own
broken calls.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap

from hira.agents.calls import CallResult, format_arguments, use
from hira.agents.run_context import Conversation, together
from hira.core.budget import size
from hira.core.errors import BadReply, RoleBudgetExceeded, Stop
from hira.core.events import Notice
from hira.core.messages import Filled, Message, assistant, user
from hira.core.patterns import compile_lazily
from hira.core.policy import Completion
from hira.core.prompts import Prompt, is_copied, safe
from hira.core.sanitize import sanitize
from hira.evidence import find_cited
from hira.policies.dialects import Call, Parsed
from hira.policies.dialects.answer import find_final_answer, only_thought, strip_thought
from hira.policies.dialects.quoted import ReadTexts, parse_made
from hira.tools import Tool
from hira.tools.toolbox import LONGEST_QUERY

REPEATED = Prompt(__file__, "remarks", "repeated")
UNREADABLE = Prompt(__file__, "remarks", "unreadable")
EMPTY = Prompt(__file__, "remarks", "empty")
CONCLUDE = Prompt(__file__, "remarks", "conclude")
AFRESH = Prompt(__file__, "remarks", "conclude_afresh")
CUT = Prompt(__file__, "remarks", "cut")
SPENT = Prompt(__file__, "remarks", "spent")
PROSE = Prompt(__file__, "remarks", "prose")
LOOSE_CALL = Prompt(__file__, "remarks", "loose_call")
COPIED_CALL = Prompt(__file__, "remarks", "copied_call")

Perform = Callable[[Call], Awaitable[str]]
_NUMBER = compile_lazily(r"^\s*\[\d+\]\s*")
_FRAME_END = compile_lazily(r"\[/s\d+\]")

QUOTED = "the reply quotes a call of {} from a text that the run has read; hira did not make it"
SHORTEST_FAULT = 16
"""Characters of a faulty call from which on it counts as a quotation; a source may contain a shorter one by chance."""
LONGEST_SOURCE = 200_000
"""Characters of a source that a reply is compared with; what a role sees of a longer one is also among its results."""
REPEATS = 2
UNREADABLE_IN_A_ROW = 2
SILENT = 3
"""Replies in a row without a word, after which no further one is asked for."""


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


@dataclass(slots=True)
class Loop:
    """A role at work with tools. `limit` is the most accepted calls, `several` the most in one turn.

    Repeated calls of a `pure` tool and calls over the limit are answered without being performed. `final` marks the
    role whose answer is the run's: when the run has to stop, only this role is asked once more, at the expense of the
    budget's reserve; the others close with their last words. `conclude` turns a reason into the request for the answer.
    A conversation of `window` tokens or more is closed, and loses its latest turns until this request fits (MATPO,
    "Rollout Summary Mechanism"); 0 means no limit. `understood` are tools that the model does not see, but may call.
    `task` is the role's task: a model that only repeats itself, or says nothing after a result, gets it once more with
    the results alone, because it keeps repeating its own words. Before that, the loop performs the calls that the model
    should have made `instead`: by default, if it has read nothing, a search for its task. If the answer is `known`
    already, the model is not asked again.
    """

    conversation: Conversation
    tools: Sequence[Tool]
    limit: int = 10
    several: int = 1
    final: bool = False
    conclude: Callable[[str], Filled] = lambda reason: CONCLUDE.fill(reason=reason)
    window: int = 0
    understood: Sequence[Tool] = ()
    task: str = ""
    known: Callable[[], str] = lambda: ""
    instead: Callable[[], Sequence[Call]] | None = None
    used: int = 0
    repeats: int = 0
    unreadable: int = 0
    cut: bool = False
    said: str = ""
    plans: bool = False
    transcript: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _answered: list[tuple[Call, str] | None] = field(default_factory=list)
    _latest: set[str] = field(default_factory=set)
    _results_read: set[str] = field(default_factory=set)
    _brought: dict[str, str] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _asked_for_form: bool = False
    _resorted: bool = False
    _accepted: list[Message] | None = None

    def __post_init__(self) -> None:
        self.conversation.closes = "run" if self.final else "role"
        self.conversation.callable = self.callable
        self.conversation.tools = self.tools
        self.conversation.is_quoted = self._is_quoted
        self.conversation.context.offered |= {tool.name: tool for tool in self.callable}

    @property
    def callable(self) -> tuple[Tool, ...]:
        return (*self.tools, *self.understood)

    async def run(self, perform: Perform | None = None) -> Step:
        """Think and act until the model closes. `perform` makes the calls in place of the tools, where they are a
        workflow's own matter."""
        perform = perform or self.perform
        step = await self.think()
        while step.calls:
            results = await together([perform(call) for call in step.calls])
            self.observe(list(zip(step.calls, results, strict=True)))
            step = await self.think()
        return step

    async def think(self) -> Step:
        """Turns until one is accepted: a new call that can be read, or the end."""
        while True:
            if reason := self._over():
                return self._resort(reason) or await self.close(reason)
            try:
                completion = await self.conversation.turn(several=self.several)
            except Stop as stop:
                return (
                    await self.close(stop.what)
                    if self.final or isinstance(stop, RoleBudgetExceeded)
                    else self._end(stop)
                )
            parsed = self._parse(completion)
            self.conversation.trajectory.calls += len(parsed.calls)
            if parsed.error:
                self.conversation.trajectory.unreadable += 1
                self._asked_for_form |= parsed.loose
                self._refuse(UNREADABLE.fill(error=Filled(parsed.error)))
            elif not parsed.calls and self._ran_out_thinking(completion):
                check_spoken(completion, self.conversation)
            elif not parsed.calls and (not parsed.text or only_thought(completion)):
                self._count_silence(completion)
                if self.task and self._results():
                    self.unreadable = UNREADABLE_IN_A_ROW
                    return await self.close("your reply was empty")
                self._refuse(EMPTY.fill())
            elif not parsed.calls and self._was_cut(completion):
                self._keep(parsed)
                self.observe([], CUT.fill())
            elif (step := self._accept(parsed)).calls or not parsed.calls:
                return step
            else:
                self.repeats = REPEATS if self._copies(parsed.calls) else self.repeats + 1
                (_, refused), *_ = filter(None, self._answered)
                self._answered = []
                self._restore()
                self._tell(Filled(refused))

    def _over(self) -> str:
        """Why no further turn is taken, empty if one is."""
        if self.used >= self.limit:
            return f"all {self.limit} calls are used"
        if self.repeats >= REPEATS:
            return "the same call was repeated"
        if self.unreadable >= UNREADABLE_IN_A_ROW and not self._falls_back():
            return "your calls could not be read"
        return "the context is full" if self.window and self._first_turn() and self._tokens() >= self.window else ""

    async def close(self, reason: str) -> Step:
        """Ask for the answer from the results so far, at the expense of the budget's reserve. Without a `reason`, the
        role had closed unasked."""
        if reason:
            self._notice(f"{self.conversation.name}: {reason}; asking for the answer")
        if self._is_stuck() and (known := self.known()):
            return Step(known, forced=reason)
        self._restore()
        asking = user(self._ask_afresh() or self.conclude(reason))
        self._make_room(size([asking]))
        self.conversation.say(asking)
        try:
            completion = await self.conversation.turn(last=self.final, closing=True)
            if self._was_cut(completion) and not self.conversation.context.stopped:
                self.conversation.say(assistant(completion.text), user(CUT.fill()))
                completion = await self.conversation.turn(last=self.final, closing=True)
            elif self._only_calls(self._parse(completion)):
                self.conversation.say(user(PROSE.fill()))
                completion = await self.conversation.turn(last=self.final, closing=True)
        except Stop as stop:
            return self._end(stop)
        check_spoken(completion, self.conversation)
        parsed = self._parse(completion)
        if self._only_calls(parsed):
            self._notice(f"{self.conversation.name}: the model wrote a call instead of its answer")
        self.conversation.say(assistant(parsed.text))
        self.transcript.append(parsed.text)
        return Step("" if _is_echo(parsed.text, asking.text, reason) else parsed.text, forced=reason)

    def _is_stuck(self) -> bool:
        return self.repeats >= REPEATS or self.unreadable >= UNREADABLE_IN_A_ROW

    def _resort(self, reason: str) -> Step | None:
        """Return a step with the calls that a stuck role should have made, once; None without any."""
        if self._resorted or not self._is_stuck() or self.used >= self.limit:
            return None
        self._resorted = True
        if not (calls := (self.instead or self._search_for_task)()):
            return None
        self._restore()
        self.used += len(calls)
        self._seen |= {self._key(call) for call in calls}
        self.transcript += [f"Called {call.name}: {format_arguments(call.arguments)}" for call in calls]
        return Step("", tuple(calls), forced=reason)

    def _search_for_task(self) -> Sequence[Call]:
        """A search for the task itself, for a role that has read nothing."""
        tool = next((tool for tool in self.tools if tool.parameters.get("required") == ["query"]), None)
        if tool is None or not self.task or find_cited("\n".join(self._results())):
            return ()
        call = Call(tool.name, {"query": " ".join(self.task.split())[:LONGEST_QUERY]})
        return () if self._key(call) in self._seen else (call,)

    def _count_silence(self, completion: Completion) -> None:
        """Count replies that say nothing. Raises `BadReply` at the third in a row, in whatever conversation."""
        context = self.conversation.context
        context.silent += completion.usage.calls
        if context.silent >= SILENT:
            check_spoken(completion, self.conversation)
            raise BadReply(
                f"the model wrote no answer: {context.silent} replies in a row are empty",
                where=f"role {self.conversation.trajectory.role!r}, model {completion.model!r}",
                fix="use another model for this role; one without a chat template cannot be asked",
            )

    def _copies(self, calls: Sequence[Call]) -> bool:
        """Return whether a turn merely copies the calls whose results the model has just read, or calls with a result
        as argument. A remark would not help: it would copy again."""
        if not (self.task and self._results_read):
            return False
        return all(self._key(call) in self._latest or self._is_result(call) for call in calls)

    def _is_result(self, call: Call) -> bool:
        """Return whether the arguments of a call are a result that the model has read."""
        return len(call.arguments) == 1 and format_arguments(call.arguments) in self._results_read

    def _results(self) -> list[str]:
        """Return the results so far, each text once."""
        results = (text for message in self.conversation.messages for _, text in message.values.get("results", ()))
        return list(dict.fromkeys(results))

    def _ask_afresh(self) -> Filled | None:
        """The task with the results alone, in an empty conversation, for a model that is stuck; None for any other."""
        results = self._results()
        if not (self._is_stuck() and results and self.task):
            return None
        self.conversation.go_back([])
        return AFRESH.fill(results=Filled("\n\n".join(map(safe, results))), task=sanitize(self.task))

    def _parse(self, completion: Completion) -> Parsed:
        """Parse a reply. Calls that it quotes remain text. Once the role has read something, a call of a tool with
        effects in a loose form is a fault, because somebody else may have written it."""
        parse = partial(self.conversation.config.dialect.parse, tools=self.callable, several=self.several)
        parsed, quoted = parse_made(parse, completion, self._is_quoted)
        context = self.conversation.context
        for call in quoted:
            context.note(f"{self.conversation.name}: {QUOTED.format(call.name)}")
            context.offered.pop(call.name, None)  # the answer may quote it, too
        if parsed.loose and (risky := next(filter(self._is_risky, parsed.calls), None)) and self._read_texts().folded:
            return replace(parsed, calls=(), error=LOOSE_CALL.fill(tool=Filled(risky.name)))
        return parsed

    def _is_quoted(self, call: Call | None, passage: str, loose: bool) -> bool:  # noqa: FBT001 - the shape of IsQuoted
        """Return whether a passage of a reply comes from a text that the role has read, so that somebody else wrote the
        call. A result may repeat its call, so calls that the role has made before are not quoted. Calls of tools that
        only read are compared as a whole, because a name in a result may be worth a search."""
        read = self._read_texts()
        if not read.folded or (call and self._key(call) in self._made):
            return False
        if call is None:
            return len(passage) >= SHORTEST_FAULT and read.hold(passage)
        if read.hold(passage) or (loose and self._asked_for_form and self._is_risky(call)):
            return True
        tool = self._tool(call)
        only_reads = tool.pure or tool.speaks or tool is self.conversation.context.tools.files
        return not only_reads and (read.hold_in_pieces(passage) or read.hold_reworded(call, tool))

    def _is_copied(self, call: Call) -> bool:
        """Return whether a call that may change something stands in a text that the role has read, whatever its form.
        A person decides about a call that needs approval."""
        tool = self._tool(call)
        if not self._is_risky(call) or tool.needs_approval or self._key(call) in self._made:
            return False
        return self._read_texts().hold_reworded(call, tool)

    def _is_risky(self, call: Call) -> bool:
        tool = self._tool(call)
        return tool.has_effects and tool is not self.conversation.context.tools.files

    def _read_texts(self) -> ReadTexts:
        """Return the texts that the role may have read: results, sources, memory, earlier turns, names of files."""
        context = self.conversation.context
        record, memory = context.rollout, context.rollout.memory
        texts = {
            **{source.id: source.evidence[:LONGEST_SOURCE] for source in record.sources.read.values()},
            **{text: text for text in self._results_read},
            **{fact.text: fact.text for fact in memory.facts},
            **{resource.path: f"{resource.description} {resource.path}" for resource in memory.resources},
            **{str(path): str(path) for path in context.files},
            "earlier turns": self.task.partition(record.question)[2] if record.question else "",
        }
        return ReadTexts(list(filter(None, starmap(context.fold, texts.items()))))

    @staticmethod
    def _only_calls(parsed: Parsed) -> bool:
        """Return whether a turn consists of calls alone, readable or not."""
        return bool(parsed.calls or parsed.error) and not parsed.text

    def observe(self, results: Sequence[tuple[Call, str]], notice: Filled | None = None) -> None:
        """Bring the results back into the conversation, in the order of the calls; the refused have theirs already."""
        made = iter(results)
        results = [pair or next(made) for pair in self._answered] if self._answered else list(results)
        self._answered = []
        conversation = self.conversation
        self.transcript += [f"{call.name} returned: {text}" for call, text in results]
        self._results_read.update(" ".join(text.split()) for _, text in results)
        messages = conversation.config.dialect.results(results, notice)
        if conversation.config.continuation == "chain":
            conversation.carry_on("".join(f"\n\n{message.text}\n\n" for message in messages), results)
        else:
            conversation.say(*messages)

    async def perform(self, call: Call) -> str:
        """Run one call and return its result as the model reads it."""
        seen = await use(self.conversation, self._tool(call), call.arguments)
        if not seen.ok:
            self.forget(call)
        if not (seen.ok and self._tool(call).pure):
            self._count_repeat(call, seen)
        return seen.text

    def _count_repeat(self, call: Call, seen: CallResult) -> None:
        """Count a repeatable call as a repeat if its tool returned the same again, or failed again."""
        brought = [seen.observation.text, *(one.text for one in seen.observation.passages)] if seen.ok else []
        key, text = self._key(call), "\n".join(brought)
        self.repeats += self._brought.get(key) == text
        self._brought[key] = text

    def forget(self, call: Call) -> None:
        """Let a call be made again, because it failed; it counts as one that failed (MATPO, "Reward Function")."""
        self.conversation.trajectory.failed += 1
        self._seen.discard(self._key(call))

    @property
    def account(self) -> str:
        """All that was said, called and seen, for the distiller."""
        return "\n\n".join(filter(None, self.transcript))

    def _first_turn(self) -> int:
        """Return the position of the role's first turn in its conversation, 0 before there is one."""
        messages = self.conversation.messages
        return next((at for at, message in enumerate(messages) if message.role == "assistant"), 0)

    def _tokens(self) -> int:
        return self.conversation.tokens(self.conversation.config.dialect.specs(self.tools))

    def _make_room(self, needed: int) -> None:
        """Leave out the latest turns, each with its results, until that many tokens fit into the window."""
        if not self.window or not self._first_turn():
            return
        if (over := self._tokens() + needed - self.window) > 0:
            self.conversation.leave_out_latest(over)
            self._notice(f"{self.conversation.name}: the context is full; the latest of it is left out")

    def _end(self, stop: Stop) -> Step:
        """Close without another call, with the model's last words."""
        return Step(self.last_words, forced=stop.what)

    @property
    def last_words(self) -> str:
        """The last words of a role that cannot be asked again. Words with a call are a plan: they are never the run's
        answer, and of another role they count only if they cite what it has read."""
        return self.said if not self.plans or (find_cited(self.said) and not self.final) else ""

    def _was_cut(self, completion: Completion) -> bool:
        """Return whether an answer was cut off for its length. Only the first time: a second one is accepted."""
        if self.cut or completion.finish != "length" or not completion.text:
            return False
        self.cut = True
        return True

    def _ran_out_thinking(self, completion: Completion) -> bool:
        """Return whether reasoning used up the whole length of the reply; another try would end the same way."""
        replies = self.conversation.config.replies
        if not replies or completion.finish != "length" or completion.usage.completion_tokens < replies.tokens:
            return False
        return only_thought(completion) or not strip_thought(completion)

    def _accept(self, parsed: Parsed) -> Step:
        """Take the turn: calls that are new and within the limit are to be made, the others are answered here."""
        made: list[Call] = []
        for call in parsed.calls:
            key = self._key(call)
            repeats = key in self._seen or self._is_result(call)
            refused = repeats and REPEATED.fill(left=self.limit - self.used)
            if not refused and self.used >= self.limit:
                refused = SPENT.fill(limit=self.limit)
            if not refused and self._is_copied(call):
                refused = COPIED_CALL.fill(tool=Filled(call.name))
            self._answered.append((call, refused) if refused else None)
            if refused:
                self.conversation.trajectory.failed += 1
            else:
                made.append(call)
                self.used += 1
                if self._tool(call).pure:
                    self._seen.add(key)
        if made or not parsed.calls:
            self._restore()
            self.unreadable = self.conversation.context.silent = 0
            self.said, self.plans = parsed.text, bool(made)
            self._keep(parsed)
            self.transcript.append(parsed.text)
            self.transcript += [f"Called {call.name}: {format_arguments(call.arguments)}" for call in made]
        if made:
            self._latest = {self._key(call) for call in made}
            self._made |= self._latest
            self.conversation.keep_dialect()
        return Step(parsed.text, tuple(made))

    def _keep(self, parsed: Parsed) -> None:
        if self.conversation.config.continuation == "chain":
            self.conversation.carry_on(parsed.message.text)
        else:
            self.conversation.say(parsed.message)

    def _refuse(self, notice: Filled) -> None:
        """Leave out a turn that could not be read, and tell the model why."""
        self.unreadable += 1
        self._restore()
        self._notice(f"{self.conversation.name}: {notice}")
        self._tell(notice)

    def _tell(self, notice: Filled) -> None:
        """Tell the model something that leaves the conversation with its next turn that is accepted."""
        self._accepted = list(self.conversation.messages)
        self.observe([], notice)

    def _restore(self) -> None:
        """Go back to the conversation as it was after the last turn that was accepted."""
        if self._accepted is not None:
            self.conversation.go_back(self._accepted)
        self._accepted = None

    def _falls_back(self) -> bool:
        """Go on in the next dialect, if there is one."""
        self._restore()
        if not self.conversation.otherwise(f"{UNREADABLE_IN_A_ROW} turns in a row could not be read"):
            return False
        self.unreadable = 0
        return True

    def _notice(self, text: str) -> None:
        self.conversation.context.events(Notice(text))

    def _tool(self, call: Call) -> Tool:
        return next(tool for tool in self.callable if tool.name == call.name)

    @staticmethod
    def _key(call: Call) -> str:
        return f"{call.name} {format_arguments(call.arguments)}"


def _is_echo(text: str, asked: str, reason: str) -> bool:
    """Return whether a reply only repeats the request for the answer, as small models do. The request may contain an
    answer such as "No", or a sentence that was read, but these have neither the reason nor the frame of a source."""
    framed = _FRAME_END.search(text) or (reason and reason in text)
    return bool(framed) and is_copied(_NUMBER.sub("", text), asked)


async def ask_for_text(conversation: Conversation, prompt: Filled) -> Completion:
    """Ask for one reply without tools, and keep it. Raises `BadReply` for one that is nothing but thought."""
    conversation.say(user(prompt))
    completion = await conversation.turn()
    check_spoken(completion, conversation)
    conversation.say(assistant(completion.text))
    return completion


def check_spoken(completion: Completion, conversation: Conversation) -> None:
    """Raise `BadReply` for an answer that is nothing but thought, also where the endpoint does not show it."""
    cut = completion.finish == "length" and not completion.calls
    if only_thought(completion) or (cut and not strip_thought(completion)):
        within = f" within {completion.usage.completion_tokens:,} tokens" if cut else ""
        raise BadReply(
            f"the model thought and gave no answer{within}",
            where=f"role {conversation.trajectory.role!r}, model {completion.model!r}",
            fix="let it write longer replies (--max-reply-tokens), or use another model for this role",
        )
