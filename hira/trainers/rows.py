"""Rows: what a role said in one conversation, as token ids with a mask over the tokens that it sampled itself.

A rollout becomes one row for each conversation, keyed by the conversation's name and not by time, so that a worker's
turns stay one row however they interleave with the planner's. Ids are those that were sampled: nothing is rendered or
tokenised again.
"""

import hashlib
import math
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hira.agents.trajectory import Rollout, Trajectory
from hira.core.policy import Tokens


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation, or the `part` of one that its prompts did not break.

    `prompt` are the ids before the first sampled token, shape (P,); `completion` everything after, shape (T,): sampled
    tokens (`mask` 1) and what the environment added between them (`mask` 0, `logprobs` 0). `turns` counts policy calls,
    `model` names the weights that sampled it. `overlong`: the conversation ended with a reply that was cut off.
    """

    question: str
    rollout: str
    role: str
    conversation: str
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    turns: int = 1
    part: int = 0
    model: str = ""
    overlong: bool = False

    @property
    def tokens(self) -> int:
        """How many tokens the role sampled: |o| of the papers."""
        return sum(self.mask)

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.completion)

    @property
    def input(self) -> str:
        """Names the exact input that the row began with: rows that share it may be compared with one another."""
        return hashlib.blake2b(array("q", self.prompt).tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Cut:
    """The rows of a rollout. `breaks` counts prompts that did not go on from what was there before, `dropped` the rows
    that were left out because ids and log-probabilities did not fit."""

    rows: tuple[Row, ...] = ()
    breaks: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Open:
    """A row that may still grow."""

    prompt: tuple[int, ...]
    model: str
    completion: list[int]
    mask: list[int]
    logprobs: list[float]
    turns: int = 0
    sound: bool = True

    def takes(self, tokens: Tokens) -> bool:
        """Whether the turn's prompt begins with all that the row holds."""
        held = len(self.prompt)
        before = (*self.prompt, *self.completion)
        return (
            len(tokens.prompt) >= len(before)
            and tokens.prompt[:held] == self.prompt
            and (tokens.prompt[held : len(before)] == before[held:])
        )

    def add(self, tokens: Tokens) -> None:
        added = tokens.prompt[len(self.prompt) + len(self.completion) :]
        self.completion += [*added, *tokens.sampled]
        self.mask += [0] * len(added) + [1] * len(tokens.sampled)
        self.logprobs += [0.0] * len(added) + list(tokens.logprobs)
        self.turns += 1
        self.sound = self.sound and _fits(tokens)


def _fits(tokens: Tokens) -> bool:
    """Whether each sampled id has its log-probability: a server may leave the last one out (an off-by-one of EOS)."""
    return len(tokens.sampled) == len(tokens.logprobs) and all(map(_possible, tokens.logprobs))


def _possible(logprob: float) -> bool:
    return math.isfinite(logprob) and logprob <= 1e-3


def rows_of(rollout: Rollout, roles: Collection[str] | None = None, question: str = "") -> Cut:
    """The rows of a rollout's conversations, in the order in which these began; of `roles` only, if any are given.

    Turns without tokens (of a role that an endpoint plays) make no row. A row that does not fit is dropped and counted,
    never guessed.
    """
    cuts = [
        _cut(trajectory, rollout.run, question or rollout.question)
        for trajectory in rollout.trajectories.values()
        if roles is None or trajectory.role in roles
    ]
    return Cut(
        tuple(row for cut in cuts for row in cut.rows),
        sum(cut.breaks for cut in cuts),
        sum(cut.dropped for cut in cuts),
    )


def _cut(trajectory: Trajectory, rollout: str, question: str) -> Cut:
    opened: list[_Open] = []
    breaks = 0
    overlong = bool(trajectory.turns) and trajectory.turns[-1].completion.finish == "length"
    for turn in trajectory.turns:
        tokens = turn.completion.tokens
        if tokens is None or not tokens.sampled:
            continue
        if not opened or not opened[-1].takes(tokens) or opened[-1].model != turn.completion.model:
            breaks += bool(opened)
            opened.append(_Open(tokens.prompt, turn.completion.model, [], [], [], sound=bool(tokens.prompt)))
        opened[-1].add(tokens)
    rows = tuple(
        Row(
            question,
            rollout,
            trajectory.role,
            trajectory.conversation,
            one.prompt,
            tuple(one.completion),
            tuple(one.mask),
            tuple(one.logprobs),
            one.turns,
            part,
            one.model,
            overlong,
        )
        for part, one in enumerate(opened)
        if one.sound
    )
    return Cut(rows, breaks, sum(not one.sound for one in opened))


def histogram(sizes: Iterable[int]) -> dict[int, int]:
    """How often each size comes, in the order of the sizes."""
    counted: dict[int, int] = {}
    for size in sorted(sizes):
        counted[size] = counted.get(size, 0) + 1
    return counted
