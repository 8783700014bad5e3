"""A text as sentences, and a sentence as words that can be compared. Built once for each source.

Words are compared by `key`: a number by its value, a word by its stem without inflections. Scripts without spaces
become pairs of characters. Everything here takes time linear in the length of the text.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from hira.core.bm25 import stem
from hira.core.patterns import compile_lazily
from hira.evidence.citations import CITED

if TYPE_CHECKING:
    from hira.evidence.cells import Cell

BULLET = compile_lazily(r"\s*(?:(?:[-*+•‣>]|\d{1,3}[.)]|\[\d{1,3}\])\s+)*")
FENCE = compile_lazily(r"^[ \t]*(?:```|~~~)(?s:.*?)(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)", re.MULTILINE)
WRAPPED = 50
"""If a longer line ends inside a sentence, the next one continues it; shorter lines are items of a list."""
_BEGINS = compile_lazily(r"\s*(?:#{1,6}\s|[-*+•|>]\s?|\d+[.)]\s|\[\d{1,3}\]\s+\S|[A-Z][\w ]{1,24}:\s)")
_STOP = compile_lazily(
    r"(?:(?<=[^\W_][^\W\d_])|(?<=[\d)\]\"'”’»%*_`+#])|(?<=[A-Z°][-CF]))"  # "in C++. The", "at 8 °C. The"
    rf"[.!?…]++[\"'”’»)\]*_]*+(?:\s*+{CITED.pattern})*+\s++(?=[^a-z\s])"
    r"(?!(?:(?<=\D\d\.\s)|(?<=\D\d\d\.\s))(?:Jan|Jän|Feb|Mär|Apr|Ma[ij]|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w*\b)"
    r"(?!(?<=\bNo\.\s)\d)"
    rf"|[。！？؟۔।]++[」』”]*+(?:\s*+{CITED.pattern})*+\s*+"
    r"|(?<=\d)[.!?](?=[A-Z][a-z]+\s)"  # pages whose paragraphs are glued: "in 2020.The court"
)
_NO_STOP = compile_lazily(
    r"(?:\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|vs|cf|ca|approx|Jr|Sr)|^[\s#*]*\d{1,3})\.\Z", re.MULTILINE
)
"""Abbreviations, and the number of a list item or heading."""
CELL = " | "
"""Between the cells of a table's row."""
TRAIL = " › "
"""Between the headings above a passage."""


def find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of every sentence, list item, row and line, with the citation marks after it."""
    for start, end in _find_blocks(text):
        begin = start
        for match in () if is_row(text[start:end]) else _STOP.finditer(text, start, end):
            if not _NO_STOP.search(text, max(begin, match.start() - 8), match.start() + 1):
                yield begin, match.end()
                begin = match.end()
        if text[begin:end].strip():
            yield begin, end


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each line, joined with the next line if that continues its sentence."""
    begin = end = 0
    wrapped = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        row = is_row(line)
        if not (wrapped and bare and not row and not _BEGINS.match(line)):
            yield begin, end
            begin = end
        end += len(line)
        whole = row or TRAIL in line or bare[-1:] in (".", "!", "?", ":", ";", "|")
        wrapped = len(bare) > WRAPPED and not whole
    yield begin, end


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table."""
    return CELL in line or "\t" in line.strip() or line.lstrip().startswith("|")


LABEL = compile_lazily(
    r"(?:[-*+•‣>]\s+|\d{1,3}[.)]\s+)*[*_]{0,2}(?!(?:the|an?|this|that|there|it|he|she|they)\b)([^\W\d_][^:.!?;|]{0,60}):[*_]{0,2}\s(?=\S)",
    re.IGNORECASE,
)
"""A label before a value: "- **Founded:** 2019"."""
LONGEST = 1_000
"""The most characters of a sentence; a longer one is cut at a space. A row is never cut."""
_WORD = compile_lazily(
    r"(?P<code>[A-Za-z]+\d+[A-Za-z\d]*)"
    r"|(?P<number>(?:(?<![\w.,)%°])(?:[-−]|(?<!\d\s)–)(?=\d))?\d+(?:[.,’'\u00a0\u202f]\d+)*)"
    r"|(?P<dense>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"(?:(?:\++|(?<![^\W\d_]{3})#|(?:(?<=\b[A-Z])|(?<=\b[A-Z]{2})|(?<=\b[A-Z]{3}))[-−])(?!\w))?)"
    r"|(?P<sign>\+/[-−]|[%$€£¥₹°×÷≤≥±]|(?<=\d)[-−+](?![\w+])|(?<=[\d\s)])(?:\*\*|[<>]=|[-−+*/=<>])(?=[\d\s(]))"
    r"|(?P<mark>[,;:()\[\]{}—–|!?.…\"“”„«»،؛])"
)
_FINAL = ".!?;,|。！？؟"
_SIGNS = dict(zip("%$€£¥₹×÷", "percent dollar euro pound yen rupee * /".split(), strict=True))
_SIGNS |= {"<=": "≤", ">=": "≥", "+/-": "±", "+/−": "±"}
_CURRENCIES = frozenset("dollar euro pound yen rupee".split())
_MAGNITUDES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SHORT_MAGNITUDES = {"k": 3, "m": 6, "bn": 9, "b": 9, "tn": 12}
"""After an amount of money: "$5M" is five million dollars."""
_NUMBERS = {
    word: str(value)
    for value, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2)
}
_MONTH_NAMES = "January February March April May June July August September October November December".split()
MONTHS = frozenset(month.lower() for month in _MONTH_NAMES)
_WRITTEN_DATE = compile_lazily(
    r"(?<![\w.-])(?:(?P<y>(?:1[5-9]|20)\d\d)-(?P<m>0[1-9]|1[0-2])-(?P<d>[0-2]\d|3[01])"
    r"|(?P<day>[0-2]?\d|3[01])\.(?P<month>0?[1-9]|1[0-2])\.(?P<year>(?:1[5-9]|20)\d\d))(?![\w-])"
)
"""A date in digits: 2026-07-11, 11.07.2026."""
_LINKED = compile_lazily(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()\s]*\))*\)|\[\^[^\[\]\s]+\]")
"""A link of Markdown, or the mark of a footnote."""
_LIMIT = compile_lazily(
    r"(?<![-~=<>])(?:(?P<about>[~≈])|(?<![\d)])(?<![\d)]\s)(?:(?P<most>≤|<=)|(?P<least>≥|>=)|(?P<less><)|(?P<more>>)))"
    r" ?(?=[-−–$€£¥₹]?\d)"
)
"""A sign before a number that limits it, and is not between two numbers."""
_LIMITS = {"about": "about", "most": "at most", "least": "at least", "less": "less than", "more": "more than"}
NEGATIONS = frozenset(
    "not no never neither nor none without cannot nicht kein keine keinen keiner nie ohne ne pas jamais sin nunca"
    " لا لم لن ليس ليست غير 不 没 沒 未 無 无 非".split()
)
CONDITIONS = NEGATIONS | frozenset(
    "will would can could may might must shall should if unless until except only almost nearly hardly barely rarely"
    " possibly probably perhaps maybe allegedly reportedly supposedly alleged expected planned proposed todo false"
    " unlikely forecast myth myths rumour rumours rumoured denied being wird werden soll sollen sei seien habe solle"
    " könne werde würde hätte wäre".split()
)
"""Words that a statement cannot lose or gain without becoming another one."""
DENIALS = frozenset(
    "wrong false untrue incorrect mistaken erroneous disproved disproven refuted denied denies disputed disputes"
    " doubtful fake hoax myth legend rumour rumor falsch".split()
)
"""Words of a later clause, or of a next sentence about the statement, that take a statement back."""
VOIDING = DENIALS | frozenset(
    "excluded rejected cancelled canceled postponed withdrawn draft abgesagt verschoben entwurf void"
    " invalid negative nein non 否".split()
)
"""Cells of one word without which no other cell of their row is said, and labels without which no value is."""
_TRUTH = frozenset("true correct right so confirmed proved proven case".split())
"""Words that take a statement back after a negation ("but this is not true")."""
_IRREGULAR = (
    "become became|begin began begun|break broke broken|bring brought|build built|buy bought|catch caught|choose"
    " chose chosen|come came|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feel"
    " felt|fight fought|fly flew flown|forget forgot forgotten|freeze froze frozen|get got|give gave given|go went"
    " gone|grow grew grown|hear heard|hide hid hidden|hold held|keep kept|know knew known|lead led|lend lent|lose"
    " lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see"
    " saw seen|seek sought|sell sold|send sent|shake shook shaken|show shown|sing sang sung|sink sank sunk|sit"
    " sat|sleep slept|speak spoke spoken|spend spent|stand stood|steal stole stolen|strike struck|swear swore"
    " sworn|swim swam swum|take took taken|teach taught|tell told|think thought|throw threw thrown|understand"
    " understood|wear wore worn|win won|write wrote written"
)
"""Verbs with forms that differ in more than an ending, without forms that are also another word ("found", "left")."""
IRREGULAR = {form: base for base, *forms in map(str.split, _IRREGULAR.split("|")) for form in forms}
PRONOUNS = frozenset("he she it they er sie es il elle ils elles هو هي 他 她 它".split())
POSSESSIVES = frozenset(
    "his her hers him its their theirs them sein seine seiner seinem seinen ihre ihrer ihrem ihren".split()
)
POINTERS = PRONOUNS | POSSESSIVES | frozenset("this that these those dieser diese dieses 其 该 這 这".split())
_EVERY = frozenset("each every jeder jede jedes jeden jedem chaque cada".split())
_ARTICLES = frozenset("a an the this these those such".split()) | (_EVERY - {"jeden", "jedem"})
_BE = frozenset("is are was were be been am".split())
_TENSES: dict[str, Literal["", "present", "past"]] = {
    **dict.fromkeys(("is", "are", "am"), "present"),
    **dict.fromkeys(("was", "were"), "past"),
}
_HAVE = frozenset("has have had do does did".split())
_FILLERS = frozenset("having done also there that so now currently thus therefore moreover furthermore".split())
_LINKS = frozenset(
    "of in on at by for with as to from into onto over under above below before after since during through across"
    " against between among near within towards toward upon about around behind beyond via per and or but nor than"
    " which who whom whose where when while whereas because although though".split()
)
_SAME_LINK = {"on": "in", "at": "in", "during": "in", "upon": "on", "toward": "towards"}
_FOREIGN = {
    "filler": frozenset("danach dann auch außerdem zudem jedoch daher".split()),
    "article": frozenset("der das des ein eine eines einer le les un une el lo los las una unos unas gli".split()),
    "accusative": frozenset("den einen jeden".split()),
    "dative": frozenset("dem einem jedem".split()),
    "be": frozenset("wurde wurden ist sind waren beträgt betrug lautet est sont était fut es son fue fueron".split()),
    "have": frozenset("hat haben hatte hatten".split()),
    "of": frozenset("von de du del della".split()),
    "in": frozenset("im am dans en".split()),
    "for": frozenset(("für",)),
    "with": frozenset(("mit",)),
    "until": frozenset(("bis",)),
    "since": frozenset(("seit",)),
    "and": frozenset("und et y".split()),
}
"""German, French, Spanish and Italian, as far as no English word is written like it. The case of a German article
binds: it tells subject and object apart."""
_ELIDED = compile_lazily(
    r"(?<![\w'’])(?:(d|(?i:l|un|dell|nell|all|dall|sull))['’](?=[^\W\d_]{2})"
    r"|[dD]ie(?![^.\n]{0,200}? (?:the|of|and|were|is|are|by|from|to|has|had|with|at|on|[a-z]{2,}ed)\b)"
    r"(?= (?:(?!(?:be\w+|since|(?:in|out)side|alone|t?here|wh\w+|then|often|like|some) )\w+en? )?[A-ZÄÖÜ]))"
)
_NAMES = frozenset("un una uno unos unas gli lo".split())  # capitalised, they may be names
_WHOLE = {"d": "of", "dell": "of", "nell": "in", "all": "to", "dall": "from", "sull": "on"}
"""Light words without their last vowel, and German "die", which English has, too, but not before a capital."""
AMBIGUOUS = compile_lazily(r"(?<![\w.,])[-−–]?[1-9]\d{0,2}[.,]\d{3}(?![\w]|[.,]\d)")
"""A number that is a thousand times as large in one language as in another: 12.500."""
_ROLES = {
    **{word: _SAME_LINK.get(word, word) for word in _LINKS},
    **{word: role for role, words in _FOREIGN.items() for word in words},
    **dict.fromkeys(_FILLERS, "filler"),
    **dict.fromkeys(_HAVE, "have"),
    **dict.fromkeys(_BE, "be"),
    **dict.fromkeys(_ARTICLES, "article"),
}
JOINS = frozenset("and or but which who whom whose where when while whereas because although though".split())
"""Links that begin another statement, or another part of a list."""
LIMITING = frozenset(
    "under over below above than about around near before after since until between within towards beyond".split()
)
"""Links before a number that is a limit: "under 20 euros" is no price, "before 1911" no date."""
Kind = Literal["number", "name", "word"]


class Word(NamedTuple):
    """One content word, number, sign or pair of characters, and how it is bound to the content word before it.

    Attributes:
        key: The form that is compared.
        text: As it is written.
        kind: A capitalised word is a name, wherever it is.
        link: The light words before it that bind it ("of", "by", "be", "and in"), empty without one.
        determined: True after an article.
        marked: True if punctuation separates it from the word before.
        close: True if it follows the word before directly.
        light: True for a pronoun, which a copy may leave out: the thing itself may take its place.
        dense: True for a pair of characters of a script without spaces.
        tense: Of the form of "be" before it, empty without one.
        inside: True in parentheses.
        every: True after "every" or "each".
    """

    key: str
    text: str
    kind: Kind
    link: str = ""
    determined: bool = False
    marked: bool = False
    close: bool = False
    light: bool = False
    dense: bool = False
    tense: Literal["", "present", "past"] = ""
    inside: bool = False
    every: bool = False


def bind(words: Sequence[Word], link: str) -> list[Word]:
    """Return a phrase that is bound by another link."""
    return [words[0]._replace(link=link, close=False, marked=False), *words[1:]]


@lru_cache(maxsize=50_000)
def read_number(text: str, grouping: str = "") -> str:
    """Return a number as digits and a power of ten ("3,100,000" and "3.1" million are "31e7"); a string. It keeps the
    zeros at the end of a fraction: 4.10 is "410e1". One of several parts (3.11.2) stays as it is. `grouping` is the
    character that groups thousands in the language: 12.500 is 12500 with "."; empty if unknown."""
    if text.count(".") > 1 and any(len(part) != 3 for part in text.partition(",")[0].split(".")[1:]):
        return text
    sign, text = ("-", text[1:]) if text[0] in "-−–" else ("", text)
    whole, fraction = text, ""
    if separators := [char for char in text if not char.isdigit()]:
        head, _, tail = text.rpartition(separators[-1])
        decimal = "," if grouping == "." else "."
        grouped = len(tail) == 3 and separators[-1] != decimal and head.isdigit() and len(head) < 4 and head.strip("0")
        if separators.count(separators[-1]) == 1 and not grouped:
            whole, fraction = head, tail
    whole, fraction = ("".join(str(int(char)) for char in part if char.isdigit()) for part in (whole, fraction))
    digits = whole.lstrip("0") + fraction
    leading = digits.lstrip("0")
    power = len(whole.lstrip("0")) - len(digits) + len(leading)
    kept = leading if fraction else leading.rstrip("0")
    return f"{sign}{kept}e{power}" if leading else "0"


@lru_cache(maxsize=50_000)
def fold(written: str) -> str:
    """Return the key of a word: lower case, without inflections and without a doubled end ("stopped": "stop")."""
    lower = written.lower()
    if written in IRREGULAR:
        return fold(IRREGULAR[written])
    if lower.endswith(("tre", "tres")):  # British: metre, centre
        lower = "ter".join(lower.rsplit("tre", 1))
    if len(lower) > 5 and lower.endswith("ied"):
        return f"{lower[:-3]}y"
    if len(lower) == 4 and lower.endswith("s") and lower[-2] not in "sui":
        return lower[:-1]
    folded = stem(lower)
    doubled = len(folded) > 3 and lower.endswith(("ed", "ing")) and folded[-1] == folded[-2]
    return folded[:-1] if doubled else folded


def _find_role(written: str, *, first: bool) -> str:
    """Return what a light word does: it is an article, fills, helps a verb ("be", "have") or binds ("of", "in", …). It
    is empty for a content word; a capitalised word is one unless it is the first."""
    lower = written.lower()
    return _ROLES.get(lower, "") if (first and lower not in _NAMES) or written == lower else ""


def is_related(key: str, held: Collection[str]) -> bool:
    """Return whether a key is among others, possibly with another ending: "designer" and "designed"."""
    return key in held or (key.isalpha() and any(_share_stem(key, other) for other in held if other.isalpha()))


def _share_stem(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    if len(short) > 4 and short[:-1] == long[:-1] and {short[-1], long[-1]} in ({"y", "i"}, {"d", "t"}):
        return True
    if long in (f"{short}less", f"{short}los"):  # without it
        return False
    supplies = short.endswith("y") and long == f"{short[:-1]}ier"
    if supplies or (len(short) == 3 and long in (f"{short}ed", f"{short}ing")):
        return True
    return long.startswith(short) and len(long) - len(short) <= {3: 1, 4: 2}.get(len(short), 4 * (len(short) > 4))


def read_words(text: str, grouping: str = "") -> list[Word]:
    """Return the content words of a text in order. The two orders of day and month are one, dates in digits are read
    as in words, and of a link of Markdown its text. `grouping` groups thousands, if the words do not tell."""
    dated = _WRITTEN_DATE.sub(_write_date, _LINKED.sub(r"\1", text))
    whole = _ELIDED.sub(lambda light: f"{_WHOLE.get((light[1] or '').lower(), 'the')} ", dated)
    plain = _LIMIT.sub(lambda sign: f"{_LIMITS[str(sign.lastgroup)]} ", whole)
    grouping = _find_grouping(plain, grouping)
    words: list[Word] = []
    link, determined, marked, close, first, every = "", False, False, True, True, False
    tense: Literal["", "present", "past"] = ""
    inside = 0
    for match in _WORD.finditer(plain):
        kind, written = str(match.lastgroup), match[0]
        if kind == "mark":
            marked, close, determined = True, False, False
            link = link if written != ";" else "and"
            inside = max(0, inside + {"(": 1, ")": -1}.get(written, 0))
            continue
        begins = first or (marked and written.lower() in _ARTICLES)
        role = _find_role(written, first=begins) if kind == "word" else ""
        first = False
        if role:
            close, marked = False, marked or (link == "and" and role in ("be", "have"))
            determined = role == "article" or (determined and role in ("filler", "have"))
            if role in ("be", "have"):  # after "and" they begin another predicate of the same subject
                helps = "be" if role == "be" else ""
                link = helps if link == "and" else link or helps
            elif role not in ("article", "filler"):
                link = f"{link} {role}".removeprefix("be ").strip()
            tense = _TENSES.get(written.lower(), tense)
            every = written.lower() in _EVERY
        elif not (close and _joins_number(words, kind, written)):
            near = close and bool(words)
            bound = Word("", "", "word", link, determined, marked, near, tense=tense, inside=inside > 0, every=every)
            words += _read_content(kind, written, bound, words[-1:], grouping)
            if len(words) > 1 and words[-1].close:
                day = words[-2].key in MONTHS and words[-1].text.isdecimal() and len(words[-1].text) <= 2
                if day or (words[-2].key in _CURRENCIES and words[-1].kind == "number"):
                    _swap_last(words)
            link, determined, marked, close, tense, every = "", False, False, True, "", False
    return words


def _write_date(date: re.Match[str]) -> str:
    """Return 2026-07-11 as "11 July 2026"."""
    year, month, day = (date[iso] or date[dotted] for iso, dotted in (("y", "year"), ("m", "month"), ("d", "day")))
    return f"{int(day)} {_MONTH_NAMES[int(month) - 1]} {year}"


def is_taking_back(words: Sequence[Word]) -> bool:
    """Return whether words say of a statement before them that it is not true."""
    lower = [word.text.lower() for word in words]
    denied = any(word in NEGATIONS and other in _TRUTH for word, other in pairwise(lower))
    return denied or not DENIALS.isdisjoint(lower)


def is_denied(text: str) -> bool:
    """Return whether a text has a negation."""
    lower = [word.text.lower() for word in read_words(text)]
    denied = (word in NEGATIONS or word.endswith(("n't", "n’t")) for word in lower)
    return any(no and other != "only" for no, other in zip(denied, [*lower, ""][1:], strict=True))


def _joins_number(words: list[Word], kind: str, written: str) -> bool:
    """Multiply the number before a word by its magnitude ("3.1 million"); return whether there was one."""
    money = len(words) > 1 and words[-1].key in _CURRENCIES  # "$5 million"
    magnitudes = {**_MAGNITUDES, **_SHORT_MAGNITUDES} if money else _MAGNITUDES
    places = magnitudes.get(written.lower()) if kind == "word" else None
    index = -2 if money else -1
    if places is None or not words or words[index].kind != "number":
        return False
    digits, _, power = words[index].key.partition("e")
    key = f"{digits.rstrip('0')}e{int(power) + places}" if power else words[index].key
    words[index] = words[index]._replace(key=key, text=f"{words[index].text} {written}")
    return True


def _swap_last(words: list[Word]) -> None:
    """Turn "May 4" into "4 May", and "$5" into "5 dollars"."""
    first, last = words[-2:]
    words[-2:] = [
        last._replace(link=first.link, determined=first.determined, marked=first.marked, close=first.close),
        first._replace(link="", determined=False, marked=False, close=True),
    ]


def _read_content(kind: str, written: str, bound: Word, before: Sequence[Word] = (), grouping: str = "") -> list[Word]:
    """Return a content word, number or sign, or the pairs of characters of a script without spaces."""
    lower = written.lower()
    if kind == "dense":
        pairs = [written[place : place + 2] for place in range(len(written) - 1)] or [written]
        rest = [Word(pair, pair, "word", close=True, dense=True) for pair in pairs[1:]]
        return [bound._replace(key=pairs[0], text=pairs[0], dense=True), *rest]
    if kind == "number" or lower in _NUMBERS:
        return [bound._replace(key=read_number(_NUMBERS.get(lower, written), grouping), text=written, kind="number")]
    if kind == "code":
        return [bound._replace(key=lower, text=written, kind="name")]
    if kind == "sign":
        return [bound._replace(key=_SIGNS.get(written, written), text=written)]
    capital = written[0] != lower[0]
    if capital and lower in MONTHS:
        return [bound._replace(key=lower, text=written, kind="number")]
    light = lower in PRONOUNS or lower in POSSESSIVES
    key = ""
    if len(written) <= 4 and (written[0] in "BGHKMPST" or written[1:] != lower[1:]):
        from hira.evidence.notation import read_symbol  # of a unit, which has four letters at most

        key = read_symbol(written, counted=bound.close and before[0].kind == "number")
    return [bound._replace(key=key or fold(written), text=written, kind="name" if capital else "word", light=light)]


def _find_grouping(text: str, around: str = "") -> str:
    """Return the character that groups thousands in a text, or else around it, if it has a number that needs it."""
    if not AMBIGUOUS.search(text):
        return around
    from hira.evidence.notation import find_grouping

    return find_grouping(text) or around


_OLDER = compile_lazily(r"^-{3,} ?(?:Original Message|Ursprüngliche Nachricht) ?-{3,}$", re.MULTILINE)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences, each on one line, in order; a sentence longer than `LONGEST` is cut at spaces. One of a
    quoted paragraph or of an older message begins with ">"."""
    older = match.start() if (match := _OLDER.search(text)) else len(text)
    for begin, end in find_sentences(text):
        block = text[begin:end]
        row = is_row(block)
        sentence = CELL.join(block.strip().split("\t")) if row else block
        sentence = " ".join(sentence.split())
        line = text[text.rfind("\n", 0, begin) + 1 : begin].lstrip()
        if sentence and (line.startswith(">") or begin > older) and sentence[0] != ">":
            sentence = f"> {sentence}"
        start = 0
        while len(sentence) - start > LONGEST and not row:
            space = sentence.rfind(" ", start + 1, start + LONGEST)
            yield sentence[start : space if space > 0 else start + LONGEST]
            start = space + 1 if space > 0 else start + LONGEST
        if sentence[start:]:
            yield sentence[start:]


_RULE = compile_lazily(r"[|\s:=-]+\Z")


class Passages:
    """The sentences of one source and, for every key, the sentences with it. Build it once, use it for many claims.

    `headings` and `antecedents` hold, for every sentence, the heading above it (a short line before a text or a table,
    one in parentheses, or one that begins with # or ends with a colon) and the sentence that its pronoun refers to, or
    -1. A heading has the heading above it. `headers` hold, for every row of a table, the row that names its columns;
    `grouping` is the character that groups thousands in the text, empty if that is unknown.
    """

    def __init__(self, text: str) -> None:
        self.sentences = list(split_sentences(text))
        self.grouping = _find_grouping(text)
        self.postings: dict[str, list[int]] = {}
        self.headings: list[int] = []
        self.antecedents: list[int] = []
        self.headers: dict[int, int] = {}
        self._words: dict[int, list[Word]] = {}
        trail: list[tuple[int, int]] = []
        header = -1
        for place, sentence in enumerate(self.sentences):
            level = _level(sentence, self.sentences[place + 1 : place + 2])
            while level and trail and trail[-1][0] >= level:
                trail.pop()
            self.headings.append(trail[-1][1] if trail else -1)
            if level:
                trail.append((level, place))
            antecedent = -1
            if place and not level:
                # a pronoun as subject ("It was", "In 1990 she"), or one at the beginning ("Its roof")
                first = [match[0] for match in islice(_FIRST.finditer(sentence[:80]), 4)]
                if any(_is_among(word, PRONOUNS if number else POINTERS) for number, word in enumerate(first)):
                    antecedent = place - 1 if self.antecedents[place - 1] < 0 else self.antecedents[place - 1]
            self.antecedents.append(antecedent)
            if not is_row(sentence):
                header = -1
            elif _RULE.match(sentence) and place and is_row(self.sentences[place - 1]):
                header = place - 1
            elif header >= 0:
                self.headers[place] = header
            for key in {word.key for word in self.words(place)}:
                self.postings.setdefault(key, []).append(place)

    def words(self, place: int) -> list[Word]:
        """Return the content words of one sentence."""
        if place not in self._words:
            text = self.sentences[place]
            header = self.sentences[self.headers[place]] if place in self.headers else ""
            if is_row(text):
                from hira.evidence.cells import CHANGING

                if CHANGING.search(header + text):
                    cells = self.read_cells(place)
                    text = CELL.join([*(cell.name for cell in cells if not header), *(cell.text for cell in cells)])
            self._words[place] = read_words(text, self.grouping)
        return self._words[place]

    def list_headings(self, place: int) -> Iterator[int]:
        """Yield the headings above a sentence, the nearest first."""
        while (place := self.headings[place]) >= 0:
            yield place

    def read_cells(self, place: int) -> "list[Cell]":
        """Return the cells of a row, which name their columns ("Region: North") or are under a header. A number has the
        magnitude that the name of its column has, and is negative in parentheses; 12.500 is written as English writes
        what it is in the language of the text."""
        from hira.evidence.cells import read_cells

        row = self.sentences[place]
        header = self.sentences[self.headers[place]] if place in self.headers else ""
        if _find_grouping(row, self.grouping) == ".":
            row = AMBIGUOUS.sub(lambda number: number[0].replace(".", "").replace(",", "."), row)
        return read_cells(row, header)

    def quote(self, place: int) -> str:
        """Return a sentence, a row with its header."""
        header = f"{self.sentences[self.headers[place]]}\n" if place in self.headers else ""
        return f"{header}{self.sentences[place]}"


def _level(line: str, following: list[str]) -> int:
    """Return the level of a heading, 0 for any other line: it begins with #, ends with a colon, is in parentheses,
    or is short, is not a sentence and precedes one or a row."""
    if line[0] == "#":
        return 2 + min(len(line) - len(line.lstrip("#")), 6)
    if is_row(line) or (len(line) >= 80 and TRAIL not in line):
        return 0
    if TRAIL in line and line[-1] not in _FINAL:
        return 2
    if line[0] == "(" and line[-1] == ")":
        return 1
    below = following[0] if following else ""
    leads = bool(below) and (below[-1] in _FINAL or is_row(below) or LABEL.match(below) is not None)
    listed = BULLET.match(line)[0].strip() or LABEL.match(line)  # type: ignore[index]
    return 9 if line[-1] == ":" or (leads and line[-1] not in _FINAL and not listed) else 0


def begins_with_pointer(sentence: str) -> bool:
    """Return whether the first word of a sentence is a pronoun or points to something said before."""
    first = _FIRST.search(sentence)
    return bool(first) and _is_among(first[0], POINTERS)  # type: ignore[index]  # bool() is not seen as a check


def _is_among(word: str, pointers: frozenset[str]) -> bool:
    """Return whether a word is one of these, and no acronym: "IT" is no pronoun."""
    return word.lower() in pointers and not (len(word) > 1 and word.isascii() and word.isupper())


_FIRST = compile_lazily(r"[^\W_]+")
