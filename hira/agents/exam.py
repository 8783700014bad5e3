"""The exam of a verifier: claims whose truth is known, asked before the verdicts of a model count.

Two answers, each with a dozen claims about its own sources: half are true and in other words than the source, half have
one thing wrong. The first answer answers its question, the second does not. A model that fails with the first one is
not asked about the second. A model is examined once at its endpoint; hira keeps the score with the other facts about
that model.
"""

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from hira.agents.ruling import SECONDS, VERSION, ask_model
from hira.agents.run_context import RunContext, find_shortage
from hira.core.budget import CallNeed
from hira.core.errors import DialectError, EndpointError, OutOfBudget, Stop
from hira.core.events import Notice
from hira.core.policy import VERIFIER
from hira.core.tokens import clip
from hira.evidence import Relevance, Source, SourcedClaim
from hira.journal import CallSpec, NotRecorded
from hira.journal.encoding import digest_of_tool

FACT = "verifier exam"
"""The name of the score among the facts about a model."""
TAKES = "the model takes the exam of verifiers, once: at most two calls (hira init takes it ahead of time)"
SIZES = (1_150, 1_000, 800)
"""About how many tokens its calls take, and the verdict that it is for."""
DRAFT = 100
"""Tokens of the answer that are shown before the exam, which takes a while with a slow model."""
AT_LEAST = {True: 0.8, False: 0.9}
"""The share of the true claims that a verifier has to recognise: below it, hira would call too much unsupported; and
that of the false claims that it has to reject: each that it lets through is an error that a reader trusts."""


@dataclass(frozen=True, slots=True)
class ExamPart:
    """One answer of the exam: its question, the titles and texts of its sources, its claims with their truth, and
    whether it answers the question."""

    question: str
    texts: tuple[tuple[str, str], ...]
    claims: tuple[tuple[str, bool], ...]
    answers: bool

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(
            Source(f"exam:{number}", title, text, id=f"s{number}") for number, (title, text) in enumerate(self.texts, 1)
        )


@dataclass(frozen=True, slots=True)
class ExamScore:
    """The result of an exam. `model` is the name that the endpoint reported."""

    true_right: int
    true_asked: int
    false_right: int
    false_asked: int
    answers_right: bool
    model: str = ""
    version: int = VERSION

    @property
    def passed(self) -> bool:
        """True if the verdicts of this model count."""
        true_enough = self.true_right >= AT_LEAST[True] * self.true_asked
        return true_enough and self.false_right >= AT_LEAST[False] * self.false_asked and self.answers_right

    def describe(self) -> str:
        answers = "" if self.answers_right else ", and was wrong about what answers a question"
        return (
            f"{self.true_right} of {self.true_asked} true claims recognised, {self.false_right} of {self.false_asked} "
            f"false claims rejected{answers}"
        )

    def conclude(self) -> str:
        return f"{self.describe()}: {'passed' if self.passed else 'not passed, words alone decide'}"


@cache
def load_exam() -> tuple[ExamPart, ...]:
    stored = (files("hira.agents") / "verifier_exam.json").read_bytes()
    return TypeAdapter(tuple[ExamPart, ...]).validate_json(stored)


async def pass_exam(context: RunContext, reported: str = "") -> bool:
    """Return whether the verdicts of the verifier's model count: it has passed the exam, which it takes now if it has
    not yet, or the run asks for none.

    `reported` is the model that the endpoint names today: if another one took the exam, it counts no more.
    """
    if not context.options.exam:
        return True
    score = await find_score(context, reported)
    if score and not score.passed:
        details = f" ({score.describe()})" if TAKES in context.state.noted else ""  # later runs do without them
        context.note(f"the model did not pass the exam of verifiers{details}: words alone decide")
    return score is not None and score.passed


async def find_score(
    context: RunContext, reported: str = "", *, taking: bool = True, again: bool = False
) -> ExamScore | None:
    """Return the score of the verifier's model, from the facts about it or, if `taking`, from the exam that it takes.
    `again` repeats an exam. Runs that need it at once take it once: the others wait for its score.

    None if it is not known: if the budget leaves too little for it, or if the endpoint fails, nothing is kept. A model
    whose replies cannot be read has failed.
    """
    config = context.config_of(VERIFIER)
    async with config.facts.lock():
        known = None if again else read_score(await _recall(context))
        if known and reported and known.model != reported:
            now = f"the endpoint now serves {reported!r}, not {known.model!r}"
            context.note(f"{now}: the verifier's exam is taken again")
            known = None
        if known or not taking:
            return known
        used = context.rollout.usage
        needs = [CallNeed(VERIFIER, size, config.price) for size in SIZES]
        seconds = used.seconds / max(1, used.tokens) * sum(SIZES)  # as the run's calls so far have needed for as much
        if find_shortage(context, VERIFIER, *needs, seconds=seconds):
            context.note("too little of the budget is left for the verifier's exam: words alone checked the claims")
            return None
        if context.rollout.answer:
            draft = clip(" ".join(context.rollout.answer.split()), DRAFT)
            context.events(Notice(f"the answer, not checked yet: {draft}", passing=True))
        context.note(TAKES)
        try:
            async with asyncio.timeout(SECONDS):
                known = await take_exam(context)
        except (Stop, NotRecorded) as stop:  # a replay has no budget: the run's did not pay for the exam
            if isinstance(stop, OutOfBudget):
                context.note(f"{stop.what} before the verifier's exam ended: words alone checked the claims")
            return None
        except DialectError:
            counts = [sum(true is side for part in load_exam() for _, true in part.claims) for side in (True, False)]
            known = ExamScore(0, counts[0], 0, counts[1], answers_right=False, model=config.policy.model)
        except (EndpointError, TimeoutError) as error:
            why = f"no reply within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else error.what
            context.note(f"the verifier's exam failed: {why}; words alone checked the claims")
            return None
        config.facts.keep(FACT, asdict(known))
        return known


async def _recall(context: RunContext) -> Any:
    """Return the stored score. A run keeps what it knew in its record, so that a replay decides alike."""

    async def recall() -> Any:
        return context.config_of(VERIFIER).facts.get(FACT)

    count = sum(name.startswith(VERIFIER) for name in context.rollout.trajectories)
    value = {"exam": VERSION, "role": VERIFIER, "asked": count}
    spec = CallSpec("tool", FACT, digest_of_tool(FACT, value), VERIFIER, lambda: value)
    return await context.log.call(spec, recall, lambda score: {"score": score}, lambda stored: stored["score"])


def read_score(stored: Any) -> ExamScore | None:
    """Return a stored score, None if it is of another version or cannot be read."""
    try:
        score = ExamScore(**stored)
        return score if score.version == VERSION and isinstance(score.passed, bool) else None
    except TypeError:
        return None


async def take_exam(context: RunContext) -> ExamScore:
    """Ask the verifier about the claims of the exam, one part after the other, until it cannot pass any more. Raises
    `Stop`, `DialectError` or `EndpointError`."""
    counts = Counter(true for part in load_exam() for _, true in part.claims)
    asked, wrong = Counter[bool](), Counter[bool]()
    answers_right, model = True, ""
    for part in load_exam():
        claims = [SourcedClaim(text, part.sources) for text, _ in part.claims]
        answer = "\n".join(text for text, _ in part.claims)
        ruled = await ask_model(context, VERIFIER, claims, part.question, answer)
        for (_, true), judgement in zip(part.claims, ruled.judged, strict=True):
            asked[true] += 1
            wrong[true] += judgement.verdict.holds is not true
        answers_right = answers_right and (ruled.answers in (Relevance.YES, Relevance.PARTLY)) is part.answers
        model = ruled.model
        fails = any(wrong[true] > (1 - least) * counts[true] for true, least in AT_LEAST.items())
        if fails or not answers_right:
            break
    right = asked - wrong
    return ExamScore(right[True], asked[True], right[False], asked[False], answers_right, model)
