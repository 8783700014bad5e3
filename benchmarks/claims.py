"""Generated claims with known truth: paraphrases, swaps between neighbours, wrong values, wrong names, negations.

Six domains. A page tells of three things of one kind, two or three facts each; every fact has several wordings, so
that a true claim is rarely a copy of its sentence. `generate_claims` makes the same rows for the same seed.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Form = Literal["paraphrase", "copy", "swap", "value", "name", "word", "negation"]
Draw = random.Random


@dataclass(frozen=True, slots=True)
class Row:
    domain: str
    form: Form
    claim: str
    evidence: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """One kind of fact: its wordings with `{s}` for the subject and `{v}` for the value. The first can be denied."""

    wordings: tuple[str, ...]
    draw: Callable[[Draw], str]


_HEADS = "Bar Kel Mor Tan Ves Lor Hald Brin Os Fenn Dra Cul Ner Sel Wick Ard Pel Rho".split()
_TAILS = "den mark ov ina ley wick stad ora heim by ett ane ford um holt gard esk ion".split()
_GIVEN = "Ida Tomas Lena Marek Ruth Oskar Nadia Felix Ines Viktor Clara Jonas Edda Pavel Greta Simon".split()


def _place(draw: Draw) -> str:
    return draw.choice(_HEADS) + draw.choice(_TAILS)


def _person(draw: Draw) -> str:
    return f"{draw.choice(_GIVEN)} {_place(draw)}"


def _year(draw: Draw) -> str:
    return str(draw.randint(1702, 2019))


def _whole(low: int, high: int, unit: str = "") -> Callable[[Draw], str]:
    return lambda draw: f"{draw.randint(low, high):,}{unit}"


def _decimal(low: int, high: int, unit: str) -> Callable[[Draw], str]:
    return lambda draw: f"{draw.randint(low, high)}.{draw.randint(1, 9)}{unit}"


def _one_of(words: str) -> Callable[[Draw], str]:
    return lambda draw: draw.choice(words.split("|"))


SUBJECTS: dict[str, tuple[str, ...]] = {
    "buildings": (
        "the mill of {p}",
        "the bridge of {p}",
        "the town hall of {p}",
        "the lighthouse of {p}",
        "{p} Castle",
    ),
    "rivers": ("the river {p}", "the {p}", "Lake {p}", "the {p} canal"),
    "people": ("{n}",),
    "companies": ("{p} Bank", "the {p} Group", "{p} Motors", "{p} Foods"),
    "works": ("the novel {p}", "the opera {p}", "the film {p}", "the ballet {p}"),
    "medicine": ("the drug {p}", "the vaccine {p}", "the implant {p}"),
}
# fmt: off
FACTS: dict[str, tuple[Fact, ...]] = {
    "buildings": (
        Fact(("{s} is built of {v}", "{s} is made of {v}", "the walls of {s} are {v}"),
             _one_of("granite|sandstone|brick|timber|limestone|slate")),
        Fact(("{s} was opened in {v}", "{s} opened in {v}", "the opening of {s} took place in {v}",
              "in {v}, {s} was opened to the public"), _year),
        Fact(("{s} was designed by {v}", "{v} designed {s}", "the architect of {s} was {v}",
              "the designer of {s} is {v}"), _person),
        Fact(("{s} cost {v} crowns", "the cost of {s} was {v} crowns", "{v} crowns were paid for {s}",
              "building {s} cost {v} crowns"), _whole(20, 90_000)),
        Fact(("{s} is {v} metres high", "the height of {s} is {v} meters", "{s} rises to {v} metres",
              "{s} has a height of {v} m"), _whole(8, 140)),
    ),
    "rivers": (
        Fact(("{s} is home to {v}", "{v} live in {s}", "anglers catch {v} in {s}"),
             _one_of("salmon|trout|otters|pike|sturgeon|eels")),
        Fact(("{s} is {v} kilometres long", "{s} flows {v} kilometers", "the length of {s} is {v} kilometers",
              "{s} has a length of {v} km"), _whole(30, 2_900)),
        Fact(("{s} was dammed in {v}", "a dam was built on {s} in {v}", "in {v}, engineers dammed {s}"), _year),
        Fact(("{s} was first mapped by {v}", "{v} was the first to map {s}",
              "the first map of {s} is by {v}"), _person),
        Fact(("{s} supplies the town of {v} with water", "the town of {v} takes its water from {s}",
              "water from {s} is used by {v}"), _place),
    ),
    "people": (
        Fact(("{s} was born in {v}", "{s}'s birth was in {v}", "in {v}, {s} was born",
              "{s} came into the world in {v}"), _year),
        Fact(("{s} taught {v} at the university", "{s} was a professor of {v}",
              "{s} lectured on {v}"), _one_of("botany|chemistry|geology|music|law|history")),
        Fact(("{s} married {v}", "{s} was the spouse of {v}", "{v} and {s} were married", "{s} wed {v}"), _person),
        Fact(("{s} moved to {v} as a child", "as a child {s} moved to {v}", "{s} went to {v} in childhood"), _place),
        Fact(("{s} published {v} papers", "{s} wrote {v} papers",
              "the number of papers by {s} is {v}"), _whole(11, 400)),
    ),
    "companies": (
        Fact(("{s} makes {v}", "{s} produces {v}", "the main product of {s} is {v}"),
             _one_of("bicycles|glass|paint|furniture|turbines|paper")),
        Fact(("{s} was founded in {v}", "{s} was established in {v}", "the founding of {s} dates from {v}",
              "{s} has existed since {v}"), _year),
        Fact(("{s} is led by {v}", "{v} leads {s}", "the chief executive of {s} is {v}",
              "{v} is the head of {s}"), _person),
        Fact(("{s} employs {v} people", "{s} has {v} employees", "{v} people work for {s}"), _whole(40, 80_000)),
        Fact(("the revenue of {s} was {v} million dollars", "{s} had revenue of {v} million dollars",
              "{s} reported revenue of ${v} million"), _decimal(2, 900, "")),
        Fact(("{s} has its headquarters in {v}", "{s} is based in {v}",
              "the headquarters of {s} are in {v}"), _place),
    ),
    "works": (
        Fact(("{s} is about {v}", "{s} deals with {v}", "the subject of {s} is {v}"),
             _one_of("jealousy|war|exile|poverty|friendship|ambition")),
        Fact(("{s} appeared in {v}", "{s} was published in {v}", "{s} came out in {v}",
              "{s} was released in {v}"), _year),
        Fact(("{s} was written by {v}", "{v} wrote {s}", "{v} is the author of {s}",
              "the author of {s} is {v}"), _person),
        Fact(("{s} is set in {v}", "the setting of {s} is {v}", "{s} takes place in {v}"), _place),
        Fact(("{s} sold {v} copies in its first year", "in its first year {s} sold {v} copies",
              "{v} copies of {s} were sold in the first year"), _whole(900, 90_000)),
    ),
    "medicine": (
        Fact(("{s} was approved in {v}", "the approval of {s} came in {v}", "regulators approved {s} in {v}",
              "{s} received approval in {v}"), _year),
        Fact(("{s} was developed by {v}", "{v} developed {s}", "the developer of {s} was {v}"), _person),
        Fact(("{s} was tested on {v} patients", "{v} patients took part in the trial of {s}",
              "the trial of {s} had {v} patients"), _whole(24, 9_000)),
        Fact(("{s} caused {v} in some patients", "some patients had {v} after {s}",
              "a side effect of {s} was {v}"), _one_of("nausea|headache|fatigue|fever|dizziness|insomnia")),
        Fact(("{s} reduced pain by {v} percent", "pain fell by {v}% with {s}",
              "with {s}, pain was reduced by {v} percent"), _whole(11, 89)),
    ),
}
# fmt: on
DOMAINS = tuple(FACTS)
_AUXILIARY = re.compile(r" (was|is|were|are|has|had) ")


def generate_claims(domain: str, *, pages: int, seed: int) -> Iterator[Row]:
    """The claims of so many pages of one domain."""
    draw = random.Random(f"{domain} {seed}")
    for _ in range(pages):
        yield from _page(domain, draw)


def _page(domain: str, draw: Draw) -> Iterator[Row]:
    town = _place(draw)
    kinds = (
        draw.sample(SUBJECTS[domain], min(3, len(SUBJECTS[domain])))
        if len(SUBJECTS[domain]) > 2
        else SUBJECTS[domain] * 3
    )
    shared = "{p} " not in kinds[0] and "of {p}" in kinds[0] and draw.random() < 0.7
    subjects = [kind.format(p=town if shared else _place(draw), n=_person(draw)) for kind in kinds]
    if len(set(subjects)) < len(subjects):
        return
    facts = [draw.sample(FACTS[domain], draw.randint(1, 3)) for _ in subjects]
    values: dict[tuple[int, Fact], str] = {}
    lines: list[str] = []
    for at, subject in enumerate(subjects):
        for number, fact in enumerate(facts[at]):
            values[at, fact] = fact.draw(draw)
            wording = draw.choice(fact.wordings[:2])
            pronoun = ("she" if domain == "people" else "it") if wording.startswith("{s} ") else subject
            lines.append(_state(wording, pronoun if number and draw.random() < 0.4 else subject, values[at, fact]))
    evidence = " ".join(lines)
    for (at, fact), value in values.items():
        wording = draw.choice(fact.wordings)
        claim = _state(wording, subjects[at], value)
        yield Row(domain, "copy" if claim in lines else "paraphrase", claim, evidence, supported=True)
        other = draw.choice([index for index in range(len(subjects)) if index != at])
        if values.get((other, fact)) != value:
            yield Row(
                domain, "swap", _state(draw.choice(fact.wordings), subjects[other], value), evidence, supported=False
            )
        if (wrong := fact.draw(draw)) not in evidence:
            form: Form = "value" if wrong[0].isdigit() else "name" if wrong[0].isupper() else "word"
            yield Row(domain, form, _state(draw.choice(fact.wordings), subjects[at], wrong), evidence, supported=False)
        denied = _AUXILIARY.sub(r" \1 not ", _state(fact.wordings[0], subjects[at], value), count=1)
        if " not " in denied:
            yield Row(domain, "negation", denied, evidence, supported=False)
    stranger = draw.choice(kinds).format(p=_place(draw), n=_person(draw))
    if stranger not in evidence:
        (_, fact), value = draw.choice(list(values.items()))
        yield Row(domain, "name", _state(draw.choice(fact.wordings), stranger, value), evidence, supported=False)


def _state(wording: str, subject: str, value: str) -> str:
    text = wording.format(s=subject, v=value)
    return text[0].upper() + text[1:] + "."
