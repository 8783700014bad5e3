"""Reading the replies of a role: calls that it makes, apart from those that it quotes from a text it has read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from hira.agents.calls import CallResult, format_arguments
from hira.agents.run_context import Conversation
from hira.core.messages import Filled
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.policies.dialects import Call, Parsed
from hira.tools import Tool

if TYPE_CHECKING:
    from hira.policies.dialects.folding import ReadTexts

REPEATED = Prompt(__file__, "remarks", "repeated")
SPENT = Prompt(__file__, "remarks", "spent")
LOOSE_CALL = Prompt(__file__, "remarks", "loose_call")
COPIED_CALL = Prompt(__file__, "remarks", "copied_call")
QUOTED = "the reply quotes a call of {} from a text that the run has read; hira did not make it"
SHORTEST_FAULT = 16
"""Characters of a faulty call from which on it counts as a quotation; a source may contain a shorter one by chance."""
LONGEST_SOURCE = 200_000
"""Characters of a source that a reply is compared with; what a role sees of a longer one is also among its results."""


def name_call(call: Call) -> str:
    """The call in one line: two calls are the same if they are spelled alike."""
    return f"{call.name} {format_arguments(call.arguments)}"


@dataclass(slots=True)
class MadeCalls:
    """The calls of one role: `used` of them were accepted, at most `limit`. Repeated calls of a `pure` tool and calls
    over the limit are answered without being performed."""

    limit: int
    used: int = 0
    results: set[str] = field(default_factory=set)
    """Texts of results that the model has read."""
    seen: set[str] = field(default_factory=set)
    """The names of calls that are not performed again."""
    made: set[str] = field(default_factory=set)
    latest: set[str] = field(default_factory=set)
    """The names of the calls that were accepted, and of those of the last turn."""
    refused: list[tuple[Call, str] | None] = field(default_factory=list)
    """For each call of a turn its answer if it was refused."""
    _returned: dict[str, str] = field(default_factory=dict)

    def take(
        self, calls: Sequence[Call], tool_of: Callable[[Call], Tool], refuse: Callable[[Call], Filled | None]
    ) -> list[Call]:
        """Accept the calls of a turn that are new, within the limit and not refused; `join` answers the others."""
        accepted: list[Call] = []
        for call in calls:
            key = name_call(call)
            repeats = key in self.seen or self.is_result(call)
            refused: Filled | None = REPEATED.fill(left=self.limit - self.used) if repeats else None
            if not repeats and self.used >= self.limit:
                refused = SPENT.fill(limit=self.limit)
            refused = refused or refuse(call)
            self.refused.append((call, refused) if refused else None)
            if not refused:
                accepted.append(call)
                self.used += 1
                if tool_of(call).pure:
                    self.seen.add(key)
        if accepted:
            self.latest = {name_call(call) for call in accepted}
            self.made |= self.latest
        return accepted

    def join(self, results: Sequence[tuple[Call, str]]) -> list[tuple[Call, str]]:
        """The results of a turn in the order of its calls; the refused ones have theirs already."""
        rest = iter(results)
        joined = [pair or next(rest) for pair in self.refused] if self.refused else list(results)
        self.refused = []
        self.results.update(" ".join(text.split()) for _, text in joined)
        return joined

    def is_result(self, call: Call) -> bool:
        """Return whether the arguments of a call are a result that the model has read."""
        return len(call.arguments) == 1 and format_arguments(call.arguments) in self.results

    def returned_again(self, call: Call, seen: CallResult) -> bool:
        """Return whether a repeatable call returned the same again, or failed again."""
        texts = [seen.observation.text, *(passage.text for passage in seen.observation.passages)] if seen.ok else []
        key, text = name_call(call), "\n".join(texts)
        again = self._returned.get(key) == text
        self._returned[key] = text
        return again


@dataclass(slots=True)
class ReplyReader:
    """Reads the replies of a conversation, of which at most `several` calls are accepted a turn. `task` is the role's
    task. Once the role has been `asked_for_form`, calls in a loose form are doubted."""

    conversation: Conversation
    calls: MadeCalls
    several: int
    task: str = ""
    asked_for_form: bool = False

    def find_tool(self, call: Call) -> Tool:
        return next(tool for tool in self.conversation.readable.tools if tool.name == call.name)

    def parse(self, completion: Completion) -> Parsed:
        """Parse a reply. Calls that it quotes remain text. Once the role has read something, a call of a tool with
        effects in a loose form is a fault, because somebody else may have written it."""
        parse = partial(
            self.conversation.config.dialect.parse, tools=self.conversation.readable.tools, several=self.several
        )
        parsed = parse(completion)
        quoted: tuple[Call, ...] = ()
        if parsed.passages or (parsed.calls and not completion.calls):
            from hira.policies.dialects.quoted import parse_made  # few replies have calls in their text

            parsed, quoted = parse_made(parse, parsed, completion, self.is_quoted)
        context = self.conversation.context
        for call in quoted:
            context.note(f"{self.conversation.trajectory.role}: {QUOTED.format(call.name)}")
            context.state.offered.pop(call.name, None)  # the answer may quote it, too
        if parsed.loose and (risky := next(filter(self._is_risky, parsed.calls), None)) and self._read_texts().folded:
            return replace(parsed, calls=(), error=LOOSE_CALL.fill(tool=Filled(risky.name)))
        return parsed

    def is_quoted(self, call: Call | None, passage: str, loose: bool) -> bool:  # noqa: FBT001 - the shape of IsQuoted
        """Return whether a passage of a reply comes from a text that the role has read, so that somebody else wrote the
        call. A result may repeat its call, so calls that the role has made before are not quoted. Calls of tools that
        only read are compared as a whole, because a name in a result may be worth a search."""
        read = self._read_texts()
        if not read.folded or (call and name_call(call) in self.calls.made):
            return False
        if call is None:
            return len(passage) >= SHORTEST_FAULT and read.hold(passage)
        if read.hold(passage) or (loose and self.asked_for_form and self._is_risky(call)):
            return True
        tool = self.find_tool(call)
        only_reads = tool.pure or tool.speaks or tool is self.conversation.context.tools.files
        return not only_reads and (read.hold_in_pieces(passage) or read.hold_reworded(call, tool))

    def refuse_copied(self, call: Call) -> Filled | None:
        """Refuse a call that may change something and that a text contains that the role has read, whatever its form.
        A person decides about a call that needs approval."""
        tool = self.find_tool(call)
        if not self._is_risky(call) or tool.needs_approval or name_call(call) in self.calls.made:
            return None
        copied = self._read_texts().hold_reworded(call, tool)
        return COPIED_CALL.fill(tool=Filled(call.name)) if copied else None

    def _is_risky(self, call: Call) -> bool:
        tool = self.find_tool(call)
        return tool.has_effects and tool is not self.conversation.context.tools.files

    def _read_texts(self) -> "ReadTexts":
        """Return the texts that the role may have read: results, sources, memory, earlier turns, names of files."""
        context = self.conversation.context
        record, memory = context.rollout, context.rollout.memory
        texts = [
            *(source.evidence[:LONGEST_SOURCE] for source in record.sources.read.values()),
            *self.calls.results,
            *(fact.text for fact in memory.facts),
            *(f"{resource.description} {resource.path}" for resource in memory.resources),
            *map(str, context.files),
            self.task.replace(record.question, "") if record.question else "",  # earlier turns
        ]
        from hira.policies.dialects.folding import ReadTexts  # few replies have calls in their text

        return ReadTexts(list(filter(None, map(context.state.fold, texts))))
