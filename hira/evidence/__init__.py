"""Answers bound to evidence: what was really read, and whether a cited passage says what the answer claims.

A model never writes a URL. It cites `[s3]`; the id is resolved here and the claim is held against the stored text.
"""

from hira.evidence.check import Citation, Verdict, accepted, check, doubts, shortened, verify
from hira.evidence.marks import CITED, cited, claims, drop_unknown, inert, uncited, unmarked
from hira.evidence.source import OUTPUT, Kind, Source, Sources, told

__all__ = [
    "CITED",
    "OUTPUT",
    "Citation",
    "Kind",
    "Source",
    "Sources",
    "Verdict",
    "accepted",
    "check",
    "cited",
    "claims",
    "doubts",
    "drop_unknown",
    "inert",
    "shortened",
    "told",
    "uncited",
    "unmarked",
    "verify",
]
