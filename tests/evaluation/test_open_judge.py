"""The judge that a metric opens: which model, where, with which key and within which limits; faults before any answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from hira.agents.trajectory import Rollout
from hira.core.errors import AccessDenied, EndpointError, Stop, UsageError
from hira.core.messages import user
from hira.evaluation.files import Item
from hira.evaluation.scorers import BY_WORDS, open_judge, scorer_of
from hira.evidence import Citation, Verdict
from hira.runtime.answer import Answer
from hira.runtime.settings import RoleSettings, Settings
from hira.testing import Endpoint
from hira.testing.server import HttpServer

NOWHERE = "http://127.0.0.1:9/v1"
TOWER = Item("1", "How high is it?", ("31 m",))


@pytest.fixture
def judging() -> Iterator[Endpoint]:
    with Endpoint(lambda _: json.dumps({"reason": "by the number", "verdict": "correct"}), model="judging") as endpoint:
        yield endpoint


@pytest.fixture
def refusing() -> Iterator[str]:
    """The base URL of an endpoint that refuses every key."""
    server = HttpServer(lambda _, exchange: exchange.json(401, {}))
    server.start()
    yield f"http://127.0.0.1:{server.port}/v1"
    server.close()


def judged_by(endpoint: Endpoint, **values: Any) -> RoleSettings:
    return RoleSettings(model="judging", base_url=endpoint.base_url, **values)


async def ask(settings: Settings, judge: str | None, endpoint: Endpoint) -> dict[str, Any]:
    """The request that the judge's endpoint gets."""
    async with open_judge(settings, judge) as context:
        await context.conversation("judge").reply(user("Is it right?"))
    return endpoint.calls[-1].body


async def test_the_judge_is_the_one_that_is_named_else_that_of_its_role_else_the_model_that_answers(
    judging: Endpoint,
) -> None:
    settings = Settings(model="answering", base_url=judging.base_url)
    role = settings.with_values({"roles": {"judge": RoleSettings(model="of-the-role")}}, "here")
    assert (await ask(role, "named", judging))["model"] == "named"
    assert (await ask(role, None, judging))["model"] == "of-the-role"
    assert (await ask(settings, None, judging))["model"] == "answering"


async def test_the_judge_is_asked_at_its_own_endpoint_with_its_own_key_or_none(judging: Endpoint) -> None:
    general = Settings(model="answering", base_url=NOWHERE, api_key=SecretStr("of-the-run"))
    for key, sent in (("", None), ("of-the-judge", "Bearer of-the-judge")):
        role = judged_by(judging, api_key=SecretStr(key))
        await ask(general.with_values({"roles": {"judge": role}}, "here"), None, judging)
        assert {request.headers.get("authorization") for request in judging.requests} == {sent}
        judging.requests.clear()


async def test_a_judge_is_not_creative_unless_its_role_says_so(judging: Endpoint) -> None:
    settings = Settings(model="m", base_url=judging.base_url, temperature=0.9)
    assert (await ask(settings, None, judging))["temperature"] == 0.0
    warm = settings.with_values({"roles": {"judge": RoleSettings(temperature=0.4)}}, "here")
    assert (await ask(warm, None, judging))["temperature"] == 0.4


async def test_limits_of_a_run_do_not_bound_the_judge_and_those_of_its_role_do(judging: Endpoint) -> None:
    limits: dict[str, Any] = {"max_calls": 1, "max_tokens": 1, "max_time": 1, "max_reply_tokens": 7}
    settings = Settings(model="m", base_url=judging.base_url, **limits)
    async with open_judge(settings, None) as context:
        for _ in range(3):
            await context.conversation("judge").reply(user("Is it right?"))
    assert judging.calls[-1].body["max_tokens"] > 1000
    role = RoleSettings(max_calls=1, max_reply_tokens=77)
    async with open_judge(settings.with_values({"roles": {"judge": role}}, "here"), None) as context:
        await context.conversation("judge").reply(user("Is it right?"))
        assert judging.calls[-1].body["max_tokens"] == 77
        with pytest.raises(Stop):
            await context.conversation("judge").reply(user("Is it right?"))


async def test_a_judge_without_an_endpoint_is_an_error_before_there_is_anything_to_judge(refusing: str) -> None:
    async def open_it(model: str, base_url: str) -> None:
        async with open_judge(Settings(model=model, base_url=base_url, api_key=SecretStr("k")), None):
            pass

    with pytest.raises(EndpointError, match="the judge cannot be reached") as caught:
        await open_it("m", NOWHERE)
    assert "check its base URL" in caught.value.fix
    with pytest.raises(AccessDenied, match="the judge's endpoint refuses the key") as denied:
        await open_it("m", refusing)
    assert "api_key of [roles.judge]" in denied.value.fix
    with pytest.raises(UsageError, match="`offline` cannot judge answers") as offline:
        await open_it("offline", "")
    assert "--judge" in offline.value.fix


async def test_the_scorer_of_a_metric_opens_a_judge_only_where_one_judges(judging: Endpoint) -> None:
    settings = Settings(model="offline", roles={"judge": judged_by(judging)})
    answer = Answer("31 m.", "answered", (), (), Rollout("r", TOWER.question, "hira"), "scripted")
    for metric in BY_WORDS:
        async with scorer_of(metric, settings, None) as score:
            assert score is BY_WORDS[metric]
        with pytest.raises(UsageError, match=f"the metric '{metric}' uses no model"):
            await scorer_of(metric, settings, "judging").__aenter__()
    cited = Answer("31 m [s1].", "answered", (Citation("s1", "31 m", "", Verdict.SUPPORTED),), (), answer.rollout, "s")
    async with scorer_of("fact", settings, None) as score:
        assert (await score(TOWER, cited)).value == 1.0, "hira's own check"
    assert not judging.requests
    async with scorer_of("hira", settings, None) as score:
        assert (await score(TOWER, answer)).correct is True
    assert judging.calls
    for metric, near in (("exact", "em"), ("simplqa", "simpleqa")):
        with pytest.raises(UsageError, match="unknown metric") as caught:
            await scorer_of(metric, settings, None).__aenter__()
        assert near in caught.value.fix
