"""Why an answer is not accepted, and what would help."""

from collections.abc import Sequence

from hira.cli.shell import QUOTED, brief
from hira.core.errors import HiraError
from hira.evidence import Relevance, Source, find_unconfirmed, is_accepted
from hira.evidence.citations import SourcedClaim
from hira.evidence.lexical_verifier import LexicalVerifier
from hira.runtime.answer import Answer

CLOSE = 1 / 3
"""The share of a question's words, rare ones weighing more, that the sentence shown with a refusal has."""


def what_is_missing(answer: Answer, *, searched: bool) -> HiraError:
    """Explain why an answer is not accepted, and what would help: a search only if the user has not `searched`."""
    by_source = {citation.source: citation for citation in answer.citations if citation.verdict.denies}
    where = ""
    unchecked = any(not citation.verdict.rank for citation in answer.citations)
    if answer.rollout.workflow == "direct":
        why = "nothing was read"
        fix = "this workflow reads no sources; use one that does, such as --workflow hira"
    elif any(finding.expert == "multimodal" for finding in answer.rollout.findings):
        why, fix = "no source supports it", "name a model that can see and hear (--model), or ask more precisely"
    elif not answer.sources:
        elsewhere = "name documents (--docs) or a web search (--search)"
        named = "ask in other words, in the language of the documents, or search elsewhere" if searched else elsewhere
        repair = "repair what could not be read, or " if answer.rollout.unread else ""
        why, fix = "nothing was read that could support it", f"{repair}{named}"
    elif by_source:
        why = f"{', '.join(f'[{source}]' for source in by_source)} contradicts a claim in the answer"
        fix = "compare the marked claims with their sources"
    elif unchecked:
        why, fix = "its claims could not be checked", "see the notices above; --verify lexical needs no model"
    elif answer.status == "insufficient_evidence":
        why = "" if answer.text else "what was read does not hold the answer"  # else the answer says so
        where = find_closest(answer.rollout.question, answer.sources)
        more = "other documents or a web search that hold" if searched else "documents (--docs) that hold"
        fix = f"name {more} it, or ask more precisely"
    elif answer.rollout.lacking and is_accepted(answer.citations):
        why = f"no supported claim mentions: {', '.join(answer.rollout.lacking)}"
        fix = "read the quoted sources, or ask in their words"
    elif answer.rollout.answers in (Relevance.PARTLY, Relevance.NO) and is_accepted(answer.citations):
        part = answer.rollout.answers is Relevance.PARTLY
        why = "it answers only a part of the question" if part else "it does not answer the question"
        fix = "ask more precisely, or one thing at a time"
    else:
        claim = find_unconfirmed(answer.citations)
        alone = len({citation.claim for citation in answer.citations}) == 1
        named = "it" if alone or not claim else f"“{brief(claim.claim, QUOTED)}”"
        why = f"the check did not find {named} in a source" if claim else "it makes no claim to check"
        fix = "compare the marked claims with the sources, or ask more precisely"
    outcome = "not enough evidence" if answer.status == "insufficient_evidence" else "the answer is not verified"
    if unread := answer.rollout.unread:
        more = f" (and {len(unread) - 1} more: hira doctor --docs PATH lists them)" if len(unread) > 1 else ""
        where = "; ".join(filter(None, [f"not read: {brief(unread[0], QUOTED)}{more}", where]))
    return HiraError(f"{outcome}: {why}" if why else outcome, where=where, fix=fix)


def find_closest(question: str, sources: Sequence[Source]) -> str:
    """Return the sentence of current sources with most words of the question, if a third of their weight; else ""."""
    current = [source for source in sources if not source.newer] or sources
    (judged,) = LexicalVerifier().judge([SourcedClaim(question, tuple(current))])
    if judged.score < CLOSE or not judged.quote:
        return ""
    source = next(source for source in sources if source.id == judged.source)
    place = f", {place}" if (place := source.find_place(judged.quote)) else ""
    return f"closest: “{brief(judged.quote, QUOTED)}” ({source.location}{place})"
