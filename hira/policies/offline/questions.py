"""The form of a question: whether an inner question has to be answered first, or two things are to be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hira.policies.offline.kinds import kind, measured
from hira.policies.offline.wording import IRREGULAR, holds, keywords, names, numbers, words

LONGEST = 1_000
"""Characters of a question whose form is looked at; a longer one is taken as it is."""
NAME = r"(?:the )?(?:[A-Z\d][\w’'.-]*|[\"“][^\"”]+[\"”])(?: (?:(?:(?:of|the|de|la|van|von|for) )*[A-Z]|\d)[\w’'.-]*)*"
_RELATIVE = re.compile(
    r"\b(?:the|a|an) (?P<noun>[\w-]+(?: [\w-]+)??) (?P<relative>(?:(?:in|at|on|from|by|to|for|with|of) )?"
    r"(?:which|whom)|that|who|where|whose|when) (?P<clause>[^?]+)"
)
_OF = re.compile(rf"\b(?P<noun>the [a-z][\w-]*(?: [a-z][\w-]*)?) of (?P<name>{NAME})")
_OWNED = re.compile(rf"\b(?P<name>{NAME})[’']s (?P<noun>[a-z][\w-]*)")
_AUXILIARY = re.compile(
    r"\b(?P<word>did|do|does|is|was|are|were|has|had|can|will)(?: the [a-z][\w-]*(?: [a-z][\w-]*)? of)?\s*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\w (?:(?:in|at|on|by|for|from|to|of|with) )?(?:which|whom|that|who|where|whose) $")
_OBJECT = re.compile(r" [a-z]+ (?:his|her|its|their) [a-z]+$")
_PREPOSITION = re.compile(r"^(?:in|from|to|at|on|for|with|about|up|down|out|off|of)$")
# nouns that name one person or thing by another: these are looked up first
_RELATION = (
    r"(?:capital|wife|husband|spouse|mother|father|son|daughter|brother|sister|king|queen|president|mayor|chief|head"
    r"|birthplace|hometown|architect|captain|owner|maker"
    r"|(?:auth|direct|invent|compos|found|design|discover|lead|paint|build|own|manag|publish|creat|develop|edit|sculpt"
    r"|produc|writ|rul|teach|explor|translat|conduct|carv|engrav|sell|buy|bak|restor|illustrat|winn)(?:or|er))s?"
)
_RELATIONAL = re.compile(rf"\b{_RELATION}$")
_AGENT = re.compile(rf"\b(?P<noun>the (?:[a-z][\w-]* )?{_RELATION}) of (?P<clause>(?:the|an?) [^?]+)")
_VERBS = frozenset(verb[0] for verb in IRREGULAR) | frozenset(
    "have belong cost open close serve contain own run employ flow live end start use weigh measure work".split()
)
_OPINION = frozenset(words("name called title be lie"))


@dataclass(frozen=True, slots=True)
class Hop:
    """An inner question, and the outer one with the place `{}` for its answer. `noun` says what the answer is.

    `sure` if the form leaves no doubt; otherwise the whole question is tried first.
    """

    inner: str
    outer: str
    noun: str
    sure: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two look-ups, one for each name. `sign` is 1 if the greater figure wins, -1 if the smaller.

    `asks` is "which", "whether" (the first against the second) or "difference".
    """

    names: tuple[str, str]
    lookups: tuple[str, str]
    sign: int
    asks: str


_WH = r"(?:who|whom|whose|what|which|when|where|why|how)"
_JOINT = re.compile(rf"(?:;\s*|\?\s+|,?\s+and\s+(?:also\s+)?)(?=(?:(?:in|at|on|by|from|to) )?{_WH}\b)", re.IGNORECASE)
_TWICE = re.compile(rf"^(?P<one>{_WH}) and (?P<other>{_WH}) (?P<rest>\S.*)$", re.IGNORECASE)
_BOTH = re.compile(
    r"^(?P<ask>how (?:many|much)) (?P<one>[\w-]+) and how (?:many|much) (?P<other>[\w-]+) (?P<rest>\S.*)$",
    re.IGNORECASE,
)
_PRICED = re.compile(
    rf"how much (?:(?P<is>is|was)|are|were) (?P<what>(?:(?:the|an?|one) )?(?:[a-z-]+ )?(?-i:{NAME}))\W*$", re.IGNORECASE
)
_POINTS = re.compile(r"\b(?P<owned>its|his|her|their)\b|\b(?:it|he|she|they)\b", re.IGNORECASE)
_TOPIC = re.compile(
    r"\b(?:is|was|are|were|did|does|do|has|had|can|founded|built|wrote|made)\s+"
    rf"(?P<topic>(?:the )?{NAME}|the [a-z][\w-]*)"
)


def priced(question: str) -> str:
    """The question with what it leaves unsaid: "How much is the Swift?" asks what it costs."""
    match = _PRICED.match(question[:LONGEST])
    return f"How much {'does' if match['is'] else 'do'} {match['what']} cost?" if match else question


def parts(question: str) -> list[str]:
    """The questions that are asked at once, each made to stand alone: "When was it built; what did its roof cost?"."""
    if len(question) > LONGEST:
        return [question]
    if twice := _TWICE.match(question):
        return [f"{twice[word].capitalize()} {twice['rest']}" for word in ("one", "other")]
    if both := _BOTH.match(question):
        return [f"{both['ask'].capitalize()} {both[thing]} {both['rest']}" for thing in ("one", "other")]
    told = [part.strip(" ,.?") for part in _JOINT.split(question) if part.strip(" ,.?")]
    if len(told) < 2 or not re.match(rf"\W*(?:\w+ )?{_WH}\b", told[0], re.IGNORECASE):
        return [question]
    topic = _TOPIC.search(told[0])
    return [f"{told[0]}?", *(f"{_alone(part, told[0], topic['topic'] if topic else '')}?" for part in told[1:])]


def _alone(part: str, first: str, topic: str) -> str:
    """A later question with what it leaves out or points back to: "and why" asks for the first one's cause."""
    if re.fullmatch(_WH, part, re.IGNORECASE):
        return re.sub(rf"^\W*{_WH}\b", part.capitalize(), first, count=1, flags=re.IGNORECASE)
    part = part[0].upper() + part[1:]
    back = _POINTS.search(part)
    if not back or not topic:
        return part
    if back["owned"]:
        return f"{part[: back.start()]}the{part[back.end() :]} of {topic}"
    return f"{part[: back.start()]}{topic}{part[back.end() :]}"


def hop(question: str) -> Hop | None:
    """The inner question to answer first, None if the question is direct."""
    if len(question) > LONGEST:
        return None
    return next((one for one in (*_relative(question), *_owned(question), *_of(question)) if _worth(one)), None)


def _worth(one: Hop) -> bool:
    """Whether the outer question asks for more than the name of what the inner one finds."""
    outer = one.outer.replace("{}", " ")
    return any(word not in _OPINION for word in keywords(outer)) or kind(outer) in ("date", "number", "place")


def _relative(question: str) -> Iterator[Hop]:
    match = _RELATIVE.search(question)
    if not match:
        return
    before, noun, clause = question[: match.start()], match["noun"], match["clause"].strip()
    noun, _, verb = noun.partition(" ")
    tail = f" {verb}"
    if verb not in _VERBS or not _AUXILIARY.search(before):  # else "does the place *lie* where …"
        noun = match["noun"]
        clause, tail = _tail(before, clause)
    inner = f"{'Who' if match['relative'] == 'who' else 'What'} is the {noun} {match['relative']} {clause}?"
    yield Hop(inner, f"{before}{{}}{tail}?", noun, sure=True)


def _tail(before: str, clause: str) -> tuple[str, str]:
    """Cut the outer question's own verb off the end of a clause: "did the man who built it *die*"."""
    if not (auxiliary := _AUXILIARY.search(before)):
        return clause, ""
    parts = clause.split()
    asking = auxiliary["word"].lower() in ("did", "do", "does") or bool(re.match(r"(?:When|Where|How|Why)\b", before))
    if not asking or len(parts) < 3 or not parts[-1].islower():
        return clause, ""
    if owned := _OBJECT.search(clause):
        return clause[: owned.start()], owned[0]
    cut = 2 if _PREPOSITION.match(parts[-1]) and parts[-2].islower() else 1
    return " ".join(parts[:-cut]), " " + " ".join(parts[-cut:])


def _of(question: str) -> Iterator[Hop]:
    """What somebody is called by who made or leads it, "the builder of the old mill", or another thing of a name."""
    if (match := _AGENT.search(question)) and not re.match(NAME, match["clause"]):
        before = question[: match.start()]
        clause, tail = _tail(before, match["clause"].strip())
        noun = match["noun"].removeprefix("the ")
        yield Hop(f"Who is the {noun} of {clause}?", f"{before}{{}}{tail}?", noun, sure=True)
    for match in _OF.finditer(question):
        noun, before, after = match["noun"].removeprefix("the "), question[: match.start()], question[match.end() :]
        name, after = _completed(match["name"], before, after)
        person = "Who" if re.search(r"(?:or|er)s?$", noun) else "What"
        outer = f"{before}{{}}{after}"
        yield Hop(f"{person} is the {noun} of {name}?", outer, noun, bool(_RELATIONAL.search(noun)))


def _completed(name: str, before: str, after: str) -> tuple[str, str]:
    """A name with the noun behind it, "the Aare bridge"; the last word stays where the question needs a verb."""
    follows = re.match(r" ([a-z][\w-]+)(?=[ ?]|$)", after)
    verb = bool(_AUXILIARY.search(before)) and not re.match(r"(?:Who|What|Which)\b", before)
    ends = follows and not after[follows.end() :].strip(" ?")
    if not follows or _PREPOSITION.match(follows[1]) or (ends and _CLAUSE.search(before)):
        return name, after
    last = not after[follows.end() :].strip(" ?") and bool(re.fullmatch(r"(?:Who|What) (?:is|was) ", before))
    if not name.startswith("the ") and not last:
        return name, after
    if verb and not after[follows.end() :].strip(" ?"):
        return name, after
    return name + follows[0], after[follows.end() :]


def _owned(question: str) -> Iterator[Hop]:
    match = _OWNED.search(question)
    if match and _RELATIONAL.search(match["noun"]):
        outer = f"{question[: match.start()]}{{}}{question[match.end() :]}"
        yield Hop(f"Who is {match['name']}'s {match['noun']}?", outer, match["noun"], sure=True)


_OR = re.compile(r"^(?P<frame>(?:which|who|what)\b.*?)[,:]\s*(?P<a>.+?),?\s+or\s+(?P<b>.+?)\s*\?*$", re.IGNORECASE)
_AND = re.compile(r"^which (?:one )?of (?P<a>.+?) and (?P<b>.+?) (?P<frame>(?:is|has|was)\b.+?)\s*\?*$", re.IGNORECASE)
_THAN = re.compile(r"^(?:is|was) (?P<a>.+?) (?P<adjective>\w+er) than (?P<b>.+?)\s*\?*$", re.IGNORECASE)
_HOW_MUCH = re.compile(
    r"^(?:by )?how (?:much|many \w+) (?P<adjective>\w+er) (?:is|was) (?P<a>.+?) than (?P<b>.+?)\s*\?*$", re.IGNORECASE
)
_MORE = re.compile(r"\bhas (?P<word>more|fewer|less) (?P<what>.+)$", re.IGNORECASE)
_HAS = re.compile(r"\bhas (?:the|a) (?P<adjective>\w+er) (?P<what>.+)$", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:was|were) (?P<verb>\w+) (?P<word>first|earlier|last|later)$", re.IGNORECASE)
_ADJECTIVE = re.compile(r"\b(?P<adjective>\w+er)$", re.IGNORECASE)
# comparatives whose winner has the smaller figure, with the adjective to ask by
_SMALLER = {"small": "large", "short": "long", "low": "high", "light": "heavy", "slow": "fast", "narrow": "wide"}
_AGES = {"old": -1, "young": 1, "new": 1}


def comparison(question: str) -> Comparison | None:
    """The two look-ups that a comparison takes, None if the question compares nothing."""
    text = question.strip()
    if len(text) > LONGEST:
        return None
    for form, asks in ((_HOW_MUCH, "difference"), (_THAN, "whether")):
        if match := form.match(text):
            return _by_adjective(match["adjective"], (match["a"], match["b"]), asks)
    match = _OR.match(text) or _AND.match(text)
    return _chosen(match["frame"].strip(), (match["a"].strip(), match["b"].strip())) if match else None


def _chosen(frame: str, pair: tuple[str, str]) -> Comparison | None:
    """A choice between two: `frame` is the question without them."""
    asks, sign = "", 1
    if found := _MORE.search(frame):
        asks, sign = f"How many {found['what']} does {{}} have?", 1 if found["word"].lower() == "more" else -1
    elif found := _HAS.search(frame):
        asks, sign = f"What is the {found['what']} of {{}}?", -1 if positive(found["adjective"]) in _SMALLER else 1
    elif found := _FIRST.search(frame):
        asks, sign = f"When was {{}} {found['verb']}?", -1 if found["word"].lower() in ("first", "earlier") else 1
    elif found := _ADJECTIVE.search(frame):
        return _by_adjective(found["adjective"], pair, "which")
    return Comparison(pair, (asks.replace("{}", pair[0]), asks.replace("{}", pair[1])), sign, "which") if asks else None


def _by_adjective(comparative: str, pair: tuple[str, str], asks: str) -> Comparison:
    adjective = positive(comparative)
    if adjective in _AGES:
        asked = tuple(f"How old is {name}?" for name in pair)
        return Comparison(pair, (asked[0], asked[1]), _AGES[adjective], asks)
    asked = tuple(f"How {_SMALLER.get(adjective, adjective)} is {name}?" for name in pair)
    return Comparison(pair, (asked[0], asked[1]), -1 if adjective in _SMALLER else 1, asks)


def positive(comparative: str) -> str:
    """The adjective of a comparative: "larger" → "large", "bigger" → "big", "heavier" → "heavy"."""
    stem = comparative.lower().removesuffix("er")
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] in "gdtnm":
        return stem[:-1]
    return stem + "e" if stem in ("larg", "wid", "lat", "saf", "clos") else stem


_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "km": 1e3, "kilomet": 1e3, "cm": 1e-2, "centimet": 1e-2}
_FIGURE = re.compile(
    r"(?<![\w.])(\d+(?:,\d{3})+|\d+)(\.\d+)?\s*(thousand|million|billion|km(?!²)|kilomet\w+(?! ?²)|cm|centimet\w+)?\b"
)
_UNIT = re.compile(
    r"[.\d]*\s?(?:%|(?:kilo|centi)?met(?:re|er)s?|k?m|cm|feet|ft|miles?|kg|kilograms?|tons?|tonnes?)(?!\w)"
)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d\d)\b")


def figure(conclusion: str, question: str) -> float | None:
    """The figure of an answer that its question does not hold, one with a unit that fits before others.

    The first year where a date is asked for.
    """
    if kind(question) == "date":
        return float(year[0]) if (year := _YEAR.search(conclusion)) else None
    known, units = numbers(question), measured(question)
    found: list[tuple[bool, bool, int, float]] = []
    for match in _FIGURE.finditer(conclusion):
        plain = match[1].replace(",", "") + (match[2] or "")
        if plain not in known:
            unit = next((size for name, size in _SCALES.items() if (match[3] or "").lower().startswith(name)), 1.0)
            follows = set(words(match[0] + " ".join(conclusion[match.end() :].split()[:2])))
            fits = bool(units & follows or _UNIT.match(conclusion, match.end(1)))
            found.append((not fits, bool(_YEAR.fullmatch(plain)), match.start(), float(plain) * unit))
    return min(found)[3] if found else None


_PRONOUN = re.compile(r"(?:It|He|She|They|This|These|Its|His|Her|Their|In|On|At|After|Before|Since|From)")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_WHEN = r"(?:On|In|At|By|Since|From|Until|Till|After|Before|During)"
_DATED = re.compile(rf"(?:{_WHEN} )?(?:\d{{1,2}} )?(?:{_MONTH})(?: \d{{1,4}})?(?:, \d{{4}})?|{_WHEN} \d{{4}}")
_ENTITY = re.compile(NAME.removeprefix("(?:the )?"))


def entity(conclusion: str, question: str, noun: str) -> str:
    """The name in an answer that the question asked for: not in the question, nearest behind its words.

    For a noun such as "year" it is the first year. Empty if the answer names nothing new.
    """
    if noun.endswith(("year", "date")):
        return year[0] if (year := _YEAR.search(conclusion)) else ""
    known, marked = set(words(question)), names(question)
    rest, kind_of, asked = known - marked, set(words(noun)), frozenset(known)
    ranked: list[tuple[float, int, str]] = []
    for match in _ENTITY.finditer(conclusion[:LONGEST]):
        name = re.sub(r"[’']s$", "", match[0].strip('"“” .,'))
        own = set(words(name))
        if all(holds(word, asked) > 0.7 for word in own) or name.isdigit() or _PRONOUN.fullmatch(name):
            continue
        if _DATED.fullmatch(name) and kind(question) != "date":
            continue
        follows = re.match(r" ([a-z][\w-]*)", conclusion[match.end() :])
        if follows and set(words(follows[1])) & kind_of:
            name, own = name + follows[0], own | kind_of
        distance = _distance(match.span(), conclusion, rest) - (40 if own & kind_of else 0)
        distance += 40 if own & marked else 0  # "Captain of the Petrel", where the Petrel's is asked for
        ranked.append((distance, match.start(), name))
    return min(ranked)[2] if ranked else ""


def _distance(span: tuple[int, int], text: str, wanted: set[str]) -> float:
    """Characters to the nearest of the wanted words; what stands before the name is nearer than what follows."""
    found = [
        match
        for match in re.finditer(r"[^\W_]+", text)
        if any(holds(word, frozenset(wanted)) for word in words(match[0]))
    ]
    gaps = [span[0] - match.end() if match.end() <= span[0] else 1.5 * (match.start() - span[1]) + 3 for match in found]
    return min((gap for gap in gaps if gap >= 0), default=float(span[0]))
