"""Rows of tokens with their masks, groups of rollouts, and the rows with their credit. Plain data, without torch."""

import hashlib
import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from hira.agents.trajectory import Rollout
from hira.core.policy import Tokens
from hira.evaluation.rewards.answers import RolloutScore


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation, or the `part` of one that its prompts did not break."""

    question: str
    rollout: str
    role: str
    conversation: str
    prompt: tuple[int, ...]
    """The ids before the first sampled token, shape (P,)."""
    completion: tuple[int, ...]
    """Everything after, shape (T,): sampled tokens and the environment's tokens between them."""
    mask: tuple[int, ...]
    """1 for sampled tokens, 0 for the environment's."""
    logprobs: tuple[float, ...]
    """Those of sampled tokens, 0 for the environment's."""
    turns: int = 1
    """The number of policy calls."""
    part: int = 0
    model: str = ""
    """The weights that sampled it."""
    overlong: bool = False
    """True if the conversation ended with a reply that was cut off."""

    @property
    def tokens(self) -> int:
        """The number of tokens that the role sampled: |o| of the papers."""
        return sum(self.mask)

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.completion)

    @property
    def input(self) -> str:
        """The fingerprint of the row's exact input: rows that share it may be compared with one another."""
        return hashlib.blake2b(array("q", self.prompt).tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a rollout. `breaks` counts prompts that did not continue their row, `dropped` the rows that were left
    out because ids and log-probabilities did not match."""

    rows: tuple[Row, ...] = ()
    breaks: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _OpenRow:
    prompt: tuple[int, ...]
    model: str
    completion: list[int]
    mask: list[int]
    logprobs: list[float]
    turns: int = 0
    sound: bool = True

    def takes(self, tokens: Tokens) -> bool:
        """Return whether the turn's prompt begins with the whole row."""
        before = (*self.prompt, *self.completion)
        return tokens.prompt[: len(before)] == before

    def add(self, tokens: Tokens) -> None:
        added = tokens.prompt[len(self.prompt) + len(self.completion) :]
        self.completion += [*added, *tokens.sampled]
        self.mask += [0] * len(added) + [1] * len(tokens.sampled)
        self.logprobs += [0.0] * len(added) + list(tokens.logprobs)
        self.turns += 1
        possible = all(math.isfinite(logprob) and logprob <= 1e-3 for logprob in tokens.logprobs)
        # a server may omit the last log-probability (an off-by-one at EOS)
        self.sound = self.sound and possible and len(tokens.sampled) == len(tokens.logprobs)


def rows_of(rollout: Rollout, roles: Collection[str] | None = None, question: str = "") -> Cut:
    """Return the rows of a rollout's conversations, in the order in which these began; of `roles` only, if given. Turns
    without tokens (of a role that an endpoint plays) make no row. An inconsistent row is dropped, never guessed."""
    cuts: list[Cut] = []
    for path in rollout.trajectories.values():
        if roles is None or path.role in roles:
            replies = [turn.completion for turn in path.turns]
            overlong = bool(replies) and replies[-1].finish == "length"
            turns = [(reply.tokens, reply.model) for reply in replies if reply.tokens and reply.tokens.sampled]
            about = (question or rollout.question, rollout.run, path.role, path.conversation)
            cuts.append(join_turns(turns, Row(*about, (), (), (), (), overlong=overlong)))
    return Cut(
        tuple(row for cut in cuts for row in cut.rows),
        sum(cut.breaks for cut in cuts),
        sum(cut.dropped for cut in cuts),
    )


def join_turns(turns: Iterable[tuple[Tokens, str]], named: Row) -> Cut:
    """Return the rows of one conversation from the tokens of its turns, each with the name of its weights. `named` has
    the fields that all rows share."""
    opened: list[_OpenRow] = []
    for tokens, model in turns:
        if not opened or not opened[-1].takes(tokens) or opened[-1].model != model:
            opened.append(_OpenRow(tokens.prompt, model, [], [], [], sound=bool(tokens.prompt)))
        opened[-1].add(tokens)
    rows = tuple(
        replace(
            named,
            prompt=piece.prompt,
            completion=tuple(piece.completion),
            mask=tuple(piece.mask),
            logprobs=tuple(piece.logprobs),
            turns=piece.turns,
            part=part,
            model=piece.model,
        )
        for part, piece in enumerate(opened)
        if piece.sound
    )
    return Cut(rows, max(0, len(opened) - 1), sum(not piece.sound for piece in opened))


Status = Literal["ok", "agent_failed", "infra_failed"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rollout, as credit sees it. `ok` and `agent_failed` (reward 0) count; `infra_failed` leaves the mean, the
    deviation and the loss, and so does an attempt whose judge failed (`reward` None). `rewards` are those of single
    conversations, for roles that are paid separately."""

    number: int
    rows: tuple[Row, ...]
    reward: float | None
    status: Status = "ok"
    rewards: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        return self.status != "infra_failed" and self.reward is not None

    def reward_of(self, conversation: str) -> float:
        """Return the conversation's own reward, else the rollout's."""
        assert self.reward is not None  # noqa: S101 - called for counted attempts only
        return self.rewards.get(conversation, self.reward)


@dataclass(frozen=True, slots=True)
class ScoredRollout:
    attempt: Attempt
    record: Rollout | None
    score: RolloutScore
    error: str = ""
    tools: dict[tuple[str, str], list[bool]] = field(default_factory=dict)
    breaks: int = 0
    """The number of prompts that did not continue their row."""
    dropped: int = 0
    """The number of rows that were left out."""


@dataclass(frozen=True, slots=True)
class Group:
    """All attempts at one question."""

    problem: str
    attempts: tuple[Attempt, ...]

    @property
    def counting(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.counts]


class Key(NamedTuple):
    """The key of a comparison: the problem, the role, and the fingerprint of the exact input ("" if inputs differ)."""

    problem: str
    role: str
    input: str = ""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A row with its credit: `advantage` A and `weight` w of the loss

        L = -(1/Z) Σ_i Σ_t m_it · min(ρ_it w_i A_i, clip(ρ_it, 1-ε_low, 1+ε_high) w_i A_i)

    where m is the row's own mask. `group` is the key of its comparison.
    """

    row: Row
    group: Key
    reward: float
    advantage: float
    weight: float


@dataclass(frozen=True, slots=True)
class Credited:
    """The rows of an update with their credit, and the counts of the rest."""

    rows: tuple[Weighted, ...]
    normaliser: float
    """Z of the loss."""
    sizes: tuple[int, ...] = ()
    """The sizes of all compared groups."""
    dead: int = 0
    """The number of groups without a signal."""
    singletons: int = 0
    """The number of members that were compared with nothing."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """More metrics."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The rollouts of one update: `groups` for credit, `measures` for metrics, `samples` for readers."""

    groups: tuple[Group, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[Mapping[str, Any], ...] = ()


Collect = Callable[[int], Collected]
"""Makes the rollouts of the update with that number, counted from 0. The same number gives the same questions and
seeds, so that a resumed run continues as if it had not stopped."""


def samples(collected: Collected, credited: Credited, step: int) -> Iterator[dict[str, Any]]:
    """Yield the samples of an update as records, each with the advantages of its conversations."""
    gained: dict[str, dict[str, float]] = {}
    for weighted in credited.rows:
        gained.setdefault(weighted.row.rollout, {})[weighted.row.conversation] = weighted.advantage
    for sample in collected.samples:
        yield {"step": step, **sample, "advantages": gained.get(str(sample.get("rollout")), {})}
