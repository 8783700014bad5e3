"""What is indexed beside a text, and how a question becomes an FTS5 query.

FTS5 finds words by the spaces around them. Chinese, Japanese and Korean are therefore also indexed as pairs of
characters, and numbers also without the commas inside them.
"""

import re
import unicodedata
from collections.abc import Iterator

from hira.core.bm25 import words
from hira.tools.documents.passages import CJK

_TOKEN = re.compile(r"[^\W_]+(?:[-'’.,/][^\W_]+)*")
_RUN = re.compile(f"(?:{CJK.pattern})+")
_GROUPED = re.compile(r"\d{1,3}(?:[,'’]\d{3})+")
_TERMS = 64


def beside(text: str) -> str:
    """The extra words to index for a text, "" for most."""
    extra = [re.sub(r"\D", "", number) for number in _GROUPED.findall(text)]
    if CJK.search(text):
        for match in re.finditer(r"[^\W_]+", unicodedata.normalize("NFKC", text)):
            if CJK.search(match[0]):
                extra += _pieces(match[0])
    return " ".join(extra)


def _pieces(word: str) -> Iterator[str]:
    """The pairs of characters of a word, the last character alone, and what stands between the scripts."""
    at = 0
    for run in _RUN.finditer(word):
        if run.start() > at:
            yield word[at : run.start()]
        yield from (run[0][first : first + 2] for first in range(len(run[0])))
        at = run.end()
    if at < len(word):
        yield word[at:]


def query_of(question: str) -> str:
    """The question as an FTS5 query: its content words, any of them. "" if it holds no word.

    Every word stands in quotes, so nothing in a question is read as an operator.
    """
    text = unicodedata.normalize("NFKC", question).replace("\0", " ")
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    content = [token for token in tokens if words(token)] or tokens
    terms = list(dict.fromkeys(term for token in content for term in _terms(token)))
    return " OR ".join(terms[:_TERMS])


def _terms(token: str) -> Iterator[str]:
    parts = re.split(r"[-'’.,/]", token)
    if len(parts) > 1:
        yield _quoted(token)
        if _GROUPED.fullmatch(token):
            yield _quoted("".join(parts))
            return
        parts = [part for part in parts if len(part) > 1 and words(part)]
    for part in parts:
        if not CJK.search(part):
            yield _quoted(part)
            continue
        for piece in _pieces(part):
            if len(piece) > 1:
                yield _quoted(piece)
            elif len(part) == 1:
                yield f"{_quoted(piece)} *"


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
