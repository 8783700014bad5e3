"""The recipes whose reward is a judge's: what a configuration makes of them, their credit and their ratio."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from later import later, needs
from terminal import plan_in
from test_grpo import SHARED, apart, by_hand, trained

from hira.core.errors import UsageError
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.answers import ByJudge, ByWords, WithFormat
from hira.evaluation.rewards.rubrics import GENERAL, ByRubric, Hybrid, RewardWeights
from hira.testing import Endpoint
from hira.trainers.assembly import MATCHES, reward_of
from hira.trainers.credit import grpo
from hira.trainers.recipes import RECIPES
from hira.trainers.rewards import GainOver

torch, groups, model = later("torch"), later("tiny:groups"), later("tiny:model")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
SLOW = pytest.mark.heavy


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint({"*": []}) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [{"query": f"Query {at}?", "accepted": "eee", "rejected": "bad"} for at in range(3)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    queries = [{"question": f"Write of river {at}."} for at in range(3)]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rivers.md").write_text("# Rivers\n\nRiver 1 rises in the hills.\n")
    return tmp_path


def plan(folder: Path, endpoint: Endpoint, recipe: str, **overrides: Any) -> Any:
    data = "pairs.jsonl" if recipe == "rubric" else "queries.jsonl"
    values = {
        "recipe": recipe,
        "model.name": "some/model",
        "data.train": data,
        "data.held_out": data,
        "reward.judge": endpoint.model,
        "reward.judge_url": endpoint.base_url,
        **overrides,
    }
    return plan_in(folder, values, {"OPENAI_API_KEY": "k"})


def test_pairs_queries_and_judges_come_from_the_configuration(folder: Path, endpoint: Endpoint) -> None:
    found = plan(folder, endpoint, "rubric", **{"reward.judge_scale": 0.25})
    assert found.problems[0].references == ("eee", "bad")
    reward = reward_of(found)
    assert isinstance(reward, Hybrid)
    assert reward.weights == RewardWeights(1.0, 1.0, 0.25)
    assert (reward.config.sampling.temperature, reward.config.sampling.top_p) == (0.0, 0.95)
    warm = reward_of(plan(folder, endpoint, "rubric", **{"reward.temperature": 0.3, "reward.top_p": 0.9}))
    assert isinstance(warm, Hybrid)
    assert (warm.config.sampling.temperature, warm.config.sampling.top_p) == (0.3, 0.9)
    assert found.trained == {"rubric": "default"}
    settings = {"settings.docs": '["docs"]'}
    found = plan(folder, endpoint, "mams", **settings)
    assert found.problems[0].references == ()
    alone = reward_of(found)
    assert isinstance(alone, ByRubric)
    assert alone.rubrics.config is alone.config, "without a generator the judge writes the rubrics"
    generator = {"reward.generator": "writer", "reward.generator_url": endpoint.base_url}
    helped = reward_of(plan(folder, endpoint, "mams", **settings, **generator))
    assert (helped.config.policy.model, helped.rubrics.config.policy.model) == (endpoint.model, "writer")
    assert set(found.trained) == {"search", "state", "report"}
    general = reward_of(plan(folder, endpoint, "report", **settings, **{"reward.generator": "general"}))
    assert isinstance(general, ByRubric)
    assert asyncio.run(general.rubrics("any query")) is GENERAL
    assert set(plan(folder, endpoint, "report", **settings).trained) == {"report"}
    with pytest.raises(UsageError, match="needs a judge"):
        reward_of(plan(folder, endpoint, "rubric", **{"reward.judge": "", "reward.judge_url": ""}))


def test_a_judge_applies_the_criteria_of_the_recipes_paper_or_those_that_are_named(
    folder: Path, endpoint: Endpoint
) -> None:
    (folder / "answers.jsonl").write_text(json.dumps({"question": "How long is it?", "answer": "9 km"}))
    data = {"data.train": "answers.jsonl", "data.held_out": "", "settings.docs": '["docs"]'}

    def judge(recipe: str, **overrides: str) -> Any:
        reward: Any = reward_of(plan(folder, endpoint, recipe, **data, **overrides))
        return reward.accuracy.judge if recipe == "matpo" else reward.judge

    for recipe, criteria in {"mars": "hle", "matpo": "simpleqa", "marsrl": "hira", "grpo": "hira"}.items():
        assert judge(recipe) is JUDGES[criteria], recipe
        assert judge(recipe, **{"reward.criteria": "webwalker"}) is JUDGES["webwalker"]


def test_without_a_judge_answers_are_scored_by_words_with_the_format_of_the_recipe_or_the_one_that_is_set(
    folder: Path, endpoint: Endpoint
) -> None:
    (folder / "answers.jsonl").write_text(json.dumps({"question": "How long is it?", "answer": "9 km"}))
    data = {"data.train": "answers.jsonl", "data.held_out": "", "settings.docs": '["docs"]'}
    none = {"reward.judge": "", "reward.judge_url": ""}

    def reward(recipe: str, **overrides: Any) -> Any:
        return reward_of(plan(folder, endpoint, recipe, **data, **overrides))

    for recipe, share in {"mars": 0, "matpo": 0.1, "marsrl": 0, "grpo": 0}.items():
        for judge, kind in (({}, ByJudge), (none, ByWords)):
            made = reward(recipe, **judge)
            assert isinstance(made, WithFormat if share else kind), recipe
            assert not share or (made.share, made.variant) == (share, "paper")
            assert not share or isinstance(made.accuracy, kind)
            halved = reward(recipe, **judge, **{"reward.format": 0.5, "reward.variant": "released"})
            assert (halved.share, halved.variant) == (0.5, "released")
            assert isinstance(reward(recipe, **judge, **{"reward.format": 0}), kind)
    for name, match in MATCHES.items():
        assert reward("mars", **none, **{"reward.match": name}).match is match
    gain = reward("mars", **none, **{"reward.over": "direct"})
    assert isinstance(gain, GainOver)
    assert gain.workflow == "direct"
    judged = reward("mars", **{"reward.at_once": 3})
    assert judged.config.policy.most == 3


def test_the_credit_of_mams_is_one_advantage_for_all_rows_of_a_rollout() -> None:
    given = groups(1, planner="search", worker="report")
    credited = RECIPES["mams"].credit(given)
    by: dict[str, set[float]] = {}
    for one in credited.rows:
        by.setdefault(one.row.rollout, set()).add(one.advantage)
    assert all(len(advantages) == 1 for advantages in by.values())
    rows = [row.rollout for attempt in given[0].attempts for row in attempt.rows]
    assert [one.row.rollout for one in credited.rows if one.row.rollout.startswith("mixed")] == rows, "all roles"
    assert {one.row.role for one in credited.rows} == {"search", "report"}
    # "mixed" has rewards 0 1 0 1: mean and deviation are .5
    assert [by[f"mixed/{at}"] for at in range(4)] == [{-1.0}, {1.0}, {-1.0}, {1.0}]
    weighed = dict.fromkeys(by, 0.0)
    for one in credited.rows:
        weighed[one.row.rollout] += one.weight * one.row.tokens
    assert weighed == pytest.approx(dict.fromkeys(by, 1.0)), "a rollout counts once, however much it wrote"


@SLOW
def test_the_ratio_of_a_sequence_is_clipped_as_one(tmp_path: Path) -> None:
    """GSPO, by hand: s_i = exp(mean over the row's tokens of log π/π_old), clipped as a whole; w_i |o_i| s_i A_i."""
    given = groups(6)
    credited = grpo(given)
    old = {at: torch.tensor(one.row.logprobs) for at, one in enumerate(credited.rows)}
    found, loss = trained(tmp_path, model(), given, grpo, old="sampler", ratio="sequence")
    made = model()
    from tiny import logprobs

    total = torch.zeros(())
    for at, one in enumerate(credited.rows):
        own = torch.tensor(one.row.mask, dtype=torch.float32)
        ratio = torch.exp(((logprobs(made, one.row) - old[at]) * own).sum() / own.sum())
        gained = torch.minimum(ratio * one.advantage, ratio.clamp(0.8, 1.28) * one.advantage)
        total = total - one.weight * own.sum() * gained
    total = total / credited.normaliser
    total.backward()
    wanted = {name: one.grad for name, one in made.named_parameters() if one.grad is not None}
    assert loss == pytest.approx(float(total.detach()), rel=1e-4)
    assert apart(found, wanted) < 1e-4
    token, _ = by_hand(model(), credited, adapters=SHARED, old=old)
    assert apart(token, wanted) > 1e-2
