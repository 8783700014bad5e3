"""A world in which MATPO can be learned within seconds, and a policy of six parameters that learns it.

A question takes one subtask, one search, and one page that names four keepers: who keeps the mill in Brevik? The policy
stands behind the same seam as any model: it is sent the real workflow's real requests, reads their names and values as
`offline` does, and writes real calls. It decides few things, each by a softmax whose weights are learned, and all text
that it writes or reads consists of tokens, a word each. A word that it writes either carries a decision or is certain.
"""

import math
import random
import re
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NamedTuple

from hira.core.messages import Message
from hira.core.policy import Completion, Request, Tokens, Watch, cut_at_stop
from hira.policies.offline import Act, OfflineRequest, read_request, write_act
from hira.trainers.demo.matpo import ENOUGH, PEOPLE, REPORTED
from hira.trainers.demo.matpo import TOWNS as ALL_TOWNS
from hira.trainers.rollouts import Problem

TOWNS = ALL_TOWNS[:12]
THINGS = ("bell", "ferry", "mill", "well")
PLANS = ("1. Look around.", "2. Read on.", "3. Compare.", "4. Sum up.")
_PAGE = re.compile(r"\[(s\d+)\] .*?\n(.*?)\n\[/s\d+\]", re.DOTALL)
_KEPT = re.compile(r"The (\w+) is kept by (\w+)")
_ASKED = re.compile(r"Who keeps the (\w+) in (\w+)\?")


def asked(thing: str, town: str) -> str:
    return f"Who keeps the {thing} in {town}?"


@dataclass(frozen=True)
class World:
    """Who keeps each thing of each town; questions about the last quarter of the towns are held out."""

    keepers: dict[tuple[str, str], str]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for town in TOWNS:
            text = " ".join(f"The {thing} is kept by {self.keepers[thing, town]}." for thing in THINGS)
            folder.joinpath(f"{town}.md").write_text(f"# {town}\n\n{text}\n", encoding="utf-8")

    def problems(self, *, held_out: bool) -> list[Problem]:
        edge = len(TOWNS) * 3 // 4
        towns = TOWNS[edge:] if held_out else TOWNS[:edge]
        return [
            Problem(f"{town}-{thing}", asked(thing, town), (self.keepers[thing, town],))
            for town, thing in product(towns, THINGS)
        ]


def made(seed: int) -> World:
    chance = random.Random(seed)
    own = {town: dict(zip(THINGS, chance.sample(PEOPLE, len(THINGS)), strict=True)) for town in TOWNS}
    return World({(thing, town): own[town][thing] for thing, town in product(THINGS, TOWNS)})


def odds(often: float, others: int = 1) -> float:
    """The logit with which one option is taken so often, where each of the others has logit 0."""
    return math.log(often * others / (1 - often))


HABITS = {
    "planner plans": odds(0.6),
    "planner in full": odds(0.15),
    "planner speaks": odds(0.15),
    "worker plans": odds(0.6),
    "worker as told": odds(0.4, 3),
    "worker speaks": odds(0.15),
}
"""How the policy begins, as a careless model would: it plans in one line or several; mostly names the town alone in a
subtask; mostly ends with words that say nothing unless it is asked for a summary; and when it knows which keeper is
wanted, takes that one in four of ten cases, else any other. What it does not know it guesses."""


class Decision(NamedTuple):
    """Options by the weight that speaks for each ("" for none), and which was taken."""

    options: tuple[str, ...]
    taken: int


class Piece(NamedTuple):
    """A stretch of what is written; its first word carries the decision, if there is one."""

    text: str
    decision: Decision | None = None
    logprob: float = 0.0


@dataclass
class Novice:
    """Planner and worker in one. `decisions` are by the id of the token that carries them; other words are ids 0, 1."""

    weights: dict[str, float] = field(default_factory=lambda: dict(HABITS))
    decisions: dict[int, Decision] = field(default_factory=dict)
    held: dict[int, tuple[Message, tuple[int, ...], int]] = field(default_factory=dict)
    model: str = "novice"

    def chances(self, options: tuple[str, ...]) -> list[float]:
        raised = [math.exp(self.weights.get(one, 0.0)) for one in options]
        return [one / sum(raised) for one in raised]

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        seen, turn = read_request(request), _Turn(self, random.Random(request.sampling.seed))
        text = turn.planner(seen) if seen.prompt == "matpo_question" else turn.worker(seen)
        prompt = self._told(request)
        sampled = tuple(id_ for piece in turn.pieces for id_ in self._words(piece))
        logprobs = tuple(
            piece.logprob if at == 0 else 0.0 for piece in turn.pieces for at in range(len(piece.text.split()))
        )
        self.held[id(request.messages[0])] = (request.messages[0], (*prompt, *sampled), len(request.messages))
        said = Completion(text, model=self.model, tokens=Tokens(prompt, sampled, logprobs))
        return cut_at_stop(said, request.stop)

    def forget(self) -> None:
        self.decisions.clear()
        self.held.clear()

    def _told(self, request: Request) -> tuple[int, ...]:
        """All ids so far, and one for each word of what is new."""
        _, ids, known = self.held.get(id(request.messages[0]), (None, (), 0))
        new = [one for one in request.messages[known:] if one.role != "assistant"]
        return (*ids, *(0 for one in new for _ in str(one.text).split()))

    def _words(self, piece: Piece) -> list[int]:
        ids = [1] * len(piece.text.split())
        if piece.decision:
            ids[0] = len(self.decisions) + 2
            self.decisions[ids[0]] = piece.decision
        return ids

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@dataclass
class _Turn:
    novice: Novice
    chance: random.Random
    pieces: list[Piece] = field(default_factory=list)

    def planner(self, seen: OfflineRequest) -> str:
        thing, town = _ASKED.match(seen.value("question")).groups()
        if seen.results:
            report = REPORTED.search(seen.results[-1][1])
            return self._last(seen, "planner", "\\boxed{" + (report[0] if report else "unknown") + "}")
        plan = self._plan("planner")
        full, *why = self._decided(("planner in full", ""))
        subtask = f"Read about {town}." if full else asked(thing, town)
        return plan + self._called(seen, "search_and_browse", "subtask", Piece(subtask, *why))

    def worker(self, seen: OfflineRequest) -> str:
        task = seen.value("task")
        wanted = _ASKED.search(task) or _ASKED.search(recapped(seen.request))
        town = wanted[2] if wanted else task.rstrip(".").split()[-1]
        if not seen.results:
            return self._plan("worker") + self._called(seen, "search", "query", Piece(town))
        page = _PAGE.search(seen.results[-1][1])
        keepers = dict(_KEPT.findall(page[2])) if page else {}
        if not keepers:
            return self._last(seen, "worker", "unknown")
        told = wanted[1] if wanted else ""
        at, *why = self._decided(tuple("worker as told" if thing == told else "" for thing in keepers))
        return self._last(seen, "worker", list(keepers.values())[at], *why, after=f" [{page[1]}]")

    def _decided(self, options: tuple[str, ...]) -> tuple[int, Decision, float]:
        chances = self.novice.chances(options)
        (taken,) = self.chance.choices(range(len(options)), chances)
        return taken, Decision(options, taken), math.log(chances[taken])

    def _plan(self, role: str) -> str:
        for at, line in enumerate(PLANS):
            enough, *why = self._decided((f"{role} plans", ""))
            self.pieces.append(Piece("." if enough else line, *why))
            if enough:
                return "\n".join(PLANS[:at]) + "\n.\n"
        return "\n".join(PLANS) + "\n"

    def _called(self, seen: OfflineRequest, tool: str, field_: str, value: Piece) -> str:
        text, _ = write_act(Act("", ((tool, {field_: value.text}),)), seen)
        before, _, after = text.partition(value.text)
        self.pieces += [Piece(before), value, Piece(after)]
        return text

    def _last(
        self,
        seen: OfflineRequest,
        role: str,
        said: str,
        why: Decision | None = None,
        sure: float = 0.0,
        *,
        after: str = "",
    ) -> str:
        """The end of a conversation: a summary where it is asked for, else perhaps the same, perhaps nothing."""
        if seen.closing:
            begin = Piece("## Conclusion\n")
        else:
            silent, *chosen = self._decided((f"{role} speaks", ""))
            if silent:
                self.pieces.append(Piece(ENOUGH, *chosen))
                return ENOUGH
            begin = Piece("So: ", *chosen)
        self.pieces += [begin, Piece(said, why, sure), Piece(after)]
        return begin.text + said + after


def recapped(request: Request) -> str:
    """The question that the worker's prompt tells it, empty without the recap."""
    recaps = (message.values.get("recap") for message in request.messages)
    return next((str(recap) for recap in recaps if recap), "")
