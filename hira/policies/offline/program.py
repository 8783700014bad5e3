"""A role's way through its work as a generator: it yields calls, is sent what they brought, and returns its last word.

The policy keeps nothing between requests. It runs the generator from its start and feeds it what the conversation
holds; the first calls that have no result yet are what the role does next.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import TypeVar

from hira.policies.offline.conversation import Act, Asked, spelled

Calls = Sequence[tuple[str, Mapping[str, str]]]
Program = Generator[Calls, list[str], str]
T = TypeVar("T")


def advance(program: Program, asked: Asked, saying: str, *, several: int = 1, limit: int = 10) -> Act:
    """What the role does next: at most `several` new calls, or its last word.

    Calls beyond the `limit`, or when no further call can be made, bring nothing, and the role closes with what it has.
    """
    try:
        calls = next(program)
        while True:
            brought = [asked.brought.get((name, spelled(arguments))) for name, arguments in calls]
            todo = [call for call, text in zip(calls, brought, strict=True) if text is None]
            todo = todo[: max(0, min(several, limit - len(asked.brought)))]
            if todo and not asked.concluding:
                return Act(saying, tuple(todo))
            calls = program.send([text or "" for text in brought])
    except StopIteration as end:
        return Act(str(end.value))
