"""The verifier that needs no model: exact quotation, then the words of each source, then a second source for a hop."""

import ast
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from hira.core.bm25 import words
from hira.core.sources import Source
from hira.core.worker import run_apart
from hira.evidence.citations import VERDICTS, Judgement, PackedClaims, SourcedClaim, pack_claims, unpack_claims
from hira.evidence.lexical import BARE, score_claim
from hira.evidence.passages import Passages

LEXICAL_SECONDS = 30.0
"""Far more than the check of an answer takes; only a hostile source needs that long."""
LONGEST_QUOTE = 1_000
_LOOSE = re.IGNORECASE | re.MULTILINE
_NAME = re.compile(r"(?<!\w)[A-Z][\w'’-]+")
_log = logging.getLogger("hira.evidence")


class LexicalVerifier:
    """Compares words, numbers and names, without blocking the event loop. Claims after `seconds` are `unchecked`."""

    name = "lexical"

    def __init__(self, seconds: float = LEXICAL_SECONDS) -> None:
        self.seconds = seconds

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        packed = pack_claims(claims)
        return await run_apart(packed.size, judge_packed, packed, question, self.seconds)

    def judge(self, claims: Sequence[SourcedClaim], question: str = "") -> list[Judgement]:
        """Do the same as `verify`, in synchronous code."""
        until = time.monotonic() + self.seconds
        texts: dict[str, _Text] = {}
        found: list[Judgement] = []
        for claim in claims:
            if time.monotonic() > until:
                found.append(Judgement("unchecked", reason=f"the check took more than {self.seconds:g} seconds"))
                continue
            read = [texts.setdefault(one.id, _Text(one)) for one in claim.sources]
            try:
                found.append(_best(claim, read, question))
            except Exception as error:  # noqa: BLE001 - no source may cost the answer
                _log.info("the check of a claim failed", exc_info=True)
                found.append(Judgement("unchecked", reason=f"the check failed: {type(error).__name__}: {error}"))
        return found


def judge_packed(packed: PackedClaims, question: str, seconds: float) -> list[Judgement]:
    """Call `LexicalVerifier.judge` with claims from another process."""
    return LexicalVerifier(seconds).judge(unpack_claims(packed), question)


class _Text:
    """A source, split and indexed at its first use."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def passages(self) -> Passages:
        return Passages(self.source.evidence)

    @property
    def context(self) -> str:
        return f"{self.source.title}\n{self.source.call}"


def _best(claim: SourcedClaim, read: Sequence[_Text], question: str) -> Judgement:
    """Return the judgement of the most informative source, or of all cited sources together."""
    best = Judgement("unsupported")
    for one in read:
        judged = _judge(claim.text, one.passages, one.source, question, one.context)
        if not best.source or _rank(judged) > _rank(best):
            best = judged
        if _rank(best) == BEST:
            break
    if best.verdict != "supported" and len(words(claim.text)) <= BARE:
        hops = ((one, hop) for one in read if (hop := find_hop(claim, question, one)))
        joined = (_judge(claim.text, one.passages, one.source, question, f"{one.context}\n{hop}") for one, hop in hops)
        best = next((one for one in joined if one.verdict == "supported"), best)
    if best.verdict == "unsupported" and len(read) > 1 and not claim.attributed:
        every = Passages("\n\n".join(one.source.evidence for one in read))
        together = _judge(
            claim.text, every, replace(read[0].source, id=""), question, "\n".join(one.context for one in read)
        )
        best = together if together.verdict == "supported" else best
    return best


def _rank(one: Judgement) -> tuple[int, float]:
    return VERDICTS.index(one.verdict), one.score


BEST = _rank(Judgement("supported", 1.0))
"""The rank of a judgement that no other source can improve."""


def find_hop(claim: SourcedClaim, question: str, text: "_Text") -> str:
    """Return the sentence of another source that links a bare answer to its question, or "".

    "Which river flows through the town where Adela was born?" is answered by "Melby lies on the Havel" if another
    source says "Adela was born in Melby": that sentence has the name of the question that this source lacks, and shares
    a name with the sentence that answers.
    """
    asked = find_names(question)
    missing = {name for name in asked if name not in text.source.evidence}
    wanted = set(words(claim.text))
    own = {name for one in text.passages.sentences if wanted <= set(words(one)) for name in find_names(one)} - asked
    for other in claim.read if missing and own else ():
        if other.id != text.source.id and all(name in f"{other.title} {other.evidence}" for name in missing):
            for sentence in Passages(other.evidence).sentences:
                if missing <= (names := find_names(f"{other.title} {sentence}")) and own & names:
                    return sentence
    return ""


def find_names(text: str) -> set[str]:
    """Return the capitalised words that carry meaning."""
    return {name for name in _NAME.findall(text) if words(name)}


def _judge(claim: str, passages: Passages, source: Source, question: str, context: str) -> Judgement:
    if quote := find_quote(claim, source.evidence):
        return _unless_echo(Judgement("supported", 1.0, quote, source.id, "quote"), source)
    if source.call:  # made for the question: a bare figure in its result answers it
        question, context = "", f"{context}\n{question}"
    judged = score_claim(claim, passages, question=question, context=context)
    return _unless_echo(replace(judged, source=source.id), source)


def _unless_echo(one: Judgement, source: Source) -> Judgement:
    if one.verdict == "supported" and source.kind == "computation" and is_echo(one.quote, source.call):
        return replace(one, verdict="unchecked", score=0.0, reason="a program only printed what it was written with")
    return one


def is_echo(line: str, program: str) -> bool:
    """Return whether a line of output only repeats literal strings and numbers of the program.

    A choice of the program is not an echo: an element of a collection, or a line of a text, if it did not print the
    others.
    """
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    written = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float)]
    groups = [str(one.value).splitlines() for one in written]
    literals = {text.strip() for group in groups for text in group}
    groups = [group for group in groups if len(group) > 1]
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            groups.append([str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)])
    chosen = {text for group in groups if any(text not in line for text in group) for text in group}
    for text in sorted(literals - chosen, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", " ", line) if text else line
    return not re.search(r"\w", line)


def find_quote(claim: str, text: str) -> str:
    """Return the claim as the text quotes it, between two punctuation marks; empty if it does not.

    A name alone is not a statement: as a heading it would support any answer.
    """
    if max(len(words(claim)), len(claim.split())) <= BARE or len(claim) > LONGEST_QUOTE:
        return ""
    spelled = r"\s+".join(map(re.escape, claim.split()))
    found = re.search(
        rf"(?:^|[.!?:;,…。！？：；，\"“(*>|-])[^\S\n]*({spelled}(?=\s*(?:$|[.!?:;,…。！？：；，\"”)*|]))[.!?。！？]?)",
        text,
        _LOOSE,
    )
    return found[1] if found else ""


def flat(text: str) -> str:
    """Return a text in the form in which quotations are compared: lower case, straight quotes and single spaces."""
    return " ".join(text.translate(_STRAIGHT).casefold().split())


_STRAIGHT = str.maketrans("’‘“”„«»–—", '\'\'"""""--')
