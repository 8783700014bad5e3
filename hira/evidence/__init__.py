"""Answers bound to evidence: the sources of a run, the claims of its answer, and the judgements of a verifier.

A model never writes a URL. It cites `[s1]`; the id is resolved here and the claim is compared with the stored text.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hira.core.sources import OUTPUT, Kind, Source, Sources, join_question_and_answer
from hira.evidence.citations import (
    CITED,
    Citation,
    Judgement,
    SourcedClaim,
    drop_unknown,
    find_cited,
    has_only_marks,
    inert,
    remove_marks,
)
from hira.evidence.claims import Claim, claims, flag_claims, is_refusal
from hira.evidence.verdicts import Relevance, Verdict
from hira.evidence.verifiers import (
    Verifier,
    check,
    citations_of,
    find_lacking,
    find_unconfirmed,
    is_accepted,
    verify,
    verify_answer,
)

if TYPE_CHECKING:
    from hira.evidence.lexical_verifier import LexicalVerifier

__all__ = [
    "CITED",
    "OUTPUT",
    "Citation",
    "Claim",
    "Judgement",
    "Kind",
    "LexicalVerifier",
    "Relevance",
    "Source",
    "SourcedClaim",
    "Sources",
    "Verdict",
    "Verifier",
    "check",
    "citations_of",
    "claims",
    "drop_unknown",
    "find_cited",
    "find_lacking",
    "find_unconfirmed",
    "flag_claims",
    "has_only_marks",
    "inert",
    "is_accepted",
    "is_refusal",
    "join_question_and_answer",
    "remove_marks",
    "verify",
    "verify_answer",
]


def __getattr__(name: str) -> Any:
    if name != "LexicalVerifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.lexical_verifier"), name)  # the answer comes first
