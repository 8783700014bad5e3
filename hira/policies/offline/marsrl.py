"""The roles of MarsRL, as the offline policy plays them: arithmetic, and what the documents say that are shown."""

import re
from collections.abc import Callable, Iterator, Mapping

from hira.dialects.answer import final
from hira.evidence import Source, check, cited
from hira.policies.offline import computing
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.pairs import claims
from hira.policies.offline.passages import Passage, passages_of
from hira.policies.offline.roles import boxed, failed, question_of
from hira.policies.offline.shown import solved

CORRECT, INCORRECT = "Verdict: correct", "Verdict: incorrect"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def solver(asked: Asked) -> Act:
    return Act(boxed(_solved(asked)))


def corrector(asked: Asked) -> Act:
    """Whatever was wrong, there is one way to the answer here, and it is gone once more."""
    return solver(asked)


def verifier(asked: Asked) -> Act:
    errors = list(_errors(asked))
    return Act("\n".join([*errors, "", INCORRECT]) if errors else f"No error was found.\n\n{CORRECT}")


def _solved(asked: Asked) -> str:
    return solved(asked, passages_of(asked.value("documents")))


def _errors(asked: Asked) -> Iterator[str]:
    """What is wrong with the solution, one line each."""
    question, answer, own = question_of(asked.value("question")), final(asked.value("solution")), _solved(asked)
    if computing.expression(question):
        if _NUMBER.findall(answer)[-1:] != _NUMBER.findall(own)[-1:]:
            yield f"The result is wrong: {own}"
        return
    read = {one.id: one for one in passages_of(asked.value("documents"))}
    yield from _unsupported(answer, question, read)
    if not cited(answer) and cited(own):
        yield f"The documents hold the answer: {own}"
    elif not cited(answer) and answer != own and not failed(answer):
        yield "No document was cited for it, and none that was shown says it."


def _unsupported(answer: str, question: str, read: Mapping[str, Passage]) -> Iterator[str]:
    for claim, ids in claims(answer):
        sources = [Source(read[one].location, read[one].title, read[one].text, id=one) for one in ids if one in read]
        if not any(check(claim, source, question).verdict == "supported" for source in sources):
            yield f"“{claim}” does not stand in [{', '.join(ids)}]."


ROLES: Mapping[str, Callable[[Asked], Act]] = {
    "marsrl_solver": solver,
    "marsrl_verifier": verifier,
    "marsrl_corrector": corrector,
}
