"""Results of programs and tools as evidence: they count for what they add to the program or the call."""

import ast
import builtins
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from hira.core.bm25 import STOP
from hira.core.patterns import compile_lazily
from hira.core.sources import Source
from hira.evidence.passages import Word, is_related, read_words
from hira.evidence.questions import read_question
from hira.evidence.sentence import is_time

_READING = frozenset(
    "open read_text read_bytes read_csv read_excel read_json read_parquet read_table loadtxt genfromtxt connect glob"
    " rglob iterdir listdir scandir walk urlopen run check_output Popen input".split()
)
"""Calls by which a program reads more than it was written with."""
_IN_MEMORY = frozenset(("StringIO", "BytesIO"))
_COMMON = frozenset((*map(str, range(13)), *"24 28 30 31 52 60 100 180 360 365 366 1000 1024 3600 86400".split()))
"""Numbers that a program may bring itself."""
_TOKEN = compile_lazily(r"\d+(?:[.,]\d+)*|[^\W\d_]{2,}")
_DIGIT = compile_lazily(r"\d")
_NON_DIGIT = compile_lazily(r"\D")
_PRECISION = 15
"""Digits of a number that are compared."""
_NUMBER = compile_lazily(r"(?<!\w)\d+(?:[.,]\d+)*")
_ARGUMENTS = compile_lazily(r"\((\{.*\})\)\s*\Z", re.DOTALL)
_PART = compile_lazily(r"[,;|](?=[\s\"'])|\n")


def find_fault(claim: str, quote: str, source: Source, question: str, read: Sequence[Source]) -> str:
    """Return why the result of a program or a tool does not confirm a claim whose words it has; empty if it does.

    `read` is everything that the run read: a program may be written with numbers and names of the question and of
    other sources.
    """
    if source.kind == "computation":
        known = _known(question, takewhile(lambda other: other.id != source.id, read))
        invented = is_echo(quote, source.call) or _is_invented(quote, source.call, known)
        return "a program only printed what it was written with" if invented else ""
    if source.kind == "tool":
        if not _adds_words(claim, source):
            return "a tool only repeated what it was called with"
        several = len(_NUMBER.findall(quote)) > 1
        words = read_words(claim) if several and _PART.search(quote) else []
        if words and _mixes_parts([*words, *read_question(question).wanted], words, quote, source.call):
            return "the number belongs to something else in the tool's result"
    return ""


def find_invented(text: str, question: str, read: Sequence[Source]) -> tuple[str, ...]:
    """Return the numbers and names of a text that neither its question nor anything that was read has.

    None of a text with a number that a program has computed: the rest may follow from it. A number may be rounded or in
    another unit of ten (0.153 and 15.3 percent). Times, abbreviations and units are no names, and neither is a single
    capitalised word that begins a sentence or follows an article.
    """
    known = _known(question, read)
    computed = known - _known(question, [source for source in read if source.kind != "computation"])
    words = read_words(text)
    numbers = [word.text for word in words if word.kind == "number" and _DIGIT.search(word.text)]
    if _find_rounded(numbers, computed):
        return ()
    founded = _find_rounded(numbers, known)
    named = known | _read_tokens("\n".join(f"{source.title}\n{source.location}" for source in read))
    names = [
        word.text for place, word in enumerate(words) if _is_unknown(word, named) and _is_name(words, place, named)
    ]
    return tuple(dict.fromkeys([*(number for number in numbers if number not in founded), *names]))


def _is_unknown(word: Word, known: set[str]) -> bool:
    """Return whether a word is written like a name, and unknown."""
    named = word.kind == "name" and word.text[0].isupper() and not word.text.isupper() and not is_time(word.text)
    return named and known.isdisjoint(_read_tokens(word.text))


def _is_name(words: Sequence[Word], place: int, known: set[str]) -> bool:
    """Return whether the capitalised word at a place is a name: with another such word after it, or alone within a
    sentence, where it is neither a unit nor a noun with an article."""
    word, following = words[place], words[place + 1 : place + 2]
    if any(after.close and _is_unknown(after, known) for after in following):
        return True
    unit = word.close and words[place - 1].kind == "number"
    return place > 0 and not (word.marked or word.determined or unit)


def _find_rounded(numbers: Sequence[str], known: Iterable[str]) -> set[str]:
    """Return those numbers whose digits are those of a known number, or of one that is rounded."""
    digits = {_read_digits(token) for token in known if token[0].isdigit()}
    values = {number: _read_digits(number) for number in numbers}
    rounded: dict[int, set[str]] = {len(value): set() for value in values.values()}
    for length, roundings in rounded.items():
        for value in digits:
            cut = value[:length]
            up = str(int(cut or "0") + 1) if value[length : length + 1] >= "5" else cut
            roundings |= {cut.rstrip("0"), up.rstrip("0")}
    return {number for number, value in values.items() if value in rounded[len(value)]}


def _read_digits(number: str) -> str:
    """Return the significant digits of a number, at most `_PRECISION`: "0.0150" has 15."""
    return _NON_DIGIT.sub("", number).strip("0")[:_PRECISION].rstrip("0")


def find_other_subject(claim: str, question: str, source: Source) -> tuple[str, ...]:
    """Return the words of a question that neither a claim nor the tool's call and result have, if the call is about
    something that question and claim do not name: the stock of chairs does not tell that of lamps."""
    said = f"{claim}\n{source.evidence}\n{source.call}"
    if _read_tokens(question) <= STOP | _read_tokens(said):
        return ()
    asked = read_question(question)
    about = [word for text in _list_arguments(source.call) for word in read_words(text) if word.kind != "number"]
    named = {word.key for word in (*asked.words, *read_words(claim))}
    if not about or any(is_related(word.key, named) for word in about):
        return ()
    keys = {word.key for word in read_words(said)}
    return tuple(word.text for word in asked.wanted if not is_related(word.key, keys))


def is_echo(line: str, program: str) -> bool:
    """Return whether a line of output only repeats literal strings and numbers of the program.

    A choice of the program is not an echo: an element of a collection, or a line of a text, if it did not print the
    others.
    """
    nodes = _parse(program)
    written = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float)]
    groups = [str(node.value).splitlines() for node in written]
    literals = {text.strip() for group in groups for text in group}
    groups = [group for group in groups if len(group) > 1]
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            groups.append([str(leaf.value) for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)])
    chosen = {text for group in groups if any(text not in line for text in group) for text in group}
    for text in sorted(literals - chosen, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", " ", line) if text else line
    return bool(nodes) and not re.search(r"\w", line)


def _parse(program: str) -> list[ast.AST]:
    try:
        return list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _read_tokens(text: str) -> set[str]:
    """Return the numbers and words of a text, without the commas of numbers and without case."""
    return {token.replace(",", "").casefold() for token in _TOKEN.findall(text)}


def _known(question: str, read: Iterable[Source]) -> set[str]:
    """Return the numbers and words of the question and of sources, in the order in which they were read."""
    known = _read_tokens(question)
    for other in read:
        if other.kind != "computation" or not _is_invented(other.evidence, other.call, known):
            known |= _read_tokens(other.evidence)
    return known


def _is_invented(line: str, program: str, known: set[str]) -> bool:
    """Return whether a program that reads nothing prints a text or a number that neither the question nor a source
    has, or computes it from such numbers alone."""
    nodes = _parse(program)
    if not nodes or _takes_more(nodes):
        return False
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    literals = _read_tokens(" ".join(str(value) for value in constants if isinstance(value, str | int | float)))
    printed = _read_tokens(line)
    own = literals - known - _COMMON
    computed = printed - literals - known
    if not any(token[0].isdigit() for token in computed) and not own.isdisjoint(printed):
        return True
    numbers = {token for token in literals if token[0].isdigit()}
    material = own & numbers or own - numbers
    return bool(computed and material - printed) and known.isdisjoint(numbers if own & numbers else literals)


def _takes_more(nodes: Sequence[ast.AST]) -> bool:
    """Return whether a program reads files, or uses a name that another program has defined."""
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.alias):
            stored.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            stored.add(node.name)
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    reads = not _READING.isdisjoint(names | attributes) and _IN_MEMORY.isdisjoint(names | attributes)
    return reads or not names <= stored | set(dir(builtins))


def _list_arguments(call: str) -> Iterator[str]:
    """Yield the texts among the arguments of a tool's calls."""
    for written in call.split("\n\n"):
        found = _ARGUMENTS.search(written)
        try:
            waiting = [json.loads(found[1])] if found else []
        except ValueError:
            continue
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value


def _adds_words(claim: str, source: Source) -> bool:
    """Return whether a tool's result has a word of a claim apart from the arguments that it repeats."""
    evidence = rest = source.evidence
    for text in sorted(filter(str.strip, _list_arguments(source.call)), key=len, reverse=True):
        rest = re.sub(re.escape(text.strip()), " ", rest, flags=re.IGNORECASE)
    same = rest == evidence or not _read_tokens(rest).isdisjoint(_read_tokens(claim) - STOP)
    return same or not {word.key for word in read_words(rest)}.isdisjoint(word.key for word in read_words(claim))


def _mixes_parts(asked: Sequence[Word], claim: Sequence[Word], quote: str, call: str) -> bool:
    """Return whether a number of a claim is in a part of a result about something else, and the words of question
    and claim in another part: "born 1950, died 2011" does not say that somebody was born in 2011."""
    parts = [read_words(part) for part in _PART.split(quote)]
    keys = {word.key for word in asked}
    called = {word.key for word in read_words(call)}
    for number in (word.key for word in claim if word.kind == "number"):
        holding = [part for part in parts if any(word.key == number for word in part)]
        if holding and all(_is_about_other(part, parts, keys, called) for part in holding):
            return True
    return False


def _is_about_other(part: Sequence[Word], parts: Sequence[Sequence[Word]], keys: set[str], called: set[str]) -> bool:
    ours = {word.key for word in part}
    after_number = {word.key for place, word in enumerate(part) if place and part[place - 1].kind == "number"}
    strange = {word.key for word in part if word.kind != "number" and not word.light} - keys - called - after_number
    elsewhere = {word.key for other in parts if other is not part for word in other if word.kind != "number"}
    return bool(strange) and any(is_related(key, elsewhere - ours) for key in keys - called - ours)
