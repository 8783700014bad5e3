"""Words that mean the same, words that mean the opposite, words that weigh nothing: English and Chinese."""

import re
import unicodedata
from functools import lru_cache

from hira.relevance import words

_SAME = """
build built construct erect; begin began begun start commence launch; end finish conclude; big large huge;
write wrote written author pen; film movie; win won receive award earn; buy bought acquire purchase;
establish founded set-up; make made produce manufacture; show demonstrate reveal; use utilise utilize;
people inhabitant resident; die died death dead; car automobile; company firm; kid child children;
high height tall; long length; wide width; deep depth; heavy weigh weight weighed; cost price; publish release issue;
lead led head; marry married wife husband spouse; help assist; reduce cut lower; fast quick rapid speed;
annual annually yearly; live reside; include comprise contain consist; need require; allow permit; small little tiny;
keep kept; hold held; grow grew grown growth rise rose risen increase gain climb surge;
fall fell fallen drop decrease decline shrink shrank shrunk; lose lost loss; sell sold; pay paid; send sent;
take took taken; give gave given; speak spoke spoken; spend spent; leave left depart; meet met; run ran;
become became; come came; go went gone; tell told; teach taught; think thought; bring brought; catch caught;
stand stood; fly flew flown; draw drew drawn; choose chose chosen; drive drove driven; sing sang sung;
sink sank sunk; throw threw thrown; swim swam; man men; woman women; foot feet; find found discover discovery;
larger bigger greater; largest biggest greatest; smaller tinier; smallest tiniest; highest tallest; higher taller;
beat beaten defeat defeated; near nearby; get got; know knew known; wear wore worn; steal stole stolen;
break broke broken;
rule govern; ship vessel; doctor physician; job occupation; beautiful pretty; shut close closed;
destroy ruin; fix repair; choose select; also too; born birth; attend study studied; ill sick; teach instruct;
usually normally; often frequently; rich wealthy; important significant; show display; earlier before; later after;
per each every; vote ballot; permanent lasting; picture image photo; renew renovate refurbish; total sum;
average mean; maximum max; minimum min; complete finish; host held; locate situated lie lies lay; create creat;
aeroplane airplane plane; centre center; colour color; theatre theater; harbour harbor; organise organize;
twice double; population inhabitant; employ hire; approx about; nation country; war conflict; movie film
"""
_OPPOSITE = """
grow/fall; larger/smaller; largest/smallest; big/small; more/less; more/fewer; most/least; before/after; first/last;
highest/lowest; higher/lower; longest/shortest; longer/shorter; oldest/youngest; oldest/newest; older/younger;
best/worst; better/worse; north/south; east/west; northern/southern; eastern/western; left/right; win/lose; true/false;
open/shut; hot/cold; hotter/colder; hottest/coldest; warm/cold; major/minor; male/female; buy/sell; begin/end;
above/below; maximum/minimum; early/late; earlier/later; earliest/latest; import/export; legal/illegal;
possible/impossible; born/die; accept/reject; approve/reject; father/mother; son/daughter; brother/sister;
success/failure; succeed/fail; pass/fail; positive/negative; arrive/leave; enter/leave; over/under; safe/unsafe;
inside/outside; public/private; upper/lower; deepest/shallowest; deeper/shallower; wider/narrower; widest/narrowest;
heavier/lighter; heaviest/lightest; faster/slower; fastest/slowest; richer/poorer; richest/poorest; strong/weak;
stronger/weaker; include/exclude; allow/forbid; allow/prohibit; allow/ban; permit/forbid; cause/prevent;
all/some; day/night; winter/summer; spring/autumn; morning/evening; black/white; solid/liquid; add/remove;
profit/loss; deficit/surplus; majority/minority; help/harm; increase/reduce; grow/reduce; agree/disagree; up/down;
likely/unlikely; known/unknown; complete/incomplete; start/end; husband/wife; king/queen; acid/base; near/far;
create/destroy; build/destroy; full/empty; wet/dry; rural/urban; old/new; old/young; easy/hard; cheap/expensive;
cheaper/dearer; married/divorced; guilty/innocent; winner/loser; employ/dismiss; support/oppose; parent/child;
only/also; man/woman; boy/girl;
增长/下降; 增加/减少; 上升/下降; 提高/降低; 最大/最小; 最高/最低; 最长/最短; 最早/最晚; 最多/最少
"""
_IRREGULAR_STOPS = frozenset(
    "more most all some less least few fewer first last before after above below over under up down only always".split()
)
"""Words that carry the sense of a statement, though a search does not weigh them."""

_PRONOUNS = frozenset("he she him his her hers himself herself itself themselves themself upon per".split())

LIGHT = frozenset(
    """locate situated lie stand located known name named call called current currently official officially exact
    exactly according source page says states articles article text document say said state stated mention mentioned
    report reported show shown given overall namely therefore hence however answer question result following very
    quite just have number figure
    amount value equal total altogether well actual actually indeed first's there around about approximately
    roughly nearly almost circa today now ever yes both each respectively additionally furthermore moreover thus among
    count list be place type kind form every per person
    also too while during since until upon within along etc""".split()
)
APPOSITIVE = frozenset(
    """city town country state year river company person film book village island mountain lake nation
    province region area member time date day month author name term group team""".split()
)
NEGATIONS = re.compile(
    r"\b(?:not(?! only| just| least)|never|neither|nor|none|nobody|nothing|without|cannot|hardly"
    r"|no(?= [a-z])(?! longer than| less| more than)|fail(?:s|ed)? to|den(?:y|ies|ied))\b|\w+n[’']t\b"
    r"|不(?![仅但断同过管论少得])|没有?|未(?!来)|并非|无法|从未|并不",
    re.IGNORECASE,
)
_CJK_LIGHT = "约的是了在有和与及为于其它他她们也都就而该这那一个座位由被把从到至等之以所并且将对"


def folded(text: str) -> str:
    """Small letters without accents, straight apostrophes."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.replace("’", "'").lower())
    return "".join(sign for sign in plain if not unicodedata.combining(sign))


def _groups() -> dict[str, str]:
    heads: dict[str, str] = {}
    for group in _SAME.replace("\n", " ").split(";"):
        members = group.split()
        head = next((heads[one] for one in members if one in heads), members[0])
        for one in members:
            heads.setdefault(one, head)
    return heads


_HEADS = _groups()


@lru_cache(maxsize=100_000)
def root(word: str) -> str:
    """What a word is compared by: its group of same meaning, else its stem; empty for words that weigh nothing."""
    low = folded(word).removesuffix("'s").removesuffix("'")
    if low in _HEADS:
        return _HEADS[low]
    if low in _PRONOUNS:
        return ""
    if low in _IRREGULAR_STOPS:
        return low
    stems = words(low)
    if not stems:
        return ""
    stem = _DOUBLED.sub(r"\1", stems[0])
    return _STEMS.get(stem, stem)


_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_STEMS = {
    _DOUBLED.sub(r"\1", stem[0]): head for word, head in _HEADS.items() if (stem := words(word)) and len(word) > 3
}


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _OPPOSITE.replace("\n", " ").split(";"):
        one, other = (root(word.strip()) for word in pair.split("/"))
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _opposites()
CJK_OPPOSITES = [
    tuple(one.strip().split("/")) for one in _OPPOSITE.replace("\n", " ").split(";") if one.strip()[0] >= "\u4e00"
]
_ENDINGS = frozenset(
    [
        "",
        *"s e ed es ing er or ers ors ion ions ation ment ly al ive ity y ies ied ical ist ance ant ful able".split(),
        *"ar ian".split(),
    ]
)
_DEMONYM = frozenset(["n", "an", "ian", "ese", "ish", "s", "i", "'s"])


@lru_cache(maxsize=100_000)
def related(one: str, other: str) -> bool:
    """Whether two roots are forms of one word: construct and construction, invent and inventor."""
    short, long = sorted((one, other), key=len)
    if one == other or (len(short) >= 3 and long.startswith(short) and long[len(short) :] in ("d", "s", "ed", "ing")):
        return True
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= 5 and one[shared:] in _ENDINGS and other[shared:] in _ENDINGS


@lru_cache(maxsize=100_000)
def same_name(one: str, other: str) -> bool:
    """Whether two names in small letters are one: a country and its people meet, other names have to be equal."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and long.startswith(short) and long[len(short) :] in _DEMONYM


def cjk_chunks(text: str) -> list[str]:
    """A run of Chinese cut at the signs that only join."""
    return [chunk for chunk in re.split(f"[{_CJK_LIGHT}]", text) if chunk]
