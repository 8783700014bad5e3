"""The calls of a role in its loop: those that it has made, their results, and repetitions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hira.agents.calls import CallResult, format_arguments
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.policies.dialects import Call
from hira.tools import Tool

REPEATED = Prompt(__file__, "remarks", "repeated")
SPENT = Prompt(__file__, "remarks", "spent")


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
    _refused: list[tuple[Call, str] | None] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _made: set[str] = field(default_factory=set)
    _latest: set[str] = field(default_factory=set)
    _returned: dict[str, str] = field(default_factory=dict)

    def take(
        self, calls: Sequence[Call], tool_of: Callable[[Call], Tool], refuse: Callable[[Call], Filled | None]
    ) -> list[Call]:
        """Accept the calls of a turn that are new, within the limit and not refused for another reason; the others are
        answered by `join`."""
        accepted: list[Call] = []
        for call in calls:
            key = name_call(call)
            repeats = key in self._seen or self.is_result(call)
            refused: Filled | None = REPEATED.fill(left=self.limit - self.used) if repeats else None
            if not repeats and self.used >= self.limit:
                refused = SPENT.fill(limit=self.limit)
            refused = refused or refuse(call)
            self._refused.append((call, refused) if refused else None)
            if not refused:
                accepted.append(call)
                self.used += 1
                if tool_of(call).pure:
                    self._seen.add(key)
        if accepted:
            self._latest = {name_call(call) for call in accepted}
            self._made |= self._latest
        return accepted

    def add(self, calls: Sequence[Call]) -> None:
        """Add calls that the loop makes in place of the model."""
        self.used += len(calls)
        self._seen |= {name_call(call) for call in calls}

    def take_refusal(self) -> str:
        """The answer to the first refused call of a turn of which no call was accepted; the turn is forgotten."""
        (_, text), *_ = filter(None, self._refused)
        self._refused = []
        return text

    def join(self, results: Sequence[tuple[Call, str]]) -> list[tuple[Call, str]]:
        """The results of a turn in the order of its calls; the refused ones have theirs already."""
        rest = iter(results)
        joined = [pair or next(rest) for pair in self._refused] if self._refused else list(results)
        self._refused = []
        self.results.update(" ".join(text.split()) for _, text in joined)
        return joined

    def forget(self, call: Call) -> None:
        """Let a call be made again."""
        self._seen.discard(name_call(call))

    def has_seen(self, call: Call) -> bool:
        return name_call(call) in self._seen

    def has_made(self, call: Call) -> bool:
        return name_call(call) in self._made

    def is_result(self, call: Call) -> bool:
        """Return whether the arguments of a call are a result that the model has read."""
        return len(call.arguments) == 1 and format_arguments(call.arguments) in self.results

    def are_copies(self, calls: Sequence[Call]) -> bool:
        """Return whether a turn merely copies the calls whose results the model has just read, or calls with a result
        as argument."""
        return bool(self.results) and all(name_call(call) in self._latest or self.is_result(call) for call in calls)

    def returned_again(self, call: Call, seen: CallResult) -> bool:
        """Return whether a repeatable call returned the same again, or failed again."""
        texts = [seen.observation.text, *(passage.text for passage in seen.observation.passages)] if seen.ok else []
        key, text = name_call(call), "\n".join(texts)
        again = self._returned.get(key) == text
        self._returned[key] = text
        return again
