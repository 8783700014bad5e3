"""Rollouts for training: real workflows, with statuses, deadlines, seeds and a recording."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rollouts_made import Letters, contexts

from hira.agents.loop import Loop
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import AccessDenied, ContextOverflow, EndpointError, HiraError, ToolDown
from hira.core.messages import user
from hira.core.policy import Request
from hira.evaluation.rewards.answers import RolloutScore
from hira.policies.failures import tools_refused
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.tools import Toolbox, tool
from hira.trainers.configuration import RolloutConfig
from hira.trainers.rollouts import Problem, Rollouts, choose_problems


@dataclass(frozen=True)
class Asking:
    """A planner that may search, and asks a worker."""

    name: str = "asking"

    async def run(self, question: str, context: RunContext) -> str:
        planner = context.conversation("planner")
        planner.say(user(question))
        tools = [context.tools.search] if context.tools.search else []
        step = await Loop(planner, tools, final=True).run()
        worker = context.conversation("worker", "1")
        return step.answer + await worker.reply(user("and now?"))


async def right(rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
    return RolloutScore(float(references[0] in rollout.answer), {"accuracy": 1.0})


PROBLEMS = [Problem(str(at), f"question {at}?", ("yes",)) for at in range(5)]


def rollouts(policy: Any, tools: Mapping[str, Any] | None = None, **settings: Any) -> Rollouts:
    own = {name: settings.pop(name) for name in {*RolloutConfig.model_fields} if name in settings}
    config = RolloutConfig(**({"questions": 2, "attempts": 3} | own))
    return Rollouts(
        contexts(policy, **(tools or {})), Asking(), PROBLEMS, settings.pop("reward", right), config=config, **settings
    )


async def test_a_group_holds_g_rollouts_of_one_question_with_rows_of_each_conversation() -> None:
    made = await rollouts(Letters(lambda _: "yes")).collect(0)
    assert [len(group.attempts) for group in made.groups] == [3, 3]
    attempt = made.groups[0].attempts[0]
    assert (attempt.status, attempt.reward) == ("ok", 1.0)
    assert [(row.role, row.conversation, row.turns) for row in attempt.rows] == [
        ("planner", "planner", 1),
        ("worker", "1/worker", 1),
    ]
    assert made.measures["reward/accuracy"] == 1.0
    assert made.measures["turns"] == 2.0


async def test_what_tools_bring_is_in_the_row_and_is_not_trained() -> None:
    @tool(pure=True)
    def search(query: str) -> str:
        """Search."""
        return f"found {query}"

    def say(request: Request) -> str:
        last = request.messages[-1].text
        return "yes" if "found" in last or "now" in last else "<|begin_search_query|> it <|end_search_query|>"

    made = await rollouts(Letters(say), {"tools": Toolbox(search=search)}).collect(0)
    row = made.groups[0].attempts[0].rows[0]
    assert row.turns == 2
    assert "found it" in "".join(chr(one) for one, own in zip(row.completion, row.mask, strict=True) if not own)
    sampled = "".join(chr(one) for one, own in zip(row.completion, row.mask, strict=True) if own)
    assert sampled == "<|begin_search_query|> it <|end_search_query|>yes"
    assert made.measures["planner/tool_success/search"] == 1.0


async def test_every_call_has_a_seed_of_its_own_that_comes_back_when_the_update_is_made_again() -> None:
    seeds = []
    for _ in range(2):
        policy = Letters(lambda _: "yes")
        await rollouts(policy).collect(3)
        seeds.append(sorted(one.sampling.seed or 0 for one in policy.requests))
    assert seeds[0] == seeds[1]
    how = {(one.sampling.temperature, one.sampling.top_p, one.sampling.top_k) for one in policy.requests}
    assert how == {(1, 1, None)}, "roles sample from the distribution that is trained"
    assert len(set(seeds[0])) == len(seeds[0]) == 12


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ContextOverflow("too long"), "agent_failed"),
        (EndpointError("down", retryable=True), "infra_failed"),
    ],
)
async def test_a_failure_has_the_status_of_whose_fault_it_was(failure: HiraError, status: str) -> None:
    def say(request: Request) -> str | BaseException:
        return failure if request.sampling.seed in broken else "yes"

    scout = Letters(lambda _: "yes")
    await rollouts(scout, questions=1).collect(0)
    broken = {one.sampling.seed for one in scout.requests if one.conversation == "planner"}
    broken = set(sorted(broken)[:1])
    (group,) = (await rollouts(Letters(say), questions=1).collect(0)).groups
    failed = [one for one in group.attempts if one.status != "ok"]
    assert [(one.status, one.reward) for one in failed] == [(status, 0.0 if status == "agent_failed" else None)]
    assert len(group.counting) == (3 if status == "agent_failed" else 2)


async def test_a_model_that_takes_no_tool_calls_is_asked_in_tags_and_its_rollouts_count(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nyes")
    settings = Settings(docs=(tmp_path,), workflow="react")

    def say(request: Request) -> str | BaseException:
        return tools_refused("the template has no place for tools", where="model") if request.tools else "yes"

    opened = await open_session(settings, policies={"*": (policy := Letters(say))})
    made = await Rollouts(
        opened.open_context, opened.workflow, PROBLEMS, right, config=RolloutConfig(questions=1, attempts=2)
    ).collect(0)
    await opened.aclose()
    assert {bool(request.tools) for request in policy.requests} == {True, False}
    assert [(one.status, one.reward) for one in made.groups[0].attempts] == [("ok", 1.0), ("ok", 1.0)]


async def test_a_call_that_hangs_is_ended_and_is_the_infrastructures_fault() -> None:
    hanging = rollouts(Letters(lambda _: "yes", hang=True), call_seconds=0.05, trust=1.0)
    made = await hanging.collect(0)
    assert {one.status for group in made.groups for one in group.attempts} == {"infra_failed"}
    assert "no reply to 'planner' within 0.05 seconds" in made.samples[0]["error"]


async def test_when_most_rollouts_are_broken_or_none_would_get_past_a_failure_the_run_ends_with_the_cause() -> None:
    with pytest.raises(HiraError, match="6 of 6 rollouts failed for reasons outside") as caught:
        await rollouts(Letters(lambda _: EndpointError("the engine died"))).collect(0)
    assert "the engine died" in caught.value.where
    with pytest.raises(AccessDenied):
        await rollouts(Letters(lambda _: AccessDenied("no key"))).collect(0)


async def test_a_tool_whose_service_is_down_is_not_the_agents_failure() -> None:
    @tool(name="search")
    async def search(query: str) -> str:
        """Search."""
        raise ToolDown(f"no search service answers {query}")

    def say(request: Request) -> str:
        last = request.messages[-1].text
        return "yes" if "failed" in last or "now" in last else "<|begin_search_query|> it <|end_search_query|>"

    made = await rollouts(Letters(say), {"tools": Toolbox(search=search)}, trust=1.0).collect(0)
    attempts = [one for group in made.groups for one in group.attempts]
    assert {(one.status, one.reward) for one in attempts} == {("infra_failed", None)}
    assert "no search service answers" in made.samples[0]["error"]


async def test_a_judge_that_is_down_or_late_leaves_the_rollout_unscored() -> None:
    async def down(_rollout: Rollout, _references: tuple[str, ...]) -> RolloutScore:
        raise EndpointError("the judge is down")

    async def late(_rollout: Rollout, _references: tuple[str, ...]) -> RolloutScore:
        await asyncio.Event().wait()
        return RolloutScore(1.0)

    for judge, why in ((down, "the judge is down"), (late, "no reward within 0.05 seconds")):
        made = rollouts(Letters(lambda _: "yes"), reward=judge, reward_seconds=0.05, trust=1.0)
        made = await made.collect(0)
        assert [one.reward for one in made.groups[0].attempts] == [None] * 3
        assert made.samples[0]["why"] == why
        assert not made.groups[0].counting


async def test_a_reward_that_raises_ends_the_run_and_names_question_and_answer() -> None:
    async def wrong(_rollout: Rollout, _references: tuple[str, ...]) -> RolloutScore:
        raise KeyError("gold")

    with pytest.raises(HiraError, match="the reward raised KeyError: 'gold'") as caught:
        await rollouts(Letters(lambda _: "yes"), reward=wrong).collect(0)
    assert "question" in caught.value.where
    assert "yes" in caught.value.where


def test_each_lap_asks_every_question_once_in_an_order_of_its_own() -> None:
    asked = [one.id for update in range(10) for one in choose_problems(PROBLEMS, update, 2, seed=7)]
    laps = [asked[at : at + 5] for at in range(0, 20, 5)]
    assert all(sorted(lap) == ["0", "1", "2", "3", "4"] for lap in laps)
    assert len({tuple(lap) for lap in laps}) > 1
    assert choose_problems(PROBLEMS, 7, 2, seed=7) == choose_problems(PROBLEMS, 7, 2, seed=7)


async def test_questions_without_a_signal_are_asked_again_as_others() -> None:
    known = rollouts(Letters(lambda _: "yes"))
    dead = {group.problem for group in (await known.collect(0)).groups}
    turns: Counter[str] = Counter()

    def say(request: Request) -> str:
        asked = re.search(r"question (\d)", request.messages[0].text)
        if not asked:
            return "done"
        turns[asked[1]] += 1
        return "yes" if asked[1] in dead or turns[asked[1]] % 2 else "no"

    plain = await rollouts(Letters(say)).collect(0)
    assert {group.problem for group in plain.groups} == dead
    refilled = await rollouts(Letters(say), refill=3).collect(0)
    assert len(refilled.groups) > len(plain.groups)
    assert len({group.problem for group in refilled.groups}) == len(refilled.groups), "none is asked twice"
    assert refilled.measures["refilled"] == len(refilled.groups) - 2
    again = await rollouts(Letters(say), refill=3).collect(0)
    assert [group.problem for group in again.groups][:4] == [group.problem for group in refilled.groups][:4]
