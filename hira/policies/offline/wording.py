"""What a question asks for, by its words: the kind of the answer, its names, the words that have to be covered."""

import re

from hira.relevance import words

_NAME = r"[A-Z][\w’'-]*[\w]|[A-Z]"
_NAMED = re.compile(rf"\b(?:{_NAME})\b|\b\w*[a-z][A-Z]\w*\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_COUNTED = re.compile(r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)")
_HOW_MANY = re.compile(r"\bhow many ([\w -]+)")
NEAR = 6
"""How many words a number may stand from the thing that it counts."""
_MARK = re.compile(r"\[[\d,; ]+\]|\b(?:Table|Figure|Fig\.|Section|Appendix|Eq\.|Equation|Chapter) [\dA-Z][\w.]*")
_DATED = re.compile(
    r"\b(?:1\d{3}|20\d\d)\b|\b\d{1,2}(?:st|nd|rd|th) century\b|\d+ ?年"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_PLACED = re.compile(rf"\b(?:in|at|near|from|on|into|to|of|is)\s+(?:the\s+)?(?:\w+\s+)?(?:{_NAME})|[在于位]")
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|so that|in order to|as a result|therefore|hence|to avoid|caus\w+)\b|因"
)

_FIRST = r"^(?:(?!\b(?:wh(?:at|en|ere|y|ich|om?|ose)|how)\b).)*\b"  # no other question word before it
# the form of a question, and what an answer of that form holds
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "date",
        re.compile(
            rf"{_FIRST}when\b|\b(?:what|which) (?:is the )?(?:year|date|month|century)\b"
            r"|\bhow old\b|何时|哪一?年|什么时候"
        ),
    ),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|long|far|tall|high|large|big|deep|wide|heavy|fast|often)\b"
            r"|\b(?:what|which) (?:\w+ )?(?:number|percentage|share|fraction|amount|rate|size|height|length|weight)\b"
            r"|\bpopulation\b|多少|几[个人次]|多[高长大远]"
        ),
    ),
    ("person", re.compile(rf"{_FIRST}who(?:m|se)?\b|谁")),
    (
        "place",
        re.compile(
            rf"{_FIRST}where\b|哪里|在哪|何处"
            r"|\b(?:what|which) (?:is the )?(?:city|town|country|place|river|village|state|region)\b"
        ),
    ),
    ("cause", re.compile(rf"{_FIRST}why\b|为什么|为何")),
)
_FORM = frozenset(
    words(
        "name many much long far tall high large big deep wide heavy fast often old year date month kind type number"
        " called exactly according please tell give list find get use used using work explain describe mean happen"
        " after before during each every"
    )
)
_CATEGORY = re.compile(
    r"^(?:(?:in|at|on|from|to|by) )?which ([\w-]+) (?!and\b|or\b)"
    r"|^(?:who|what) (?:is|was|are|were) the ([\w-]+) "
    r"(?:(?:in|at|on|from|by|of) )?(?:which|whom|that|who|where|whose)\b",
    re.IGNORECASE,
)
_HOW = re.compile(r"\bhow (old|high|tall|long|deep|wide|large|big|heavy|fast|far)\b")
MEASURES = {
    adjective: frozenset(words(hints)) | {adjective}
    for adjectives, hints in (
        ("old", "age born birth built founded established opened completed created constructed year"),
        ("high tall", "height elevation altitude rises metre meter m feet ft tall high"),
        ("long", "length km kilometre kilometer metre m mile second minute hour day week month year lasted long"),
        ("deep", "depth deepest"),
        ("wide", "width broad"),
        ("large big", "area size surface population inhabitants hectare km² km square large"),
        ("heavy", "weight mass kg kilogram ton tonne weigh"),
        ("fast", "speed km/h mph kilometre mile second"),
        ("far", "distance km kilometre mile away"),
    )
    for adjective in adjectives.split()
}
"""For the adjective of a "how …" question, words one of which its answer holds."""
KIN = tuple(
    family.split()
    for family in (
        "founded established created",
        "built constructed completed erected",
        "born birth birthplace",
        "die died death",
        "wrote written author authors",
        "invented invention inventor",
        "located lies situated",
        "inhabitants population people residents",
        "maximum most limit",
        "designed designer architect",
        "wife husband married spouse",
        "make made",
        "take took",
        "pay paid cost price",
        "win won",
        "lead led",
        "keep kept",
        "sink sank",
        "run ran",
        "staff employees employs",
    )
)
"""Words that answer for each other."""
_STEMS = tuple(frozenset(words(" ".join(family))) for family in KIN)
_CJK_TOPIC = re.compile(r"《([^《》]+)》|^([\u3400-\u9fff]{2,}?)的")
_CJK_FORM = re.compile(
    r"什么时候|什么|多少|哪一?[年个里座条]|在哪|何时|何处|为什么|为何|谁|是|的|了|吗|呢|有|几[个人次]|多[高长大远]"
)


def keywords(question: str) -> list[str]:
    """The question's content words, stemmed, without those that only say what kind of answer is wanted."""
    return list(dict.fromkeys(word for word in words(_CJK_FORM.sub(" ", question)) if word not in _FORM))


def category(question: str) -> set[str]:
    """The stems of the noun that only says what the answer is: "which *river* …", "the *city* where …"."""
    match = _CATEGORY.search(question)
    return set(words(match[1] or match[2])) if match else set()


def measured(question: str) -> frozenset[str]:
    """Words one of which stands where the adjective of a "how …" question is answered; empty for other questions."""
    match = _HOW.search(question.lower())
    return MEASURES.get(match[1], frozenset()) if match else frozenset()


def names(question: str) -> set[str]:
    """The stems of the names in a question: capitalised words but the first, and words written like iPhone."""
    first = re.match(r"\W*\w+", question)
    rest = question[first.end() :] if first else question
    lead = first[0].strip() if first else ""
    found = set(words(" ".join(match[0] for match in _NAMED.finditer(rest))))
    found |= {word for match in _CJK_TOPIC.finditer(question) for word in words(match[1] or match[2])}
    return found | (set(words(lead)) if lead[1:] != lead[1:].lower() else set())


def exact(question: str) -> list[str]:
    """Names with a digit or a hyphen in them, which have to stand as they are: "GPT-4" is not "GPT-4o"."""
    tokens = [token.strip("?!.,;:()[]\"'“”’") for token in question.split()]
    return [token.lower() for token in tokens if re.search(r"[A-Z]", token) and re.search(r"\w[-\d]", token)]


def numbers(text: str) -> set[str]:
    """The numbers of a text, without thousands separators."""
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}


def kind(question: str) -> str:
    """What is asked for: "date", "number", "person", "place", "cause", or "" for anything else."""
    lowered = question.lower()
    return next((name for name, form in _KINDS if form.search(lowered)), "")


def fits(wanted: str, text: str, question: str) -> bool:
    """Whether the text holds something of the wanted kind that the question does not itself hold."""
    if wanted == "date":
        return any(match[0] not in question for match in _DATED.finditer(text))
    if wanted == "number":
        return _counts(_MARK.sub("", text), question)
    if wanted == "person":
        known = set(words(question))
        return any(not set(words(match[0])) <= known for match in _NAMED.finditer(text) if words(match[0]))
    if wanted == "place":
        return bool(_PLACED.search(text))
    return bool(_BECAUSE.search(text.lower())) if wanted == "cause" else True


def _counts(text: str, question: str) -> bool:
    """Whether the text holds a number that the question does not; after "how many" near the thing that is counted."""
    known = numbers(question)
    tokens = re.findall(r"[\d.,]*\d|[^\W\d]+", text.lower())
    figures = [at for at, token in enumerate(tokens) if _COUNTED.fullmatch(token) or numbers(token) - known]
    counted = _HOW_MANY.search(question.lower())
    if not counted:
        return bool(figures)
    things = words(counted[1])[:2]
    return any(
        holds(thing, frozenset(words(" ".join(tokens[max(0, at - NEAR) : at + NEAR]))))
        for at in figures
        for thing in things
    )


def holds(word: str, held: frozenset[str]) -> float:
    """1 if the word is held, 0.8 if one like it is ("founder" for "founded"), 0.7 for another word for it, else 0."""
    if word in held:
        return 1.0
    if len(word) == 1 and word > "\u3040":
        return 0.8 if any(word in other for other in held) else 0.0
    root = word[: max(5, len(word) * 7 // 10)]
    if len(root) >= 5 and any(other.startswith(root) for other in held):
        return 0.8
    return 0.7 if any(word in family and family & held for family in _STEMS) else 0.0
