"""Questions: the words that an answer needs, and the statement that a short answer makes of its question."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from hira.core.patterns import compile_lazily
from hira.evidence.passages import LIMITING, Word, bind, is_related, read_words
from hira.evidence.sentence import ANY_LINK, Sentence, is_past

MOST = 400
"""The number of content words of a claim; a longer one is not checked."""
BARE = 3
"""A claim of at most this number of content words is an answer that makes sense only together with the question."""
MOST_INSIDE = 6
"""The number of content words of an answer that is also put between the words of its question."""
_ASKING = frozenset(
    "what which who whom whose when where why how many much name tell give list me please exactly i we you us my our"
    " your anyone anybody anything".split()
)
_WO = "welchen welchem weshalb weswegen wovon womit wodurch wofür wozu woran worin woraus worauf worüber wonach wobei"
_ASKING_ELSEWHERE = tuple(
    (frozenset(asking.split()), frozenset(helping.split()))
    for asking, helping in (
        (f"wer wen wem wessen was wann wo wohin woher warum wieso wie viel viele vielen welche welcher welches {_WO}",
         "hat haben hatte hatten sich"),
        ("qui que quoi quand où pourquoi comment combien quel quelle quels quelles", "a ont avait fut t"),
        ("quién quiénes qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles", "ha han"),
        ("chi che cosa quando dove perché come quanto quanta quanti quante quale quali", "è ha hanno fu sono"),
        ("quem que quando onde como quanto quanta quantos quantas qual quais", "é foi"),
        ("wie wat wanneer waar waarom hoe hoeveel welke welk", "heeft hebben"),
    )
)  # fmt: skip
"""The asking and the helping words of German, French, Spanish, Italian, Portuguese and Dutch."""
_ASKING_KIND = frozenset(
    "welche welcher welches welchen welchem wie viel quel quelle quels quelles qué cuál cuánto cuánta"
    " quale quali quanto quanta qual quais welke welk hoe".split()
)
"""Those of them before the kind of thing that is asked for ("Quel jour", "In welchem Jahr")."""
COUNTING = frozenset(
    "many much viel viele vielen combien cuántos cuántas quanti quante quantos quantas hoeveel".split()
)
"""Those before what is counted."""
BEFORE_ASKING = frozenset(
    "for in at on from to by with since until of an auf ab aus bei um zu bis seit mit nach von in vor für durch".split()
)
"""Prepositions before an asking word: "At what time", "An wie vielen Tagen"."""
_PERMITTING = frozenset("may can could should must do am darf kann muss soll dürfen können müssen sollen".split())
_PERSONS = frozenset("i we you one ich wir man".split())
"""After one of the words above, who asks: "May I", "Darf ich"."""
_COURTESY = compile_lazily(
    r"\W*(?:(?:please )?(?:(?:could|can|would|will) (?:you|anyone|someone) (?:please )?)?(?:tell|show) (?:me|us)"
    r"|do you know|(?:I|we)(?: would|['’]d) like to know|(?:kannst|könntest) du mir (?:bitte )?sagen"
    r"|(?:können|könnten) Sie mir (?:bitte )?sagen|weißt du|wissen Sie)[\s,:]+"
    r"(?=(?:\w+ )?(?:wh\w+|how|w(?:er|en|em|as|ann|o\w*|arum|ie\w*|e(?:lch|ss|sh)\w+))\b)",
    re.IGNORECASE,
)
"""Words before a question: "Could you tell me where …"."""
_INDIRECT = compile_lazily(r"(who|what|which|where|when|why|how \w+) (.+?) (is|are|was|were)\b", re.IGNORECASE)
_CONTRACTED = compile_lazily(r"\b(what|who|where|when|why|how)['’]s\b", re.IGNORECASE)
_DIRECTIONS = frozenset("from to since until".split())
"""Words that begin or end a question and come before its answer: "To how much did it fall?"."""
ASKING_UNSPACED = compile_lazily(
    "为什么|為什麼|什么|什麼|多少|怎么|怎麼|怎样|怎樣|何时|何時|何地|哪[里裡儿兒些个個]?|谁|誰|几点钟?|幾點鐘?|几|幾|吗|嗎|呢|何|いつ|どこ|どの|どれ|いくつ|いくら|なぜ"
)
"""The asking words of Chinese and Japanese, which no space sets apart."""
_QUESTION = compile_lazily(
    r"[?？؟]|^\W*(?:who|whom|whose|what|when|where|which|why|how|name|list|give|tell)\b", re.IGNORECASE
)
MODAL = "will would can could should must may might shall kann können muss müssen soll sollen darf dürfen".split()
"""Auxiliaries that say something else: they belong to the statement."""
_REQUIRING = frozenset("must should shall muss müssen soll sollen".split())
AUXILIARY = compile_lazily(
    rf"\b(?:is|are|was|were|do|does|did|has|have|had|{'|'.join(MODAL)}"
    r"|ist|sind|war|waren|wird|werden|wurde|wurden|hat|haben|hatte|hatten)\b",
    re.IGNORECASE,
)
_ASKS_ADVERB = compile_lazily(r"\W*(?:wann|wo|wohin|woher|warum|wieso|weshalb|wie)\b", re.IGNORECASE)
"""German questions whose verb comes before the subject, and in their statement after it."""
_FRONTED = frozenset(("for", "in", "after", "before", "during", "with"))
"""Links of a phrase that may also begin the statement: "For packs the warranty is a year"."""
ASKS_BY = compile_lazily(r"\bby\b", re.IGNORECASE)
_ASKS_OBJECT = compile_lazily(
    r"\W*(?:wen|wem|wessen|(?:a|à|da|de|di|para|por|pour|avec|con)\s+(?:quién|quiénes|qui|quem|chi))\b", re.IGNORECASE
)
"""Questions of other languages that ask for the object: their statement has another order."""
_BINDING = ("by", "from", "accusative", "dative")
"""Links that tell subject and object, or where from and where to, apart."""
COPULA = compile_lazily(r"\W*(?:who|what|which)\s+(?:is|are|was|were)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """The content words of a question. `wanted` are those that an answer's evidence has to hold: not the asking words,
    and not the kind of thing that is asked for ("which river", "how long")."""

    text: str
    words: tuple[Word, ...]
    wanted: tuple[Word, ...]
    kinds: tuple[Word, ...] = ()
    """"river" of "which river": the kind of thing that is asked for."""
    role: Word | None = None
    """"president" of "who is the president of Orland?": whose bearer is asked for."""
    counted: tuple[Word, ...] = ()
    """"rooms" of "how many rooms does the inn have?"."""
    described: tuple[Word, ...] = ()
    """"of holiday" of "how many days of holiday do you have?"."""


def read_question(text: str) -> Question:
    """Return the words of a question; of a topic, which asks nothing, none is wanted."""
    if not _QUESTION.search(text):
        return Question(text, tuple(read_words(text)[:MOST]), ())
    if text.isupper() and " " in text.strip():  # in capitals, every word would be a name
        text = text.lower()
    if courtesy := _COURTESY.match(text):  # "Could you tell me where the inn is?" is "where is the inn?"
        text = _INDIRECT.sub(r"\1 \3 \2", text[courtesy.end() :], count=1)
    text = _CONTRACTED.sub(r"\1 is", text)
    words = tuple(read_words(ASKING_UNSPACED.sub(" ", text))[:MOST])
    lower = [word.text.lower() for word in words]
    before = {"which", "how"}
    if AUXILIARY.search(text):  # "What repels …?" asks for a thing
        before.add("what")
    kinds = {
        place
        for place, word in enumerate(words)
        if word.kind == "word"
        and (
            (word.link.endswith("which") and not (place == 0 and COPULA.match(text)))
            or (place and word.close and lower[place - 1] in before)
            or lower[max(place - 1, 0) : place + 1]
            in (["much", "money"], ["much", "time"], ["many", "times"])  # units answer
        )
    }
    asking = set(_ASKING)
    for words_asking, words_helping in _ASKING_ELSEWHERE:
        if not words_asking.isdisjoint(lower[:2]):
            asking |= words_asking | words_helping | (BEFORE_ASKING & set(lower[:1]))
            kinds |= {place for place, word in enumerate(words) if word.close and lower[place - 1] in _ASKING_KIND}
    if lower[:1] and lower[0] in _PERMITTING and not _PERSONS.isdisjoint(lower[1:2]):
        asking |= set(lower[:2])
    wanted = tuple(
        word
        for place, word in enumerate(words)
        if not (word.light or lower[place] in asking or place in kinds or (lower[place], word.link) == ("total", "in"))
    )
    named = tuple(words[place] for place in sorted(kinds) if lower[place] not in asking)
    role = _find_role(wanted) if COPULA.match(text) else None
    return Question(text, words, wanted, named, role, *_find_counted(words))


def asks_yes_no(question: str) -> bool:
    """Return whether a question has no asking word, so that yes or no answers it."""
    lower = re.findall(r"\w+", question.lower())[:3]
    asking = _ASKING.union(*(words for words, _ in _ASKING_ELSEWHERE)) - {"i", "we", "you"}
    asks = asking.isdisjoint(lower[:2]) or AUXILIARY.match(question.strip())
    return bool(lower and asks) and not ASKING_UNSPACED.search(question)


def _find_counted(words: Sequence[Word]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the phrase after "how many", and the phrase with "of" after what is counted."""
    first = next((place + 1 for place, word in enumerate(words) if word.text.lower() in COUNTING), len(words))
    counted = list(words[first : first + 1])
    if not counted or not (counted[0].close or counted[0].link == "of"):
        return (), ()
    asking = words[first - 1].text.lower()
    if (asking == "combien" and counted[0].close) or (asking == "viel" and counted[0].kind != "name"):
        return (), ()  # a verb: "Combien coûte …", "Wie viel kostet …"
    counted += takewhile(lambda word: word.close and word.text.lower() not in MODAL, words[first + 1 :])
    end = next(place + 1 for place, word in enumerate(words) if word.key == counted[-1].key)
    described = list(words[end : end + 1])
    if described and described[0].link == "of":
        described += takewhile(lambda word: word.close and word.text.lower() not in MODAL, words[end + 1 :])
    else:
        described = []
    return (counted[0]._replace(link="", close=True), *counted[1:]), tuple(described)


def list_wanted(asked: Question, sentence: Sentence) -> Sequence[Word]:
    """Return the words that an answer's evidence has to hold; of a request its verb first, no "should"."""
    verbs = [word for word in asked.wanted if is_related(word.key, {sentence.request})]
    others = (word for word in asked.wanted if word not in verbs and word.text.lower() not in _REQUIRING)
    return [*verbs, *others] if verbs else asked.wanted


def _find_role(wanted: Sequence[Word]) -> Word | None:
    """Return the head of the first phrase, None if that is a name."""
    end = next((place for place, word in enumerate(wanted) if place and not word.close), len(wanted))
    return wanted[end - 1] if wanted and wanted[end - 1].kind == "word" else None


def replace_pronoun(words: Sequence[Word], wanted: Sequence[Word]) -> Sequence[Word]:
    """Return a claim that begins with a pronoun ("It was built") with what the question asks about in its place."""
    known = {word.key for word in words}
    subject = [word for word in wanted if word.key not in known]
    return [subject[0]._replace(link=""), *subject[1:], *words[1:]] if subject else words


def fill_gap(answer: Sequence[Word], asked: Question, sentence: Sentence) -> Iterator[Sequence[Word]]:
    """Yield the statements that an answer makes of its question: the answer in front of the words of the question, or,
    if it has an auxiliary ("did Otto teach", "is the inn"), at each place among them. "By", which tells who does it,
    must be the same, and of what "does" asks for the sentence may not speak as past."""
    helped = AUXILIARY.search(asked.text) or _ASKS_ADVERB.match(asked.text)
    described = [word for word in asked.described if word.key in sentence.keys]
    taken = {word.key for word in (*asked.counted, *described)}
    wanted = [word for word in list_wanted(asked, sentence) if word.key not in taken]
    rest = [_adapt(word, sentence) for word in wanted]
    is_now = helped is not None and helped[0].lower() in ("do", "does")
    verbs = [word for word in rest if not is_past(word.text)] if is_now else []
    there = (sentence.words[place].text for word in verbs for place in sentence.positions.get(word.key, ()))
    if _ASKS_OBJECT.match(asked.text) or any(map(is_past, there)):
        return
    first = 1 if helped and answer[0].key in sentence.around else 0  # a word above the sentence does not begin it
    last = len(rest) if helped or asked.counted else 0
    value = [_bind_value(answer[0], asked), *answer[1:]]
    orders = [rest, *(_reorder(rest, wanted, asked) if helped else ())]
    for group in _add_kinds(value, [*asked.counted, *described], asked.kinds, sentence):
        places = {first, last} if sentence.is_row or len(answer) > MOST_INSIDE else range(first, last + 1)
        yield from ([*order[:place], *group, *order[place:]] for order in orders for place in places)
    agent = next((place for place, word in enumerate(rest) if place and word.link.endswith("by")), 0)
    if agent:  # "was the mill built by Ida": one that says who acts is also compared in the other voice
        yield [*rest[: agent - 1], rest[agent - 1]._replace(link="be", close=False), *rest[agent:], *value]
    if rest and not helped:
        bound = [word._replace(link=asked.link) for word, asked in zip(rest[1:], wanted[1:], strict=True)]
        yield [*bind(answer, ""), rest[0]._replace(link=""), *bound]


def _reorder(rest: Sequence[Word], wanted: Sequence[Word], asked: Question) -> Iterator[list[Word]]:
    """Yield the words of a question in the other orders of a statement: the modal verb, or the verb of a German
    question, after the subject ("the room will be moved"), and a phrase at the end first ("for packs it is a year")."""
    if rest and (wanted[0].text.lower() in MODAL or _ASKS_ADVERB.match(asked.text)):
        for place in range(1, len(rest)):
            yield [*rest[1 : place + 1], rest[0], *rest[place + 1 :]]
    for place, word in enumerate(wanted[1:], 1):
        if word.link in _FRONTED:
            yield [*rest[place:], *rest[:place]]


def _adapt(word: Word, sentence: Sentence) -> Word:
    """Return a word of a question in the form that the sentence has, with any light word before it."""
    binds = sentence.is_row or word.link.endswith(_BINDING) or not LIMITING.isdisjoint(word.link.split())
    known = word.key in sentence.keys | sentence.topic | sentence.subject
    key = word.key if known else next((key for key in sorted(sentence.keys) if is_related(word.key, {key})), word.key)
    return word._replace(key=key, link=word.link if binds else ANY_LINK)


def _bind_value(value: Word, asked: Question) -> Word:
    """Return the first word of an answer with the link that it has to have: "by" if the question asks who acts, "to"
    for "to how much", else its own one ("about 50 metres", "near Vesk")."""
    if value.link.endswith("by") or len(ASKS_BY.findall(asked.text)) > sum(
        word.link.endswith("by") for word in asked.wanted
    ):
        return value._replace(link="by")
    words = asked.text.lower().strip(" ?.!").split()
    direction = next((word for word in (*words[:1], *words[-1:]) if word in _DIRECTIONS), "")
    own = value.link.removeprefix("be").strip()
    limits = [link for link in own.split() if link in LIMITING]
    free = not own or (bool(limits) and value.kind == "number")
    return value._replace(link=direction or (" ".join((ANY_LINK, *limits)) if free else own))


def _add_kinds(
    value: Sequence[Word], counted: Sequence[Word], kinds: Sequence[Word], sentence: Sentence
) -> Iterator[list[Word]]:
    """Yield an answer alone or next to the kind of thing that is asked for ("64 GB of memory", "the river Orle"); a
    number comes with what it counts."""
    keys = {word.key for word in value}
    beside, around = (
        [_adapt(word, sentence)._replace(link=ANY_LINK) for word in words if word.key not in keys]
        for words in (counted, kinds)
    )
    yield [*value, *beside]
    if around and not beside:
        yield [*value, *around]
        yield [*around, *value]
