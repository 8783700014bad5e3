"""The words of a question: its names and numbers, those that have to be covered, and which answer for each other."""

import re
import unicodedata

from hira import relevance
from hira.policies.offline.german import SMALL, is_german


def folded(text: str) -> str:
    """Latin letters without their accents: "Café" is looked for as "Cafe" too."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFC", text).translate(_LETTERS)
    return "".join(unicodedata.normalize("NFD", sign)[0] if "À" <= sign <= "ỿ" else sign for sign in plain)


_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
)


def words(text: str) -> list[str]:
    """The content words of a text, stemmed, without accents."""
    return relevance.words(folded(text))


NAME = r"[A-Z][\w’'-]*[\w]|[A-Z]"
NAMED = re.compile(rf"\b(?:{NAME})\b|\b\w*[a-z][A-Z]\w*\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
COUNTED = re.compile(r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)")
_FORM = frozenset(
    words(
        "name many much long far tall high large big deep wide heavy fast often old year date month kind type number"
        " called exactly according please tell give list find get use used using work explain describe mean happen"
        " after before during each every come he she his her him"
    )
)
_WHAT_TIME = re.compile(r"\bwhat time\b", re.IGNORECASE)
"""Says the kind of the answer, as "when" does; other times, "the travel time", are what is asked about."""
_CATEGORY = re.compile(
    r"^(?:(?:in|at|on|from|to|by) )?which ([\w-]+) (?!and\b|or\b)"
    r"|^(?:who|what) (?:is|was|are|were) the ([\w-]+) "
    r"(?:(?:in|at|on|from|by|of) )?(?:which|whom|that|who|where|whose)\b",
    re.IGNORECASE,
)
KIN = tuple(
    family.split()
    for family in (
        "founded founder established created creator gegründet gründete gründer",
        "built builder constructed completed erected gebaut erbaut baute erbauer",
        "born birth birthplace geboren geburtsort",
        "die died death starb gestorben",
        "write wrote written author authors writer",
        "invented invention inventor",
        "located lies situated lie",
        "inhabitants population people residents einwohner",
        "maximum most limit",
        "designed designer architect entworfen",
        "wife husband married spouse",
        "make made maker",
        "take took",
        "pay paid cost price kostet preis",
        "win won winner",
        "lead led leader head leiter leiterin",
        "keep kept keeper",
        "sink sank",
        "run ran",
        "staff employees employs",
        "open opens opening opened geöffnet eröffnet",
        "close closes closing closed geschlossen",
        "ride journey travel trip",
        "teach taught teacher lehrer lehrte",
        "own owns owned owner owners besitzer gehört",
        "carved carver sculpted sculptor",
        "sell sold seller",
        "sing sang sung singer",
        "learn learned learnt lernte gelernt",
        "craft trade handwerk",
        "admission entrance eintritt",
        "employees mitarbeiter",
        "new added introduced",
    )
)
"""Words that answer for each other."""
_STEMS = tuple(frozenset(words(" ".join(family))) for family in KIN)
_FAMILIES = {word: [family for family in _STEMS if word in family] for family in _STEMS for word in family}
IRREGULAR = tuple(
    verb.split()
    for verb in (
        "begin began begun, break broke broken, bring brought, build built, buy bought, catch caught, come came,"
        " choose chose chosen, draw drew drawn, drive drove driven, eat ate eaten, fall fell fallen, feed fed,"
        " fight fought, fly flew flown, forget forgot forgotten, freeze froze frozen, get got, give gave given,"
        " go goes went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, know knew known,"
        " lay laid, lead led, leave left, lend lent, lie lies lay lain, lose lost, make made, meet met, pay paid,"
        " ride rode ridden, ring rang rung, rise rose risen, say said, see saw seen, seek sought, sell sold, send sent,"
        " shine shone, sing sang sung, sink sank sunk, sleep slept, speak spoke spoken, spend spent, stand stood,"
        " steal stole stolen, swim swam swum, take took taken, teach taught, tell told, think thought,"
        " throw threw thrown, wear wore worn, weave wove woven, win won, write wrote written"
    ).split(", ")
)
"""The forms of verbs that share no stem; the first is the one that stands behind "did"."""
_FORMS = {stem: at for at, verb in enumerate(IRREGULAR) for stem in words(" ".join(verb))}
_CJK_TOPIC = re.compile(r"《([^《》]+)》|^([\u3400-\u9fff]{2,}?)的")
_CJK_FORM = re.compile(
    r"什么时候|什么|多少|哪一?[年个里座条]|在哪|何时|何处|为什么|为何|谁|是|的|了|吗|呢|有|几[个人次]|多[高长大远]"
)


def keywords(question: str) -> list[str]:
    """The question's content words, stemmed, without those that only say what kind of answer is wanted."""
    asked = _CJK_FORM.sub(" ", _WHAT_TIME.sub(" ", question))
    form = _FORM | SMALL if is_german(question) else _FORM
    return list(dict.fromkeys(word for word in words(asked) if word not in form))


def category(question: str) -> set[str]:
    """The stems of the noun that only says what the answer is: "which *river* …", "the *city* where …"."""
    match = _CATEGORY.search(question)
    return set(words(match[1] or match[2])) if match else set()


def names(question: str) -> set[str]:
    """The stems of the names in a question: capitalised words but the first, and words written like iPhone."""
    question = folded(question)
    first = re.match(r"\W*\w+", question)
    rest = question[first.end() :] if first else question
    lead = first[0].strip() if first else ""
    found = set(words(" ".join(match[0] for match in NAMED.finditer(rest))))
    found |= {word for match in _CJK_TOPIC.finditer(question) for word in words(match[1] or match[2])}
    return found | (set(words(lead)) if lead[1:] != lead[1:].lower() else set())


def exact(question: str) -> list[str]:
    """Names with a digit or a hyphen in them, which have to stand as they are: "GPT-4" is not "GPT-4o"."""
    tokens = [token.strip("?!.,;:()[]\"'“”’") for token in folded(question).split()]
    return [token.lower() for token in tokens if re.search(r"[A-Z]", token) and re.search(r"\w[-\d]", token)]


def numbers(text: str) -> set[str]:
    """The numbers of a text, without thousands separators."""
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}


def holds(word: str, held: frozenset[str]) -> float:
    """1 if the word is held, 0.9 for another form of a verb ("grew"), 0.8 if one like it is ("founder" for "founded"),
    0.7 for another word for it, else 0."""
    if word in held:
        return 1.0
    if len(word) == 1 and word > "\u3040":
        return 0.8 if any(word in other for other in held) else 0.0
    if f"{word}s" in held:
        return 0.9
    root = word[: max(5, len(word) * 7 // 10)]
    root = f"{root[:-1]}i" if root == word and root.endswith("y") else root  # "studied" for "study"
    if len(root) >= 5 and any(other.startswith((root, f"ge{root}")) for other in held):
        return 0.8
    if word in _FORMS and any(_FORMS.get(other) == _FORMS[word] for other in held):
        return 0.9
    return 0.7 if any(not family.isdisjoint(held) for family in _FAMILIES.get(word, ())) else 0.0
