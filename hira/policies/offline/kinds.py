"""What kind of answer a question wants, and whether a text holds one: a date, opening hours, a price, a name, …"""

import re

from hira.policies.offline import german
from hira.policies.offline.german import is_german
from hira.policies.offline.wording import COUNTED, NAME, NAMED, folded, holds, numbers, words

_HOW_MANY = re.compile(r"\bhow many ([\w -]+)")
NEAR = 6
"""How many words a number may stand from the thing that it counts."""
_YEAR = re.compile(r"1\d{3}|20\d\d")
_MARK = re.compile(r"\[[\d,; ]+\]|\b(?:Table|Figure|Fig\.|Section|Appendix|Eq\.|Equation|Chapter) [\dA-Z][\w.]*")
_DATED = re.compile(
    r"\b(?:1\d{3}|20\d\d)\b|\b\d{1,2}(?:st|nd|rd|th) century\b|\d+ ?年"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_PLACED = re.compile(rf"\b(?:in|at|near|from|on|into|to|of|is)\s+(?:the\s+)?(?:\w+\s+)?(?:{NAME})|[在于位]")
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|so that|in order to|as a result|therefore|hence|to avoid|caus\w+)\b|因"
)

_FIRST = r"^(?:(?!\b(?:wh(?:at|en|ere|y|ich|om?|ose)|how)\b).)*\b"  # no other question word before it
# the form of a question, and what an answer of that form holds
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "hours",
        re.compile(
            r"\bopening (?:hours|times?)\b|\bwhen (?:is|are|does|do|can|must|may)\b.*"
            r"\b(?:open|close|shut|lock|visit)(?:ed)?\b"
            r"|\bwhat time\b|几点|开放时间|营业时间"
        ),
    ),
    ("interval", re.compile(r"\bhow (?:often|frequently)\b|\b(?:at )?what intervals?\b")),
    (
        "duration",
        re.compile(
            r"\bhow long (?:does|do|did|will|would|can|may|must|should|has|have|had)\b|\bfor how long\b"
            r"|\bhow long (?:is|was|are|were) (?:the |a |an )?(?:\w+ )?(?:ride|journey|trip|flight|film|walk|tour"
            r"|crossing|visit|concert|course|lecture|meeting|stay|break|way|play|drive|voyage|war|reign|term)\b"
            r"|\bhow (?:many|much) (?:minutes|hours|time)\b.*\b(?:takes?|took|lasts?|lasted)\b"
            r"|\b(?:ride|travel|journey|driving|walking|crossing|cooking|baking|flight|flying|waiting|running) time\b"
            r"|\bduration\b|多久|多长时间"
        ),
    ),
    (
        "money",
        re.compile(
            r"\bhow much (?:does|did|do|is|was|were|are|has|had|will|would|must|should)\b.*"
            r"\b(?:cost|pay|paid|charge[ds]?|earn(?:ed)?|spend|spent|worth)\b"
            r"|\bwhat (?:does|did|do|will|would) .*\bcost\b|\bwhat is the (?:price|fee|fare|cost|salary)\b|多少钱"
        ),
    ),
    ("age", re.compile(r"\b(?:at )?(?:what|which) age\b|\bhow old (?:was|were|is|are)\b.*\b(?:when|at|on)\b|几岁")),
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
_GERMAN = tuple((name, re.compile(form)) for name, form in german.KINDS)
_HOW = re.compile(
    rf"\bhow (old|high|tall|long|deep|wide|large|big|heavy|fast|far)\b|\bwie ({'|'.join(german.ADJECTIVES)})\b"
)
MEASURES = {
    adjective: frozenset(words(hints)) | {adjective}
    for adjectives, hints in (
        ("old", "age born birth built founded established opened completed created constructed year"),
        ("high tall", "height elevation altitude rises metre meter m feet ft tall high"),
        ("long", "length km kilometre kilometer metre m mile second minute hour day week month year lasted long"),
        ("deep", "depth deepest"),
        ("wide", "width broad"),
        (
            "large big",
            "area size surface population inhabitants hectare km² km square large across diameter radius aperture acre",
        ),
        ("heavy", "weight mass kg kilogram ton tonne weigh"),
        ("fast", "speed km/h mph kilometre mile second"),
        ("far", "distance km kilometre mile away"),
    )
    for adjective in adjectives.split()
}
"""For the adjective of a "how …" question, words one of which its answer holds."""


def measured(question: str) -> frozenset[str]:
    """Words one of which stands where the adjective of a "how …" question is answered; empty for other questions."""
    match = _HOW.search(question.lower())
    if not match:
        return frozenset()
    said = match[1] or match[2]
    return MEASURES[german.ADJECTIVES.get(said, said)] | frozenset(words(said))


_SAME = 0.9
"""What `holds` gives for a word, or for another form of it."""
UNITS = frozenset(
    words(
        "metre meter m km kilometre kilometer mile second minute hour day week month feet ft kg kilogram ton tonne acre"
    )
)
_COUNTED = re.compile(
    rf"(?:\d|\b(?:an?|half|several|{COUNTED.pattern}))[ -]?"
    r"(?:(?:and a half|full|whole|long|more|metric|nautical|square) )?[^\W\d_]+",
    re.IGNORECASE,
)


def measures(wanted: frozenset[str], text: str, held: frozenset[str]) -> bool:
    """Whether a text, which holds these stems, measures in one of the `wanted` words: a unit behind a number, "31 m",
    or any other of them. A month or "M-14" alone is no length."""
    if (wanted - UNITS) & held:
        return True
    units = frozenset(word for word in wanted & UNITS if holds(word, held) >= _SAME)
    return bool(units) and any(
        holds(word, frozenset(words(match[0]))) >= _SAME for match in _COUNTED.finditer(folded(text)) for word in units
    )


def sized(question: str, text: str) -> bool:
    """Whether a text gives a length as the size of a thing: "a lens of 20 cm", and not its depth or its height."""
    other = re.search(r"\b(?:deep|depth|high|height|tall|long|length|away|altitude|elevation|above)\b", text.lower())
    return bool(re.search(r"\bhow (?:large|big)\b", question.lower()) and not other and _LENGTH.search(text))


_LENGTH = re.compile(
    r"\d[ -]?(?:m|cm|mm|metres?|meters?|centimet(?:re|er)s?|millimet(?:re|er)s?|inch(?:es)?|feet|ft)\b"
)
_DEFINED = re.compile(
    r"^\W*(?:what(?: is|[’']s) an? |what are |define (?:an? )?)(?P<term>[\w’'-]+(?: [\w’'-]+){0,2})\s*\??$"
    r"|^\W*what does (?:an? |the )?(?P<meant>[\w’'-]+(?: [\w’'-]+){0,2}) (?:mean|stand for)\s*\??$",
    re.IGNORECASE,
)


def term(question: str) -> str:
    """What a question wants defined: "What is a rollout?" asks for "rollout"; empty for other questions."""
    match = _DEFINED.match(question)
    return folded(match["term"] or match["meant"]).lower() if match else ""


def defines(text: str, wanted: str) -> bool:
    """Whether a text says what the term is: "A rollout is …", "Rollout: …", "… is called a rollout"."""
    one = rf"{re.escape(wanted.removesuffix('s') or wanted)}(?:s|es)?"
    lead = rf"^\W*(?:(?:an?|the)\s+)?[\"“'*`]*{one}[\"”'*`]*"
    says = (
        r"(?:(?:is|was) (?:an?|the|one|any|every|each|all|what|when|where|how|something|someone)\b"
        r"|(?:is|was) \w+ (?:of|that|which|who)\b"
        r"|(?:are|were) (?!\w+ed\b|not\b)|(?:means?|denotes?|refers? to|describes?)\b)"
    )
    form = rf"{lead}\s*(?:\([^)]*\)\s*)?(?:,[^,.]*,\s*)?(?:{says}|[:–—|]|- )"
    called = rf"\b(?:called|known as|named)\s+(?:an?\s+)?[\"“'*`]*{one}\b"
    return bool(re.search(f"{form}|{called}", folded(text), re.IGNORECASE))


_SUBORDINATE = re.compile(r"\b(?:before|until|after|when|once|as soon as)\s+(?:s?he|they|it)\b[^,.;]*", re.IGNORECASE)
_OFFICE = re.compile(r"^\W*who(?: is|[’']s| are) (?:the |its |an? )?(?P<office>[a-z][\w-]*)\b", re.IGNORECASE)
_FORMER = re.compile(r"\b(?:former(?:ly)?|until \d{4}|retired|stepped down|resigned)\b", re.IGNORECASE)


def holds_office(text: str, question: str) -> bool:
    """For "who is the director": whether the text says so of someone, rather than what was before or is over."""
    match = _OFFICE.match(question)
    if not match:
        return True
    said = _SUBORDINATE.sub(" ", text)
    return not _FORMER.search(said) and bool(
        holds_any(words(match["office"]), said) or not holds_any(words(match["office"]), text)
    )


_DEED = re.compile(r"\b(?:who|wer) (?:first |has |had |have |hat )?([^\W\d_]+)\b", re.IGNORECASE)
_NO_DEED = frozenset(
    "is was are were did does do has had have will can could would s ist war sind waren hat wurde".split()
)


def did(question: str, held: frozenset[str]) -> bool:
    """For "who repaired the clock": whether these stems hold what was done, in whatever word."""
    deeds = [match[1].lower() for match in _DEED.finditer(question)]
    return all(holds(word, held) for deed in deeds if deed not in _NO_DEED for word in words(deed))


_DOING = re.compile(rf"\b(?:did|does|do) (?:[a-z-]+ ){{0,3}}(?:(?!I )(?:{NAME}) )+([a-z]+)\b")


def does(question: str, held: frozenset[str]) -> bool:
    """For "what did Ida Lorn carry": whether these stems hold what was done."""
    match = _DOING.search(question)
    return all(holds(word, held) for word in words(match[1])) if match and match[1] not in _NO_DEED else True


def acts(question: str) -> bool:
    """Whether a question asks what somebody or something with a name did."""
    return bool(_DOING.search(question))


_DENIED = re.compile(
    r"\b(?:not|never|no|without|none|except|nor|neither|lacks?|nicht|kein\w*|nie)\b|n[’']t\b", re.IGNORECASE
)


def denies(text: str) -> bool:
    """Whether a text says of something that it is not so."""
    return bool(_DENIED.search(text))


def holds_any(wanted: list[str], text: str) -> bool:
    return any(holds(word, frozenset(words(text))) for word in wanted)


PAID = frozenset(words("cost pay paid charge price fee fare"))


def kind(question: str) -> str:
    """What is asked for: "date", "hours", "duration", "number", "person", …, or "" for anything else."""
    lowered = question.lower()
    forms = _GERMAN if is_german(question) else _KINDS
    return next((name for name, form in forms if form.search(lowered)), "")


def fits(wanted: str, text: str, question: str) -> bool:
    """Whether the text holds something of the wanted kind that the question does not itself hold."""
    text, question = folded(text), folded(question)
    if wanted == "date":
        return any(match[0] not in question for match in _DATED.finditer(text))
    if wanted == "number":
        return _counts(_MARK.sub("", text), question)
    if wanted == "person":
        return _named_person(text, question)
    if wanted == "place":
        return bool(_PLACED.search(text))
    form = _FORMS.get(wanted)
    return any(match[0] not in question for match in form.finditer(text)) if form else True


_NUMERAL = r"(?:\d[\d.,]*|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half an?|several))"
_SPAN = r"(?:second|minute|min|hour|h|day|night|week|month|year|decade|centur(?:y|ie))s?"
_FORMS = {
    "hours": re.compile(
        r"\b\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o[’']?clock|h\b|uhr)|\b\d{1,2}:\d\d\b|\d ?[点时]"
        r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:daily|noon|midnight|dawn|dusk|sunset|sunrise|weekends?"
        r"|weekdays?|every day|all day|summer|winter|spring|autumn)\b|星期|周[一二三四五六日末]|每天",
        re.IGNORECASE,
    ),
    "interval": re.compile(
        rf"\b(?:every|each)\b|\b(?:once|twice|thrice|{_NUMERAL} times) (?:a|an|per|every|each)\b"
        r"|\b(?:hourly|daily|weekly|monthly|yearly|annually)\b|\binterval",
        re.IGNORECASE,
    ),
    "duration": re.compile(
        rf"(?<!every )(?<!each )(?<!\d){_NUMERAL}(?:[ -]?(?:to|or|and a half|–)? ?\d*)[ -]?{_SPAN}\b"
        r"(?! (?:ago|old|late))"
        r"|\b(?:from|until) (?:\d{4}|[A-Z]\w+ \d)|\d+ ?(?:分钟|小时|天|周|个月|年)",
        re.IGNORECASE,
    ),
    "money": re.compile(
        rf"[$€£¥₹]\s?\d|{_NUMERAL}(?: (?:and a half|thousand|million|billion))?\s?"
        r"(?:[$€£¥元]|euros?\b|cents?\b|dollars?\b|pounds?\b|francs?\b|marks?\b|crowns?\b|krone[nr]?\b|shillings?\b|florins?\b|guilders?\b|ducats?\b|thalers?\b"
        r"|yen\b|yuan\b|rupees?\b|roubles?\b|lira\b|pesos?\b|pence\b|talers?\b|(?:EUR|USD|GBP|CHF|JPY|CNY|SEK|DKK|NOK)\b)"
        r"|\b(?:EUR|USD|GBP|CHF|JPY|CNY) \d|\bfree\b|\b(?:price|cost|fee|fare|admission|salary)\w*:? \d",
        re.IGNORECASE,
    ),
    "age": re.compile(
        rf"\b(?:aged?(?: of)?|at the age of) {_NUMERAL}|{_NUMERAL} years? old|{_NUMERAL}-year-old|\d+ ?岁",
        re.IGNORECASE,
    ),
    "cause": _BECAUSE,
}
_LEADING = re.compile(
    r"(?:^|[.!?:;]\s+|\n)\W*([A-Z][\w’'-]*)(?=\s|$)(?!\s+(?:[A-Z]|(?:is|was|has|had|and|of|who)\b|[a-z]+ed\b))"
)


def _named_person(text: str, question: str) -> bool:
    """Whether the text names someone new; a capital at the start of a sentence alone is no name."""
    known = set(words(question))
    inner = _LEADING.sub(lambda match: match[0].lower(), text)
    return any(not set(words(match[0])) <= known for match in NAMED.finditer(inner) if words(match[0])) or bool(
        re.search(r"[\u3400-\u9fff]", text) and "谁" in question
    )


_MEASURED = re.compile(r"(?:多少|几)([册本件个人座条层间张只棵家次米里吨天元位名篇种所块台辆架艘])")
_CHINESE_NUMBER = r"(?:\d[\d,.]*[万亿千百]?|[一二两三四五六七八九十百千万亿零]+)[多余来]?"


def _counts(text: str, question: str) -> bool:
    """Whether the text holds a number that the question does not; after "how many" near the thing that is counted.

    In Chinese the number stands before the measure word that the question asks with.
    """
    if measure := _MEASURED.search(question):
        return bool(re.search(rf"{_CHINESE_NUMBER}\s?{measure[1]}", text))
    if "多少" in question:
        text = re.sub(r"\d+ ?年", "", text)
    known = numbers(question)
    tokens = re.findall(r"[\d.,]*\d|[^\W\d]+", text.lower())
    figures = [at for at, token in enumerate(tokens) if COUNTED.fullmatch(token) or numbers(token) - known]
    counted = _HOW_MANY.search(question.lower())
    if not counted:
        return bool(figures)
    things = words(counted[1])[:2]
    return any(
        holds(thing, frozenset(words(" ".join(tokens[max(0, at - NEAR) : at + NEAR]))))
        for at in figures
        if not (_YEAR.fullmatch(tokens[at]) and not _next(things, tokens, at))
        for thing in things
    )


def _next(things: list[str], tokens: list[str], at: int) -> bool:
    """Whether what is counted stands right behind a figure."""
    return any(holds(thing, frozenset(words(" ".join(tokens[at + 1 : at + 3])))) for thing in things)
