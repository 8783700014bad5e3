"""Claims made from public paragraphs, whose truth is known: copies, and copies with one thing exchanged.

`read_paragraphs` reads them from JSON Lines with `title` and `text`; the text is not kept here.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from hira.evidence.passages import split_sentences

Form = Literal[
    "copy", "part", "word", "number", "name", "subject", "exchange", "negation", "table", "table value",
    "table subject", "label", "label value", "label subject", "label reversed"
]  # fmt: skip
PAIRS = """
opened closed|opening closing|river lake|director composer|directed composed|northern southern|north south|east west
eastern western|born buried|first last|largest smallest|oldest newest|won lost|husband brother|wife sister|father uncle
mother aunt|son nephew|daughter niece|actor singer|actress dancer|novel poem|album single|film play|book magazine
writer painter|author editor|poet sculptor|politician lawyer|king duke|queen princess|president mayor|professor student
city village|town county|island peninsula|mountain valley|church castle|school hospital|university museum|bridge tunnel
company charity|founded dissolved|built demolished|increased decreased|rose fell|before after|above below|male female
kilometres miles|metres feet|million billion|percent degrees|years months|days weeks|daily monthly|annual weekly
spring autumn|summer winter|morning evening|january october|monday friday|army navy|battle treaty|war strike
attacked defended|bought sold|hired fired|joined left|began ended|started finished|released cancelled|published banned
written translated|produced sponsored|designed painted|played coached|football hockey|basketball tennis|guitar drums
piano violin|rock jazz|drama comedy|species genus|plant animal|bird fish|tree shrub|red blue|black white|gold silver
iron copper|wooden stone|old young|early late|public private|national regional|federal municipal|official informal
capital suburb|member leader|chairman treasurer|teacher pupil|doctor engineer|scientist journalist|officer sergeant
team league|player referee|season week|game practice|series episode|television radio|single married|alive dead
local foreign|domestic international|primary secondary|upper lower|inner outer|left right|good bad|major minor|high low
long short|wide narrow|deep shallow|fast slow|hot cold|wet dry|rich poor|strong weak|heavy light|full empty
""".replace("\n", "|").strip("|")
WORDS = {}
for pair in PAIRS.split("|"):
    first, second = pair.split()
    WORDS[first], WORDS[second] = second, first


@dataclass(frozen=True, slots=True)
class Edit:
    """A claim about a paragraph, and whether it is true."""

    form: Form
    claim: str
    title: str
    evidence: str
    true: bool
    kind: str = "page"
    question: str = ""


def read_paragraphs(path: Path, start: int = 0, stop: int | None = None) -> list[tuple[str, str]]:
    """Return titles and texts of the paragraphs that have two sentences or more."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[start:stop]]
    return [(row["title"], row["text"]) for row in rows if len(list(split_sentences(row["text"]))) > 1]


def edit_paragraphs(paragraphs: Sequence[tuple[str, str]], *, each: int, seed: int = 5) -> Iterator[Edit]:
    """Yield at most `each` claims of every form, from paragraphs drawn at random."""
    draw = random.Random(seed)
    makers = {"copy": copy, "part": take_first_predicate, "word": exchange_word, "number": exchange_number,
              "name": exchange_name, "subject": exchange_subject, "exchange": exchange_ends,
              "negation": negate}  # fmt: skip
    for form, maker in makers.items():
        made = 0
        for title, text in draw.sample(paragraphs, len(paragraphs)):
            sentences = [one for one in split_sentences(text) if 30 < len(one) < 600]
            more = {"title": title} if form == "subject" else {}
            claim = maker(sentences, draw, **more) if len(sentences) > 1 else ""
            if claim and claim not in sentences:
                question = ask_for_other(claim) if form == "exchange" else ""
                yield Edit(form, claim, title, text, form in ("copy", "part"), question=question)  # type: ignore[arg-type]
                made += 1
            elif claim and form == "copy":
                yield Edit("copy", claim, title, text, true=True)
                made += 1
            if made == each:
                break
    yield from edit_tables(draw, each)
    yield from edit_labels(draw, each)


def copy(sentences: Sequence[str], draw: random.Random) -> str:
    return draw.choice(sentences)


_TWO_PREDICATES = re.compile(r"([^,;:()]{25,}) and (?:is|are|was|were|has|have|had) ")
_PREDICATE = re.compile(r"\b(?:is|are|was|were|has|have|had)\b")
_SUBORDINATE = re.compile(r"\b(?:that|which|who|whose|if|when|while|because|although|not|no|never)\b", re.IGNORECASE)


def take_first_predicate(sentences: Sequence[str], draw: random.Random) -> str:
    """Return the first of two statements about one subject: "Orland is a town and was founded in 1412"."""
    found = [match[1] for sentence in sentences if (match := _TWO_PREDICATES.match(sentence))]
    whole = [part for part in found if _PREDICATE.search(part) and not _SUBORDINATE.search(part)]
    return f"{draw.choice(whole)}." if whole else ""


def exchange_word(sentences: Sequence[str], draw: random.Random) -> str:
    """Exchange one plain word for its counterpart."""
    places = [
        (sentence, match)
        for sentence in sentences
        for match in re.finditer(r"(?<![\w-])[a-z]+(?![\w-])", sentence)
        if match[0] in WORDS
    ]
    if not places:
        return ""
    sentence, match = draw.choice(places)
    return sentence[: match.start()] + WORDS[match[0]] + sentence[match.end() :]


def exchange_number(sentences: Sequence[str], draw: random.Random) -> str:
    """Exchange a number for another one of the paragraph, else for one that is near it."""
    places = [(one, match) for one in sentences for match in re.finditer(r"(?<![\w.,-])\d{1,4}(?![\w,.-]*\d)", one)]
    if not places:
        return ""
    sentence, match = draw.choice(places)
    others = [other[0] for _, other in places if other[0] != match[0] and len(other[0]) == len(match[0])]
    new = draw.choice(others) if others else str(int(match[0]) + draw.choice((1, 2, 10)))
    return sentence[: match.start()] + new + sentence[match.end() :]


_NAME = re.compile(r"(?<![.!?\"“(]\s)(?<!^)\b[A-Z][a-zé]{2,}(?:\s[A-Z][a-zé]+)*")


def exchange_name(sentences: Sequence[str], draw: random.Random) -> str:
    """Exchange a name for another one of the paragraph."""
    places = [(sentence, match) for sentence in sentences for match in _NAME.finditer(sentence)]
    if not places:
        return ""
    sentence, match = draw.choice(places)
    others = sorted({other[0] for _, other in places if not set(other[0].split()) & set(sentence.split())})
    return sentence[: match.start()] + draw.choice(others) + sentence[match.end() :] if others else ""


_SUBJECT = re.compile(r"([A-Z][\w'’-]+(?: (?:of |the )?[\w'’-]+){0,4}?) (?=(?:is|was|are|were|has|had)\b)")
_NAMED = re.compile(r"((?!The )[A-Z][\w'’-]+(?: (?:of |the )?[A-Z][\w'’-]+){0,4}?) (?=(?:is|was|are|were|has|had)\b)")


def exchange_subject(sentences: Sequence[str], draw: random.Random, title: str = "") -> str:
    """Give a sentence the subject of its neighbour, which is a name and not that of the paragraph."""
    pairs = [
        (ours, theirs, sentence)
        for before, sentence in [*pairwise(sentences), *pairwise(sentences[::-1])]
        if (ours := _SUBJECT.match(sentence))
        and (theirs := _NAMED.match(before))
        and not _share(ours[1], f"{theirs[1]}")
        and not _share(title, theirs[1])
    ]
    if not pairs:
        return ""
    ours, theirs, sentence = draw.choice(pairs)
    return theirs[1] + sentence[ours.end(1) :]


_RUN = r"(?:[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*)"
_ENDS = re.compile(rf"({_RUN})((?: [a-z][\w-]*){{1,8}}) ({_RUN})((?: [a-z0-9][\w-]*)*)\.")


def exchange_ends(sentences: Sequence[str], draw: random.Random) -> str:
    """Exchange the two names of a sentence that begins with one: "Ida taught Otto" becomes "Otto taught Ida"."""
    found = [match for one in sentences if (match := _ENDS.fullmatch(one)) and not _share(match[1], match[3])]
    if not found:
        return ""
    first, between, second, rest = draw.choice(found).groups()
    return f"{second}{between} {first}{rest}."


def ask_for_other(claim: str) -> str:
    """Return the question to which the sentence before its exchange is the answer."""
    match = _ENDS.fullmatch(claim)
    return f"Who{match[2]} {match[1]}{match[4]}?" if match else ""


_POINTING = frozenset("it he she they this that these those his her its their there".split())


def _share(one: str, other: str) -> bool:
    """Return whether two subjects may be the same thing."""
    ours, theirs = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return bool((ours - {"the"}) & (theirs - {"the"})) or bool((ours | theirs) & _POINTING)


def negate(sentences: Sequence[str], draw: random.Random) -> str:
    """Put a "not" behind the first verb."""
    found = [one for one in sentences if re.search(r"\b(?:is|was|are|were) (?!not|also|n[o']t)", one)]
    return re.sub(r"\b(is|was|are|were) ", r"\1 not ", draw.choice(found), count=1) if found else ""


_PLACES = "Arlen Brook Corva Dunmere Estow Farrin Glade Hollin Irwell Jarrow Kelby Lorne Marden Norvik".split()
_COLUMNS = "budget revenue headcount rainfall turnout production visitors exports wages rent".split()
_YEARS = tuple(map(str, range(2015, 2026)))


def edit_tables(draw: random.Random, each: int) -> Iterator[Edit]:
    """Yield claims about rows of generated tables, as hira writes sheets and as Markdown has them."""
    for number in range(each):
        places, columns = draw.sample(_PLACES, 4), draw.sample(_COLUMNS, 2)
        year = draw.choice(_YEARS)
        rows = [(place, year, *(str(draw.randint(100, 99_999)) for _ in columns)) for place in places]
        names = ("Region", "Year", *(column.capitalize() for column in columns))
        lines = [" | ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=True)) for row in rows]
        if number % 2:
            lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
        text = "\n".join(lines)
        row, other = draw.sample(rows, 2)
        column = draw.randrange(2)
        wording = draw.choice(
            ("The {c} of {p} in {y} was {v}", "In {y}, the {c} in {p} was {v}", "{p} had a {c} of {v} in {y}")
        )

        def state(place: str, value: str) -> str:
            return wording.format(c=columns[column], p=place, y=year, v=value)  # noqa: B023 - called in this round

        title = f"Regions {year}"
        yield Edit("table", state(row[0], row[2 + column]), title, text, true=True, kind="file")
        yield Edit("table value", state(row[0], row[3 - column]), title, text, true=False, kind="file")
        yield Edit("table subject", state(other[0], row[2 + column]), title, text, true=False, kind="file")


_PEOPLE = "Ada Holm|Bo Lind|Cara Voss|Dirk Falk|Ella Brandt|Finn Moor|Gesa Pohl|Hugo Stern".split("|")
_ROLES = "manager founder teacher landlord rival sponsor architect treasurer".split()


def edit_labels(draw: random.Random, each: int) -> Iterator[Edit]:
    """Yield claims about labelled values below headings ("- **Manager:** Ada Holm"), as notes have them."""
    for _ in range(each):
        places, columns, roles = draw.sample(_PLACES, 2), draw.sample(_COLUMNS, 2), draw.sample(_ROLES, 2)
        people = draw.sample(_PEOPLE, 4)
        mark = draw.choice(("- **{}:** {}", "{}: {}", "* {}: {}"))
        values = {
            place: dict(zip([*columns, *roles], [*(f"{draw.randint(100, 99_999):,}" for _ in columns), *pair],
                            strict=True))
            for place, pair in zip(places, (people[:2], people[2:]), strict=True)
        }  # fmt: skip
        text = "\n\n".join(
            f"## {place}\n\n" + "\n".join(mark.format(name.capitalize(), value) for name, value in held.items())
            for place, held in values.items()
        )
        place, other = places
        name = draw.choice((columns, roles))[draw.randrange(2)]
        wordings = ["The {n} of {p} is {v}", "The {n} of {p} was {v}", "{v} is the {n} of {p}"]
        wording = draw.choice(wordings if name in roles else wordings[:2])
        value, neighbour = values[place][name], next(values[place][key] for key in values[place] if key != name)
        told = {"title": "Places", "evidence": text, "kind": "file"}
        yield Edit("label", wording.format(n=name, p=place, v=value), **told, true=True)
        yield Edit("label value", wording.format(n=name, p=place, v=neighbour), **told, true=False)
        yield Edit("label subject", wording.format(n=name, p=other, v=value), **told, true=False)
        turned = draw.choice(("{p} is the {n}", "{p} is the {n} of {v}", "{p} is {v}'s {n}"))
        reversed_claim = turned.format(n=roles[0], p=place, v=values[place][roles[0]])
        yield Edit("label reversed", reversed_claim, **told, true=False)
