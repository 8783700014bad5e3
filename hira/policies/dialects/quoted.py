"""Tells a call that a model makes from one that it quotes, so that no text which a run reads comes back as a call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from hira.core.messages import assistant
from hira.core.policy import Completion
from hira.core.sanitize import clean
from hira.policies.dialects.answer import strip_thought
from hira.policies.dialects.protocol import Call, Parsed

_QUOTATIONS = 20
"""Quoted calls of one reply; in a reply with more of them, nothing is a call."""
IsQuoted = Callable[[Call | None, str, bool], bool]
"""Returns whether a call is quoted, or a faulty one (None): by its passage, and whether its form is loose."""


def parse_made(
    parse: Callable[[Completion], Parsed], parsed: Parsed, completion: Completion, is_quoted: IsQuoted
) -> tuple[Parsed, tuple[Call, ...]]:
    """Return a `parsed` reply so that calls which it only quotes stay part of its text; also return these calls. Marks
    replace the quotations while the rest is parsed again, because a call that the model makes may follow."""
    passages, quoted = list[str](), list[Call]()
    while new := [pair for pair in _read_from_text(parsed, completion) if is_quoted(*pair, parsed.loose)]:
        quoted += [call for call, _ in new if call]
        rest = completion
        for passage in dict.fromkeys(passage for _, passage in new):
            mark = f"\ue000{len(passages)}\ue001"
            passages.append(passage)
            rest = replace(rest, text=rest.text.replace(passage, mark), reasoning=rest.reasoning.replace(passage, mark))
        if rest == completion or len(passages) > _QUOTATIONS:
            text = _restore(strip_thought(rest), passages)
            return Parsed(text.strip(), (), assistant(text)), tuple(quoted)
        completion = rest
        parsed = parse(completion)
    if passages:
        message = replace(parsed.message, text=_restore(parsed.message.text, passages))
        parsed = replace(parsed, text=_restore(parsed.text, passages), message=message)
    return parsed, tuple(quoted)


def _read_from_text(parsed: Parsed, completion: Completion) -> Iterator[tuple[Call | None, str]]:
    """Yield the calls that were read from text, or None for a faulty one, each with its passage; what follows the text,
    if a dialect does not report the passages."""
    calls: Sequence[Call | None] = parsed.calls or (None,)
    if parsed.passages:
        yield from zip(calls, parsed.passages, strict=False)
    elif parsed.calls and not completion.calls:
        written = completion.text or completion.reasoning
        rest = written.partition(parsed.text)[2] if parsed.text else written
        yield from ((call, rest) for call in parsed.calls)


def _restore(text: str, quoted: Sequence[str]) -> str:
    """Return a text with its quotations in their places, without tokens of dialects."""
    for index, passage in enumerate(quoted):
        text = text.replace(f"\ue000{index}\ue001", clean(passage))
    return text
