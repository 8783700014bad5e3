"""Copies of sentences: their words in the same order, bound by the same light words.

A copy may leave words out, but none that carries another: no head of a compound, no second part of an "and", no other
value in the same place. It has neither a negation nor a condition more or less.
"""

from collections.abc import Iterator, Sequence

from hira.core.patterns import compile_lazily
from hira.evidence.passages import JOINS, LIMITING, MONTHS, VOIDING, Word, fold, is_taking_back
from hira.evidence.sentence import (
    ANY_LINK,
    VOIDING_ABOVE,
    Sentence,
    find_subject,
    is_condition,
    is_past,
    is_time,
    read_keys,
)

LONGEST_LABEL = 120
"""The characters in which the end of a label is looked for."""
REPEATED = 8
"""The number of places of one word in a sentence that are tried."""
_ALL = frozenset(
    "all every each any no none nothing nobody everyone everything everybody anyone anything daily".split()
)
_EXCEPTING = frozenset("except excluding exception exceptions ausgenommen 除外".split())
_PROVIDED = compile_lazily(r"(?i)\b(?:provided|providing|assuming|supposing) that\b")
_UNSAID = compile_lazily(
    r"(?i:\b(?:am|is|are|was|were|be|been)\s+(?:\w+ly\s+)?(?:(?:(?:about|going|supposed|meant|set|due|said|believed"
    r"|thought|claimed|reported|rumou?red|alleged|presumed|assumed|scheduled)\s+)?to\s+"
    r"(?!(?:an?|the|its?|his|her|their)\b)[a-z]|(?:scheduled|planned)\s+for\b"
    r"|(?:\w+\s+)?(?:planning|considering|hoping|intending)\b))"
    r"|\b(?:sag|behaupte|glaub|mein|vermute|erklär|berichte|schreib|schrieb)(?:t|te|ten|en)?,\s"
    r"|\b(?:plan|intend|hope)s? to\b|\bI (?:guess|think|believe|suppose|assume)\b|\b[Aa]ccording to\b"
)
"""Words of what has not happened yet, and of what another says or thinks."""
_QUOTE = compile_lazily(r"[“”„«»]|(?<!\w)['‘]|['’](?!\w)")
_QUOTED = compile_lazily(r'[:,]\s*"[^"]*(?:\Z|(?<=[.,!?…])")|\A"[^"]*(?:\Z|(?<=[,!?])"\s|",\s)')
"""A quotation of a statement, after a colon or a comma or before who says it; a name in quotation marks (`an inn, "The
Ship"`) does not end like a sentence."""
_SPEAKING = compile_lazily(
    r"(?i)\W*(?:(?:an?|one|some|ein|eine)\s[^:]*|[^:]*\b(?:said|says?|wrote|writes?|told|tells?|claim(?:ed|s)?|argue[ds]?"
    r"|sagte?|schrieb|schreibt|meinte?|behauptete?)(?:\s[^:]*)?|claim|opinion|rumou?r|behauptung|meinung)[:：]"
)
"""A label that names who says what follows: "A visitor said: …", "One reviewer: …"."""
_RESTRICTING = frozenset("for within after before until from with without".split())
"""Links of what a statement about the present holds for: "free for children", "allowed after 14 days"."""
_GENERAL = frozenset(
    "limited restricted allowed permitted forbidden prohibited banned required needed possible available free".split()
)
"""Words of a rule, which holds only where it says."""
NUMBERING = frozenset(
    "first second third fourth other last next previous deputy acting former erste zweite dritte letzte nächste"
    " stellvertretende ehemalige frühere künftige".split()
)
"""Words before a name that make it another one: "every second Tuesday"."""
_BEFORE_CLAUSE = ("and", "but", "as", "because", "since", "while", "whereas", "although", "though")
"""Links after a comma that begin a clause that is a statement."""
_ENDING = VOIDING | frozenset("acquitted overturned revoked annulled scrapped abandoned reversed".split())
"""Words of a later part of a sentence that undo what its first part says."""
_FUTURE = frozenset(("will", "wird", "werden"))
_WHEN = frozenset(("after", "before", "since", "until"))
_ADDING = frozenset("fact addition result consequence contrast total moment conclusion turn return".split())
"""Words of a phrase before a statement that adds nothing to it: "In fact, …"."""
OWNING = ("'s", "’s")
_LABELLED_BY = frozenset(("", "be", "in", "be in", ANY_LINK))
"""The links between a label and its value in a sentence: "was founded in 2019", "the price is 48 euros"."""
YEAR = compile_lazily(r"(?:1[5-9]|20)\d\d\Z")


def is_copy(claim: Sequence[Word], sentence: Sentence, *, in_order: bool = False) -> bool:
    """Return whether a sentence says the claim in the claim's words, `in_order` only if it has them in this order."""
    every = {word.key for word in claim if word.every}
    alone = any(word.key in every and word.determined and not word.every for word in sentence.words)  # "the tower"
    if alone or sentence.is_denied or _was_so_once(claim, sentence):
        return False
    ours, theirs = (
        [(word.key, word.link, place > 0 and word.marked and sentence.is_row) for place, word in enumerate(some)]
        for some in (claim, sentence.words)
    )
    if ours == theirs and not sentence.conditions:
        return True
    if _PROVIDED.search(sentence.text) and not any(_PROVIDED.match(f"{word.text} that") for word in claim):
        return False
    keys = {word.key for word in claim}
    unsaid = [word for word in sentence.label if word.key not in keys]  # "Cancelled: the fair", "Prices from July: …"
    voided = any(
        word.text.lower() in VOIDING_ABOVE or not {"from", "until"}.isdisjoint(word.link.split()) for word in unsaid
    )
    label = sentence.text[:LONGEST_LABEL].replace("：", ":").partition(":")
    speaks = _SPEAKING.match("".join(label[:2])) if label[1] else None
    voided = voided or (speaks is not None and not read_keys(speaks[0]) <= keys)
    voided = voided or not sentence.find_foreign(keys).isdisjoint(keys)
    says_label = sentence.label and not unsaid  # `Otto said: "…"`
    quoted = not says_label and _QUOTED.search(_QUOTE.sub('"', sentence.text))
    thought = _UNSAID.search(sentence.text)  # a claim may have these words: "Ida plans to build a mill"
    if voided or quoted or (thought and not read_keys(thought[0]) <= keys):
        return False
    if sentence.is_row or sentence.record is not None:
        from hira.evidence.rows import is_copied_record

        return is_copied_record(claim, sentence)
    orders = [claim] if in_order else _list_orders(claim, sentence)
    return any(_Alignment(words, sentence).exists() for words in orders)


def _list_orders(claim: Sequence[Word], sentence: Sentence) -> Iterator[Sequence[Word]]:
    yield claim
    if len(claim) > 1:
        from hira.evidence.orders import list_orders, put_label_first  # few claims need another order

        yield from list_orders(claim)
        yield from put_label_first(claim, sentence)


def _was_so_once(claim: Sequence[Word], sentence: Sentence) -> bool:
    """Return whether a claim about the present is about the past in the sentence: "Ida was director", "coached"."""
    ours, theirs = ({word.tense for word in words if word.tense} for words in (claim, sentence.words))
    if ours == {"present"} and theirs == {"past"}:
        return True
    pairs = ((word, sentence.words[place]) for word in claim for place in sentence.positions.get(word.key, ()))
    for word, there in pairs:
        acts = word.kind == "word" and word.text.endswith("s") and word.text[-2:] != "ss"
        is_done = word.tense == "present" and there.close and not sentence.is_row  # "is owned by Ida": she "owned" it
        if (acts or is_done) and is_past(there.text):
            return True
    return False


class _Alignment:
    """The ways to find the words of a claim in a sentence, in order."""

    def __init__(self, claim: Sequence[Word], sentence: Sentence) -> None:
        self.claim, self.sentence, self.words = claim, sentence, sentence.words
        label = {word.key for word in sentence.label}
        self.value_start = sentence.value_start if label <= {word.key for word in claim} else 0

    def exists(self) -> bool:
        """Step from each word of the claim to the next; a state is the last matched position and whether words of what
        the sentence leans on follow it."""
        states: set[tuple[int, bool]] = {(-1, False)}
        positions = self.sentence.positions
        leans = any(word.key not in positions for word in self.claim)
        least = self.sentence.value_start if leans else 0  # of "Teacher: Ida" under "Otto" no one says that he is one
        for number, word in enumerate(self.claim):
            after = {
                (place, False)
                for before, leaning in states
                for place in positions.get(word.key, ())[:REPEATED]
                if place > before and self._follows(number, before, place, leaning=leaning)
            }
            after |= {(before, True) for before, leaning in states if self._leans(number, before)}
            states = after
            if not states:
                return False
        return any(place >= least and not leaning and self._ends(place) for place, leaning in states)

    def _leans(self, number: int, before: int) -> bool:
        """Return whether a word of the claim may replace what the sentence leans on: its subject, or a heading."""
        word = self.claim[number]
        if before < 0:
            if word.key not in self.sentence.leads or (word.kind == "number" and word.key in self.sentence.keys):
                return False
            # the claim has the head of what the pronoun means, "weir" of "the weir on the Ebble"
            subject = find_subject(self.sentence.antecedent)
            end = next((place for place, word in enumerate(subject) if place and word.link), len(subject))
            heads = [word for word in subject[:end] if word.kind == "name"] or subject[:end][-1:]
            return not heads or any(word.key in {claimed.key for claimed in self.claim} for word in heads)
        known = word.key in self.sentence.topic or word.key in self.sentence.subject
        elsewhere = word.key not in self.sentence.keys and number + 1 < len(self.claim)
        return known and elsewhere and word.link in ("", "of", "in", ANY_LINK)

    def _follows(self, number: int, before: int, place: int, *, leaning: bool) -> bool:
        """Return whether the claim's word may be the one at `place`, if the word before it is the one at `before`."""
        claimed = self.claim[number]
        skipped = self.words[before + 1 : place]
        if self.words[place].text.endswith(OWNING) and not claimed.text.endswith(OWNING):
            return False  # "Ida's father" is not Ida
        if before < 0:
            return self._begins(claimed, place, leaning=leaning)
        if self._begins_relative(claimed, before, place) or self._is_second_value(number, before, place):
            return not leaning and _has_limits_of(claimed, self.words[place])
        phrase = self._find_phrase(place, before)
        word = self.words[phrase]
        labelled = 0 < self.value_start <= phrase and word.marked and not word.link
        if labelled:  # the colon may mean "is" and "in", before a figure for "of": "a total of 20 euros"
            total = claimed.kind == "number" and claimed.link == "of"
            alike = total or claimed.link in _LABELLED_BY
        else:
            alike = _is_bound_alike(claimed, word, apart=bool(skipped))
        partly = self.sentence.value_start if not self.value_start else 0  # a part of a label has no value
        leaves = self.words[before].inside and not self.words[place].inside
        if before < partly <= phrase or self._loses_part(place, before) or leaves or not alike:
            return False
        if labelled or not skipped:  # of "Chair: until 2020 Ida, now Otto" nobody is the chair
            kind = self.words[place].kind
            return not any(other.kind == kind or not LIMITING.isdisjoint(other.link.split()) for other in skipped)
        return not leaning and self._skips(before, place, word)

    def _begins_relative(self, claimed: Word, before: int, place: int) -> bool:
        """Return whether a relative clause about the subject begins at `place`: "who runs" in "Ida, who runs …"."""
        word, tense = self.words[place], self.words[place].tense
        relative, _, link = word.link.partition(" ")
        if place > before + 1 or relative not in ("who", "which") or not word.marked:
            return False
        subject = not any(other.link for other in self.words[: before + 1])
        return subject and claimed.link in (link or ("be" if tense else ""), ANY_LINK)

    def _is_second_value(self, number: int, before: int, place: int) -> bool:
        """Return whether a number is the second of two in one statement, and the claim has what tells them apart: "12
        euros for adults" of "8 euros for children and 12 euros for adults"."""
        first, second = self.words[before + 1], self.words[place]
        if not (first.kind == second.kind == "number" and "and" in second.link.split() and before + 1 < place):
            return False
        ends = [self._find_end(start) for start in (before + 1, place)]
        if ends[1] == len(self.words) or self._find_end(ends[0]) != place:
            return False
        told = self.claim[number + ends[1] - place :][:1]
        alike = self.words[ends[0]].link == self.words[ends[1]].link != ""
        return alike and bool(told) and told[0].key == self.words[ends[1]].key

    def _find_end(self, place: int) -> int:
        """Return where the phrase that begins at `place` ends; 9:45 is one."""
        end = place + 1
        while end < len(self.words):
            word, before = self.words[end], self.words[end - 1]
            if not (word.close or word.link == "per" or (word.marked and word.kind == before.kind == "number")):
                break
            end += 1
        return end

    def _skips(self, before: int, place: int, word: Word) -> bool:
        """Return whether a claim may leave out the words between two; `word` begins the phrase of the second one."""
        skipped = self.words[before + 1 : place]
        if skipped[0].marked:  # one insertion: ", a doctor,"
            numbers = any(other.kind == self.words[place].kind == "number" for other in skipped)
            numbers = numbers and not is_past(skipped[0].text)  # ", built in 1883,"
            several = any(other.marked for other in skipped[1:]) or "and" in skipped[0].link.split()
            return word.marked and not (numbers or several)
        clause = next((n for n, other in enumerate(skipped) if not _WHEN.isdisjoint(other.link.split())), len(skipped))
        acts = any(is_past(other.text) or other.link.startswith("be") for other in skipped[clause + 1 :])
        return not (
            acts  # "Ida was promoted before Otto resigned in 2012" does not date her promotion
            or any(self._restricts(index) for index in range(before + 1, place))
            or (skipped[0].close and not (skipped[0].kind == "number" != self.words[before].kind))
            or any(begins_another(other) for other in [*skipped, word])
            or any(other.marked for other in skipped[1:])
            or any(other.kind == self.words[place].kind != "word" and other.link == word.link for other in skipped)
        )

    def _find_phrase(self, place: int, before: int) -> int:
        """Return where the phrase begins that ends with the word at `place`: "the smith" of "the smith Jonas"."""
        while self.words[place].close and not self.words[place].dense and place - 1 > before:
            place -= 1
        return place

    def _begins(self, claimed: Word, place: int, *, leaning: bool) -> bool:
        """Return whether a claim may begin with the word at `place`: where a statement begins, or where the subject is
        a pronoun or missing."""
        skipped = self.words[:place]
        if any(is_condition(other) for other in skipped):
            return False
        if self.words[place].inside and not all(other.inside for other in self.words[place:][: len(self.claim)]):
            return False  # "Ida (chair), Otto": the chair is not Otto
        if leaning:
            ours = {other.key for other in self.claim}
            return all(other.light or other.kind == "number" or other.key in ours for other in skipped)
        start = next((index for index in range(place, 0, -1) if self.words[index].marked), 0)
        framed = self.words[0].link not in ("", "accusative", "dative") and not any(w.marked for w in skipped[1:start])
        if start and framed and not self._may_lose(self.words[:start]):
            return False
        while start < place and (self.words[start].kind == "number" or self.words[start].light):
            start += 1
        phrase = self._find_phrase(place, -1)
        links = (claimed.link, "", *(_BEFORE_CLAUSE if self.words[phrase].marked else ()))
        word = self.words[phrase]
        fits = claimed.link.startswith(ANY_LINK) and word.link != "of" and _has_limits_of(claimed, word)
        bound = phrase <= start and (word.link in links or fits)
        return bound and not self._loses_part(place, start - 1)

    def _may_lose(self, frame: Sequence[Word]) -> bool:
        """Return whether a claim may leave out the phrase before a statement: the date of what is past, or one that
        adds nothing. "In the worst case, …", "In Otto's opinion, …" and "In the novel, …" say something else."""
        dates = all(word.kind == "number" or word.key in MONTHS or is_time(word.text) for word in frame)
        when = dates or not _WHEN.isdisjoint(frame[0].link.split())
        return (when and self.sentence.is_past) or all(word.text.lower() in _ADDING for word in frame)

    def _loses_part(self, place: int, before: int) -> bool:
        """Return whether a word loses the one directly before it: "South Dakota", "a former painter". A name may lose
        what it is introduced by: "the smith Jonas", "her brother Jonas"."""
        word, previous = self.words[place], self.words[place - 1]
        first = self.words[self._find_phrase(place, -1)]
        owned = first.light or first.text.endswith(OWNING)
        before_name = previous.text.lower()
        numbering = not NUMBERING.isdisjoint((before_name, before_name.rstrip("nrs")))
        introduced = word.kind == "name" and previous.kind == "word" and not numbering and (first.determined or owned)
        counted = previous.kind == "number" and not previous.determined
        return place - 1 > before and word.close and not (introduced or counted)

    def _ends(self, place: int) -> bool:
        """Return whether a claim may end with the word at `place`: the next one does not belong to it, and no condition
        follows."""
        rest = self.words[place + 1 :]
        inside = bool(rest) and rest[0].close and (not rest[0].dense or rest[0].text[-1] in "的之の")
        if rest and (inside or {"or", "than"} & set(rest[0].link.split())):
            return False
        if rest and any(limits(place + 1) for limits in (self._qualifies, self._is_excepted, self._restricts)):
            return False
        if self.sentence.value_start and rest and rest[0].marked:
            from hira.evidence.rows import loses_remark

            if loses_remark(self.claim, rest):
                return False
        begun = any(word.link.startswith("be") for word in self.words[: place + 1])
        # "The offer was declined" states no offer
        if rest and rest[0].link == "be" and not rest[0].marked and not begun:
            return False
        clause = next((index for index, word in enumerate(rest) if word.marked or begins_another(word)), len(rest))
        ours = {word.key for word in self.claim if is_condition(word)}
        theirs = {word.key for word in [*self.words[: place + 1], *rest[:clause]] if is_condition(word)}
        said = {word.key for word in self.claim}
        ended = any(word.text.lower() in _ENDING and word.key not in said for word in rest)
        return ours == theirs | self.sentence.conditions and not ended and not is_taking_back(rest)

    def _restricts(self, place: int) -> bool:
        """Return whether a statement about the present holds only for this: "on Sundays", "for children". Of what
        happens once, as a date with its year tells, it is a detail."""
        word = self.words[place]
        links = set(word.link.split())
        day = [other.text for other in self.words[place : place + 3]]
        dated = len(day) == 3 and fold(day[1]) in MONTHS and YEAR.match(day[2])
        dated = dated or (not _FUTURE.isdisjoint(self.sentence.text.split()) and YEAR.match(word.text))
        if self.sentence.is_past or (dated and "in" in links):
            return False
        if word.marked:  # "may enter, with a ticket"
            return bool(links & {"with", "without"}) and any(is_condition(other) for other in self.words)
        if word.kind == "number" or is_time(word.text):
            return not links.isdisjoint({"in", *LIMITING, *_RESTRICTING})
        is_rule = any(other.text.lower() in _GENERAL for other in self.words)
        return not links.isdisjoint(_RESTRICTING) or (is_rule and "in" in links)

    def _qualifies(self, place: int) -> bool:
        """Return whether a word limits the quantity before it: "5 percent at most", "30 euros an hour"."""
        number, last, word = self.words[place - 2], self.words[place - 1], self.words[place]
        unit = place > 1 and last.close and number.kind == "number"
        if unit and number.determined and YEAR.match(number.text):  # "the 2023 summit of ASEAN" counts nothing
            return False
        if word.marked or not (unit or last.kind == "number"):
            return False
        links = set(word.link.split())
        limits = {"per", "of", "for", "above", "below", "over", "under"} if unit else {"per", "of"}
        each = unit and word.determined and not links
        dated = links == {"as", "of"}
        return each or bool(links & limits and not dated) or ("in" in links and word.text in ("most", "least"))

    def _is_excepted(self, place: int) -> bool:
        """Return whether the words from `place` on name what "all" does not hold for: "every day but Monday"."""
        word, later = self.words[place], {other.text.lower() for other in self.words[place:]}
        if not _EXCEPTING.isdisjoint(later - {other.text.lower() for other in self.claim}):
            return True
        return "but" in word.link.split() and not _ALL.isdisjoint(self.sentence.text.lower().split())


def begins_another(word: Word) -> bool:
    """Return whether a word begins another statement, or another part of a list."""
    return not JOINS.isdisjoint(word.link.split())


def _has_limits_of(claimed: Word, word: Word) -> bool:
    """Return whether a number has the limits that it has in the claim: "about 1,300", "from 50". Years are dates."""
    limiting = LIMITING if YEAR.match(word.text) or word.key in MONTHS else LIMITING | {"from", "to"}
    ours, theirs = (limiting.intersection(term.link.split()) for term in (claimed, word))
    return word.kind != "number" or ours == theirs


def _is_bound_alike(claimed: Word, word: Word, *, apart: bool = False) -> bool:
    """Return whether two words are bound by the same light words, or `apart` from what is left out before them by the
    same last one. A comma before an article may replace "is"."""
    ours, theirs = (term.link.rpartition(" ")[2] if apart else term.link for term in (claimed, word))
    if claimed.link.startswith(ANY_LINK):
        told = not {"by", "from"}.isdisjoint(theirs.split()) and word.kind != "number"  # who acts, and where from
        return _has_limits_of(claimed, word) and not ((apart and theirs == "of") or begins_another(word) or told)
    return ours == theirs or (ours == "be" and not theirs and word.marked and word.determined)
