"""Recipes of one's own: a reward and a credit as functions, the gain over plain RAG, a judge that ranks a group, and
what happens when one of them is wrong."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rollouts_made import Letters, attempt, group, row
from terminal import plan_in
from test_rollouts import rollouts

from hira.agents.run_context import RoleConfig
from hira.agents.trajectory import Rollout
from hira.core.errors import HiraError, UsageError
from hira.core.policy import Request
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy
from hira.trainers import GainOver, Ranked, Recipe, RolloutScore, credit_by
from hira.trainers.assembly import credit_of, reward_of
from hira.trainers.credit.checks import run_credit
from hira.trainers.recipes import find_recipe
from hira.trainers.rewards import ByFunction
from hira.trainers.rows import Credited, Group, Key, Weighted

if TYPE_CHECKING:
    from small_place import Place

MODULE = """
from dataclasses import replace
from typing import Literal
from hira.trainers import Recipe, RolloutScore, credit_by
from hira.trainers.credit import grpo

def score(rollout, references):
    return float(references[0] in rollout.answer) - 0.001 * len(rollout.answer)

def centre(rewards):
    return [reward - sum(rewards) / len(rewards) for reward in rewards]

def cut_short(groups):
    credited = grpo(groups)
    return replace(credited, rows=tuple(replace(one, row=replace(one.row, mask=one.row.mask[1:])) for one in credited.rows))

def against(groups, *, baseline: Literal["Mean", "RLOO"] = "Mean"):
    return grpo(groups)

named = Recipe("matpo", credit=against)
short = Recipe("matpo", reward=score, credit=credit_by(centre))
undefined = Recipe("matpo", reward=lambda rollout, references: float("nan"))
raising = Recipe("matpo", reward=lambda rollout, references: references[7])
misfit = Recipe("matpo", reward=lambda rollout, references: float(len(rollout.run) + hash(rollout.run) % 7), credit=cut_short)
nothing = "no recipe"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with recipes, in the current folder."""
    name = f"recipes_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return name


def test_a_recipe_of_ones_own_is_named_in_the_configuration(module: str, tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answer": "Ann"}\n')
    values = {"recipe": f"{module}:short", "model.name": "some/model", "data.train": "questions.jsonl"}
    plan = plan_in(tmp_path, values)
    assert (plan.recipe.name, plan.workflow.name) == (f"{module}:short", "matpo")
    assert plan.problems[0].references == ("Ann",)
    assert isinstance(reward_of(plan), ByFunction)
    given = [group(attempt(0, 1.0, row("planner", 2)), attempt(1, 0.0, row("planner", 4, rollout="s")))]
    assert [(one.advantage, one.weight) for one in credit_of(plan)(given).rows] == [(0.5, 0.5), (-0.5, 0.25)]
    with pytest.raises(UsageError, match="is not a recipe but str"):
        find_recipe(f"{module}:nothing")
    with pytest.raises(UsageError, match="unknown recipe 'matp'") as caught:
        find_recipe("matp")
    assert "matpo" in caught.value.fix


def test_a_wrong_option_of_a_credit_is_refused_with_its_values_as_they_are_written(module: str, tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text('{"question": "Who?", "answer": "Ann"}\n')
    values = {"recipe": f"{module}:named", "model.name": "some/model", "data.train": "questions.jsonl"}
    with pytest.raises(UsageError, match=r"credit\.baseline must be 'Mean' or 'RLOO'"):
        plan_in(tmp_path, values | {"credit.baseline": "rloo"})


async def test_a_reward_is_a_function_or_a_coroutine_function_of_a_rollout_and_its_references() -> None:
    async def later(rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        return RolloutScore(0.25, {"length": float(len(rollout.answer))})

    for function, wanted in (
        (lambda rollout, references: references[0] in rollout.answer, 1.0),
        (lambda rollout, references: None, None),
        (later, 0.25),
    ):
        made = await rollouts(Letters(lambda _: "yes"), reward=ByFunction(function), trust=1.0).collect(0)
        assert {one.reward for group in made.groups for one in group.attempts} == {wanted}


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda *_: math.nan, "the reward returned nan"),
        (lambda *_: RolloutScore(1.0, {"format": math.inf}), "the reward returned inf for the part 'format'"),
        (lambda *_: RolloutScore(1.0, conversations={"worker": math.nan}), "for the conversation 'worker'"),
        (lambda *_: "1", "the reward raised TypeError: it returned '1', which is not a number"),
        (lambda _, references: references[3], "the reward raised IndexError"),
    ],
)
async def test_a_reward_that_raises_or_is_no_number_ends_the_run_and_names_the_question(
    function: Any, what: str
) -> None:
    with pytest.raises(HiraError, match=what) as caught:
        await rollouts(Letters(lambda _: "yes"), reward=ByFunction(function)).collect(0)
    assert "question '" in caught.value.where
    assert "correct the reward function" in caught.value.fix


GIVEN = (group(attempt(0, 1.0, row("planner", 3)), attempt(1, 0.0, row("planner", 2, rollout="s"))),)


def weigh(**changed: Any) -> Credited:
    own = {"row": GIVEN[0].attempts[0].rows[0], "group": Key("q", ""), "reward": 1.0, "advantage": 1.0, "weight": 1.0}
    return Credited((Weighted(**{**own, **changed}),), 1.0)


@pytest.mark.parametrize(
    ("credit", "what"),
    [
        (lambda _: 1 / 0, "the credit raised ZeroDivisionError"),
        (lambda _: [1.0], "the credit returned list, not Credited"),
        (lambda _: weigh(row=row("planner", 4)), "a row of 5 tokens for one of 4"),
        (lambda _: weigh(row=row("planner", 3, rollout="t")), "a row that is in none of the groups"),
        (lambda _: weigh(advantage=math.nan), "a row whose advantage is nan"),
        (lambda _: weigh(weight=-1.0), "a row whose weight is -1.0, below 0"),
        (lambda _: Credited(weigh().rows, 0.0), "normaliser must be a number above 0, got 0.0"),
        (credit_by(lambda rewards: rewards[1:]), "the credit returned 1 advantages for 2 rewards"),
    ],
)
def test_a_credit_that_raises_or_whose_rows_do_not_fit_is_refused(
    credit: Callable[[Sequence[Group]], Credited], what: str
) -> None:
    with pytest.raises(HiraError, match=what) as caught:
        run_credit(credit, GIVEN)
    assert "credit" in caught.value.fix


def record(answer: str, run: str = "r") -> Rollout:
    found = Rollout(run, "Where does Ann work?", "matpo")
    found.answer = answer
    return found


async def test_the_gain_over_plain_rag_asks_the_untrained_model_once_for_each_question(tmp_path: Path) -> None:
    (tmp_path / "ann.md").write_text("# Ann\n\nAnn works in Arnby.\n")
    settings = Settings(docs=[tmp_path], journal="off", workflow="react", cache=tmp_path / "cache")
    untrained = ScriptedPolicy(lambda request: "Birkholm" if "Ann" in request.messages[-1].text else "?")
    session = await open_session(settings, policies={"*": ScriptedPolicy([])})
    gain = GainOver()
    await gain.open(session, untrained)
    scores = [await gain(record(answer), ("Arnby",)) for answer in ("Arnby", "Calden", "Arnby")]
    assert [one.value for one in scores] == [1.0, 0.0, 1.0]
    assert (await gain(record("Arnby"), ("Birkholm",))).value == -1.0, "plain RAG was right, the answer was not"
    assert (await GainOver(gain.accuracy, least=0.0, _session=gain._session)(record("-"), ("Birkholm",))).value == 0.0
    asked = [one for one in untrained.requests if "Arnby" in one.messages[-1].text]
    assert len(asked) == 3, "once for each question and its references, with what rag retrieved"
    assert {one.sampling.temperature for one in untrained.requests} == {0.0}
    await session.aclose()


def prefers(*order: str) -> Callable[[Request], str]:
    """A judge that orders answers so, wherever they stand."""

    def judge(request: Request) -> str:
        text = request.messages[-1].text
        listed = [part.partition("\n")[2].split("\n")[0] for part in text.split("[Answer ")[1:]]
        return f'{{"reason": "so", "order": {[listed.index(one) + 1 for one in order if one in listed]}}}'

    return judge


def ranked(judge: Any) -> Ranked:
    return Ranked(RoleConfig(ScriptedPolicy(judge)))


async def test_a_judge_ranks_the_answers_of_a_group_without_labels() -> None:
    reward = ranked(prefers("good", "fair", "poor"))
    scores = await reward.score_group([record(one) for one in ("poor", "good", "fair", "good", "")])
    assert [one.value for one in scores] == pytest.approx([1 / 3, 1.0, 2 / 3, 1.0, 0.0])
    alike = await reward.score_group([record("good"), record("good")])
    assert [one.value for one in alike] == [0.0, 0.0], "a group without a signal"


async def test_a_judge_that_prefers_the_first_answer_gives_all_the_same() -> None:
    many = iter(range(9))

    def first(request: Request) -> str:
        next(many)
        return '{"order": [1, 2]}'

    assert [one.value for one in await ranked(first).score_group([record("a"), record("b")])] == [0.0, 0.0]
    assert next(many) == 2, "it is asked in both orders"


async def test_a_judge_without_a_usable_order_leaves_the_group_without_a_reward() -> None:
    scores = await ranked(lambda _: '{"order": [1, 1]}').score_group([record("a"), record("b")])
    assert [one.value for one in scores] == [None, None]
    assert "exactly once" in scores[0].why


async def test_the_attempts_of_a_group_earn_their_places() -> None:
    reward = ranked(prefers("goodgood", "poorpoor", "goodpoor", "poorgood"))
    many = iter(range(100))

    def say(request: Request) -> str:
        del request
        return "good" if next(many) % 4 < 2 else "poor"

    made = await rollouts(Letters(say), reward=reward, attempts=2, questions=1, concurrency=1).collect(0)
    assert sorted(one.reward or 0.0 for one in made.groups[0].attempts) == [0.0, 1.0]
    assert {name for name in made.measures if name.startswith("reward/")} >= {"reward/place"}


def test_a_run_has_neither_the_model_nor_the_profile_that_the_user_asks_with(tmp_path: Path) -> None:
    values = {"model.name": "some/model"}
    asked = {"HIRA_MODEL": "m", "HIRA_BASE_URL": "http://127.0.0.1:9/v1", "HIRA_PROFILE": "runs/first"}
    assert plan_in(tmp_path, values, asked).settings == plan_in(tmp_path, values).settings


def test_a_ranking_judge_is_configured_like_every_other(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(
        '{"question": "Where does Ann work?"}\n{"question": "Who?", "answer": "x"}\n'
    )
    with Endpoint({"*": []}) as endpoint:
        values = {
            "recipe": "ranked",
            "model.name": "some/model",
            "data.train": "queries.jsonl",
            "reward.judge": endpoint.model,
            "reward.judge_url": endpoint.base_url,
        }
        plan = plan_in(tmp_path, values, {"OPENAI_API_KEY": "k"})
        assert isinstance(reward_of(plan), Ranked)
        assert [one.references for one in plan.problems] == [(), ("x",)]
        both = plan_in(tmp_path, {**values, "reward.over": "rag"}, {"OPENAI_API_KEY": "k"})
        with pytest.raises(UsageError, match="ranks a group has no value of its own"):
            reward_of(both)
    gain = plan_in(tmp_path, {**values, "recipe": "grpo", "data.train": "", "reward.over": "rag"}, {})
    assert isinstance(reward_of(gain), GainOver)
    with pytest.raises(UsageError, match="unknown workflow 'ragg'"):
        plan_in(tmp_path, {**values, "reward.over": "ragg"})
    assert Recipe("rag").credit is find_recipe("grpo").credit


@pytest.mark.heavy(30)
def test_a_run_with_a_wrong_recipe_leaves_no_step_and_one_with_a_right_recipe_trains(
    place: "Place", monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl")
    name = f"recipes_{abs(hash(place))}"
    (place.folder / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(place.folder)
    given = ("grpo", "run.toml", "data.held_out=", "train.steps=1", "rollouts.attempts=2", "model.rank=2")
    for recipe, what in (
        ("undefined", "the reward returned nan"),
        ("raising", "the reward raised IndexError"),
        ("misfit", "the credit returned a row with a mask of"),
    ):
        assert place.train(*given, f"recipe={name}:{recipe}", f"out=runs/{recipe}") == 1
        assert what in place.err
        left = {path.name for path in (place.folder / "runs" / recipe).iterdir()}
        assert left == {"configuration.json"}, f"{recipe}: no metrics, rollouts, checkpoints or adapters"
    assert place.train(*given, f"recipe={name}:short", "reward.over=rag", "out=runs/short") == 0, place.err
    metrics = (place.folder / "runs" / "short" / "metrics.jsonl").read_text()
    assert '"reward/gain"' in metrics
    assert '"reward/baseline"' in metrics
