"""The passages that a verifying model quotes: whether they hold what a claim names."""

from hira.evidence.copies import read_claim
from hira.evidence.passages import Passages, Word, read_words
from hira.evidence.sentence import Sentence, find_subject, read_keys


def holds_values(claim: str, quote: str, text: str, context: str) -> bool:
    """Return whether a quotation holds the names and numbers of a claim, with what its sentences lean on."""
    passages = Passages(text)
    above = read_keys(context)
    inside = set(above.union(word.key for word in read_words(quote, passages.grouping)))
    groups: list[set[str]] = []
    for place, sentence in enumerate(passages.sentences):
        ours, theirs = (" ".join(word.key for word in read_words(some)) for some in (quote, sentence))
        if not (ours and theirs) or not (ours in theirs or theirs in ours):
            continue
        read = Sentence(passages, place, above)
        if theirs in ours:
            inside |= read.keys | read.around
        else:
            groups.append(
                set(read.around | (read.keys if read.is_row else {word.key for word in find_subject(read.words)}))
            )
    words = read_claim(claim, passages)
    named = words[1:2] and words[1].kind == "name" and words[1].close
    named = named or (words[:1] and _is_name(words[0], passages))
    values = {
        word.key
        for place, word in enumerate(words)
        if word.kind == "number" or (word.kind == "name" and (place or named))
    }
    return any(values <= inside | group for group in groups or [set()])


def _is_name(word: Word, passages: Passages) -> bool:
    """Return whether the first word of a claim is always capitalised in the text, also within a sentence."""
    inside = [other for place in passages.postings.get(word.key, ()) for other in passages.words(place)[1:]]
    kinds = {other.kind for other in inside if other.key == word.key}
    return word.kind == "name" and kinds == {"name"}
