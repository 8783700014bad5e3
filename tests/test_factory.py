"""From settings to who speaks and to what is at hand."""

import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from hira import Hira
from hira.agents.exam import TAKES
from hira.agents.run_context import RunContext
from hira.core.errors import AccessDenied, ToolError, UsageError
from hira.core.events import Event, Notice
from hira.core.messages import user
from hira.policies.dialects import FALLBACKS, JSON, NATIVE, XML
from hira.runtime.endpoints import find_model
from hira.runtime.factory import choose_verify, configure_roles, open_journal, open_session, open_telemetry
from hira.runtime.settings import OFF, RoleSettings, Settings, load
from hira.runtime.settings.keys import find_place
from hira.testing import ScriptedPolicy
from hira.testing.endpoint import Endpoint
from hira.testing.web import FakeWeb
from hira.tools import Toolbox, tool
from hira.tools.python import refusal
from hira.workflows import HiRA
from hira.workflows.auto import Auto

NO_PORTS: tuple[int, ...] = ()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as served:
        yield served


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "volga.txt").write_text("The Volga is 3530 kilometres long.\n", encoding="utf-8")
    return tmp_path / "docs"


def port_of(endpoint: Endpoint) -> int:
    return int(endpoint.base_url.split(":")[2].split("/")[0])


async def test_a_server_of_this_machine_is_used_and_is_sent_no_key(endpoint: Endpoint) -> None:
    ports = [port_of(endpoint)]
    settings = await find_model(Settings(), ports)
    assert (settings.model, settings.base_url) == ("scripted", endpoint.base_url)
    assert settings.origin("model") == "hira.testing found on this machine"
    assert (await find_model(Settings(model="scripted"), ports)).base_url == endpoint.base_url
    named = await find_model(Settings(base_url=endpoint.base_url.removesuffix("/v1")), NO_PORTS)
    assert (named.model, named.base_url) == ("scripted", endpoint.base_url)
    assert all("authorization" not in request.headers for request in endpoint.requests)
    with pytest.raises(AccessDenied, match="no key for model 'gpt-5'"):
        await find_model(Settings(model="gpt-5"), ports)


async def test_no_server_is_looked_for_when_an_endpoint_or_offline_is_named(endpoint: Endpoint) -> None:
    ports = [port_of(endpoint)]
    assert (await find_model(Settings(model="offline"), ports)).model == "offline"
    assert (await find_model(Settings(model="m", api_key=SecretStr("k")), ports)).base_url == ""
    assert not endpoint.requests
    settings = await find_model(Settings(), NO_PORTS)
    assert (settings.model, settings.origin("model")) == ("offline", "no endpoint, key or local server was found")


def test_every_role_is_cast_and_equal_places_share_a_policy() -> None:
    same = RoleSettings(temperature=0.1)
    other = RoleSettings(model="big", dialect="tags", continuation="prefix", top_k=20)
    settings = Settings(model="m", base_url="http://127.0.0.1:1/v1", roles={"code": same, "planner": other})
    configs, opened = configure_roles(settings, {})
    assert set(configs) == {"*", "code", "planner"}
    assert configs["code"].policy is configs["*"].policy
    assert (configs["code"].sampling.temperature, configs["*"].sampling.temperature) == (0.1, 0.7)
    planner = configs["planner"]
    assert (planner.policy.model, planner.dialect.name, planner.continuation) == ("big", "tags", "chain")
    assert (planner.sampling.top_k, planner.sampling.top_p) == (20, 0.95)
    assert len(opened) == 2


def test_roles_with_equal_additions_to_their_requests_share_a_policy_in_whatever_order_they_are_written() -> None:
    bodies = ({"a": 1, "b": {"c": 2}}, {"b": {"c": 2}, "a": 1}, {"a": 1, "b": {"c": 3}})
    given = {name: RoleSettings(extra_body=body) for name, body in zip(("one", "two", "three"), bodies, strict=True)}
    roles, opened = configure_roles(Settings(model="m", base_url="http://127.0.0.1:9/v1", roles=given), {})
    assert roles["one"].policy is roles["two"].policy
    assert roles["one"].policy is not roles["three"].policy
    assert len(opened) == 3, "and that of all other roles"


def key_of(policy: Any) -> str:
    """The key that a policy sends, read through its retrying wrapper."""
    while hasattr(policy, "policy"):
        policy = policy.policy
    return str(policy._api_key)


def test_a_role_at_another_place_is_not_given_the_general_key() -> None:
    general = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": SecretStr("general")}
    elsewhere = "http://127.0.0.1:2/v1"
    roles = {
        "code": RoleSettings(base_url=elsewhere),
        "look": RoleSettings(base_url=elsewhere, api_key=SecretStr("own")),
    }
    configs, _ = configure_roles(Settings(**general, roles=roles), {})
    assert [key_of(configs[role].policy) for role in ("*", "code", "look")] == ["general", "", "own"]


def placed(settings: Settings) -> dict[str, tuple[str, str]]:
    """Base URL and key that each role's model would be opened with."""
    configs = {"*": RoleSettings(), **settings.roles}
    names = {role: own.model or settings.model for role, own in configs.items()}
    return {role: find_place(names[role], role, own, settings)[1:3] for role, own in configs.items()}


def test_what_was_given_for_openai_goes_to_no_model_of_litellm(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "openai", "OPENAI_BASE_URL": "https://mine/v1"}
    own = {"model": "litellm/anthropic/x", "api_key": "own"}
    roles = {"planner": {"model": "litellm/anthropic/x"}, "code": own, "look": {"model": "m"}}
    assert placed(load({"model": "litellm/openai/x", "roles": roles}, environ, tmp_path, tmp_path)) == {
        "*": ("", ""),
        "planner": ("", ""),
        "code": ("", "own"),
        "look": ("https://mine/v1", "openai"),
    }


def test_a_model_of_litellm_is_given_what_was_given_for_it(tmp_path: Path) -> None:
    flags = {"model": "litellm/openai/x", "base_url": "https://mine/v1", "roles": {"code": {"model": "litellm/groq/y"}}}
    settings = load(flags, {"HIRA_API_KEY": "hira"}, tmp_path, tmp_path)
    assert placed(settings) == {"*": ("https://mine/v1", "hira"), "code": ("", "")}
    by_hand = Settings(model="litellm/openai/x", api_key=SecretStr("k"), base_url="https://mine/v1")
    assert placed(by_hand) == {"*": ("https://mine/v1", "k")}
    file = tmp_path / ".config" / "hira" / "hira.toml"
    file.parent.mkdir(parents=True)
    file.write_text('model = "m"\nbase_url = "https://mine/v1"\napi_key = "of m"')
    assert placed(load({"model": "litellm/openai/x"}, {}, tmp_path, tmp_path)) == {"*": ("", "")}


class Lookup:
    """A workflow of one's own."""

    name = "lookup"

    async def run(self, question: str, context: RunContext) -> str:
        return await context.conversation("reader").reply(user(question))


class Told(Lookup):
    roles = frozenset({"reader"})


async def test_a_workflow_of_ones_own_casts_its_own_roles() -> None:
    async with Hira("offline", workflow=Lookup(), roles={"reader": "offline"}) as hira:
        assert (await hira.ask("Who?")).rollout.trajectories["reader"].turns
    settings = Settings(model="offline", roles={"raeder": RoleSettings(model="offline")})
    with pytest.raises(UsageError, match="unknown role 'raeder'\nin workflow 'lookup'\ndid you mean 'reader'"):
        await open_session(settings, workflow=Told(), ports=NO_PORTS)


@asynccontextmanager
async def toolbox(settings: Settings, heard: list[Event], question: str = "How long?") -> AsyncIterator[Toolbox]:
    made = await open_session(settings, ports=NO_PORTS)
    try:
        async with made.open_context("r1", question, (), [heard.append]) as context:
            yield context.tools
    finally:
        await made.aclose()


async def test_documents_alone_give_no_way_to_the_web(docs: Path) -> None:
    settings = Settings(model="offline", docs=(docs,), search_keys={"serper": SecretStr("k")}, searxng_url="http://x")
    async with toolbox(settings, []) as tools:
        assert tools.search
        assert tools.browse
        assert "local documents" in tools.search.description
        with pytest.raises(ToolError, match="not one of the documents"):
            await tools.browse.call({"url": "https://example.org/"})


@pytest.mark.skipif(bool(refusal()), reason=refusal())
@pytest.mark.parametrize("several", [False, True])
async def test_code_opens_what_the_search_named(docs: Path, tmp_path: Path, several: bool) -> None:
    (docs / "2026").mkdir()
    (docs / "2026" / "sales.csv").write_text("month,sales\nMay,4242\n", encoding="utf-8")
    (tmp_path / "more").mkdir()
    settings = Settings(model="offline", docs=(docs, tmp_path / "more") if several else (docs,))
    async with toolbox(settings, []) as tools:
        assert tools.search
        assert tools.python
        name = (await tools.search.call({"query": "sales in May"})).passages[0].source.location
        assert name == ("docs/2026/sales.csv" if several else "2026/sales.csv")
        async with tools.python("1") as python:
            told = re.findall(r"- (.*) \(searched as `(.*)NAME`\)", python.description)
            path = next(f"{place}/{name.removeprefix(begins)}" for place, begins in told if name.startswith(begins))
            seen = await python.call({"code": f"open({path!r}).read()"})
    assert "4242" in seen.passages[0].text


async def test_documents_and_a_web_search_are_asked_by_one_tool(docs: Path, tmp_path: Path) -> None:
    pages = {"/kama": "<title>Kama</title><p>The river Kama is a tributary, and long.</p>"}
    with FakeWeb(pages) as web:
        settings = Settings(
            model="offline",
            docs=(docs,),
            search="searxng",
            searxng_url=web.url,
            allowed_hosts=(web.host,),
            cache=tmp_path / "cache",
        )
        async with toolbox(settings, []) as tools:
            assert tools.search
            assert tools.browse
            assert tools.search.name == "search"
            found = await tools.search.call({"query": "long river Kama Volga"})
            places = [passage.source.location for passage in found.passages]
            assert places == ["volga.txt", f"{web.url}/kama"]
            page = await tools.browse.call({"url": f"{web.url}/kama", "intent": "how long"})
            assert "tributary" in page.passages[0].text
            page = await tools.browse.call({"url": "volga.txt", "intent": "how long"})
            assert "3530" in page.passages[0].text


@pytest.mark.parametrize(("search", "scholar"), [("searxng", False), ("searxng,crossref", True), ("arxiv", True)])
async def test_scholarly_services_are_also_a_tool_of_their_own(search: str, scholar: bool) -> None:
    settings = Settings(model="offline", search=search, searxng_url="http://127.0.0.1:9", cache=None)
    async with toolbox(settings, []) as tools:
        assert tools.search
        assert (tools.scholar is not None) is scholar


@pytest.mark.parametrize(("search", "names"), [("semantic_scholar", ["follow_citations"]), ("openalex,arxiv", [])])
async def test_experts_follow_citations_with_the_service_that_knows_them(search: str, names: list[str]) -> None:
    async with toolbox(Settings(model="offline", search=search, cache=None), []) as tools:
        assert [tool.name for tool in tools.extra] == names
        assert tools.scholar


async def test_a_later_session_finds_answers_of_a_search_in_the_cache_folder(tmp_path: Path) -> None:
    with FakeWeb({"/kama": "<title>Kama</title><p>The river Kama is long.</p>"}) as web:
        settings = Settings(model="offline", search="searxng", searxng_url=web.url, cache=tmp_path / "cache")
        for _ in range(2):
            async with toolbox(settings, []) as tools:
                assert tools.search
                assert (await tools.search.call({"query": "long river"})).passages
        assert len(web.visits) == 1
        (tmp_path / "file").touch()
        heard: list[Event] = []
        async with toolbox(settings.model_copy(update={"cache": tmp_path / "file"}), heard) as tools:
            assert tools.search
            assert (await tools.search.call({"query": "long river"})).passages
    assert any(isinstance(event, Notice) and "cannot be kept" in event.text for event in heard)


async def test_a_web_search_that_fails_leaves_the_documents(docs: Path) -> None:
    with FakeWeb({}, failures=[403, 403, 403]) as web:
        settings = Settings(model="offline", docs=(docs,), search="searxng", searxng_url=web.url)
        heard: list[Event] = []
        async with toolbox(settings, heard) as tools:
            assert tools.search
            found = await tools.search.call({"query": "Volga long"})
    assert [passage.source.location for passage in found.passages] == ["volga.txt"]
    assert "no search service answers" in found.text
    assert any(isinstance(event, Notice) and event.text.startswith("search: ") for event in heard)


async def test_the_first_search_whose_key_is_set_is_chosen_and_wikipedia_never_by_itself() -> None:
    keys = {name: SecretStr("k") for name in ("jina", "brave", "openalex")}
    for settings, there in (
        (Settings(model="offline", search_keys=keys), True),
        (Settings(model="offline", searxng_url="http://127.0.0.1:9"), True),
        (Settings(model="offline", search="wikipedia"), True),
        (Settings(model="offline", search_keys={"openalex": SecretStr("k")}), False),
        (Settings(model="offline"), False),
    ):
        async with toolbox(settings, []) as tools:
            assert (tools.search is not None) is there


@pytest.mark.parametrize(
    ("search", "what"),
    [
        ("serpr", "did you mean 'serper'"),
        ("serper", "set SERPER_API_KEY"),
        ("searxng", "set SEARXNG_BASE_URL"),
        ("serpapi_scholar", "set SERPAPI_API_KEY"),
    ],
)
async def test_a_search_that_cannot_be_used_is_told_before_any_work(search: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        await open_session(Settings(model="offline", search=search), ports=NO_PORTS)


async def test_a_limit_of_money_without_prices_is_told_once() -> None:
    heard: list[Event] = []
    policy = ScriptedPolicy(["one", "two"])
    made = await open_session(Settings(max_cost=1.0), policies={"*": policy}, ports=NO_PORTS)
    async with made.open_context("r1", "How long?", (), [heard.append]) as context:
        for _ in range(2):
            await context.conversation("planner").reply(user("well?"))
    await made.aclose()
    assert [event.text for event in heard if isinstance(event, Notice) and event.important] == [
        (
            "the price of planner's model is unknown, so the limit in US dollars cannot be enforced; set it: "
            '[prices."MODEL"] in hira.toml'
        )
    ]


class Lined(HiRA):
    dialect = JSON


class Misspelt(HiRA):
    dialect = "jsn"


class Named:
    name = "by-number"

    def __getattr__(self, member: str) -> Any:
        return getattr(JSON, member)


class Numbered(HiRA):
    dialect = Named()


async def test_a_workflow_brings_its_dialect_as_an_object_or_by_name() -> None:
    made = await open_session(Settings(model="offline", journal=None), workflow=Lined())
    assert made.roles["*"].dialect is JSON
    await made.aclose()
    chosen = await open_session(Settings(model="offline", dialect="xml", journal=None), workflow=Lined())
    assert chosen.roles["*"].dialect is XML
    await chosen.aclose()
    with pytest.raises(UsageError, match="unknown dialect 'jsn'") as refused:
        await open_session(Settings(model="offline", journal=None), workflow=Misspelt())
    assert "json" in refused.value.fix


async def test_offline_calls_tools_in_a_dialect_of_your_own(docs: Path) -> None:
    async with Hira("offline", docs=docs, workflow=Numbered()) as hira:
        answer = await hira.ask("How long is the Volga?")
    assert answer.rollout.trajectories["planner"].turns[0].completion.text.count('"name": "subtask"') == 1


def test_a_role_has_its_own_settings_and_else_those_of_the_run() -> None:
    """HiRA samples at 0.7, 0.95 and 20; MARS and MarsRL give each role its own."""
    role = RoleSettings(temperature=0.0, top_p=0.5, top_k=7, reasoning_effort="low", dialect="json", model="other")
    settings = Settings(
        model="m", base_url="http://127.0.0.1:9/v1", temperature=0.7, top_p=0.95, top_k=20, seed=3,
        reasoning_effort="high", roles={"worker": role, "plain": RoleSettings()}, max_reply_tokens=None,
    )  # fmt: skip
    roles, opened = configure_roles(settings, {})
    own, plain, star = roles["worker"], roles["plain"], roles["*"]
    for config in (plain, star):
        sampling = config.sampling
        assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.7, 0.95, 20, 3)
        assert (sampling.reasoning_effort, config.dialect, config.policy.model) == ("high", NATIVE, "m")
        assert config.otherwise == FALLBACKS["native"], "it falls back where no dialect was chosen"
        assert config.facts.key == "http://127.0.0.1:9/v1 m"
    sampling = own.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed) == (0.0, 0.5, 7, 3)
    assert (sampling.reasoning_effort, own.dialect, own.policy.model, own.otherwise) == ("low", JSON, "other", "")
    assert len(opened) == 2
    assert plain.policy is star.policy


def test_a_role_that_continues_its_message_is_a_chain_and_a_chosen_dialect_has_no_other_behind_it() -> None:
    settings = Settings(
        model="m",
        base_url="http://127.0.0.1:9/v1",
        roles={"worker": RoleSettings(continuation="prefix", dialect="tags")},
    )
    roles, _ = configure_roles(settings, {})
    assert (roles["*"].continuation, roles["*"].otherwise) == ("turns", FALLBACKS["native"])
    assert (roles["worker"].continuation, roles["worker"].otherwise) == ("chain", "")
    own, _ = configure_roles(settings, {}, dialect=XML)
    assert (own["*"].dialect, own["*"].otherwise) == (XML, ""), "a workflow's dialect is a choice, too"


def test_replies_of_a_programs_own_policy_are_bounded_only_where_somebody_says_so() -> None:
    mine = ScriptedPolicy([])
    settings = Settings(model="m", base_url="http://127.0.0.1:9/v1")
    roles, opened = configure_roles(settings, {"worker": mine})
    assert (roles["worker"].policy, roles["worker"].replies, roles["worker"].facts.key) == (mine, None, "")
    assert roles["*"].replies is not None
    assert len(opened) == 1
    bounded = settings.with_values({"max_reply_tokens": 77}, "here")
    roles, _ = configure_roles(bounded, {"*": mine})
    assert roles["*"].replies is not None
    assert roles["*"].replies.tokens == 77
    named = settings.with_values({"roles": {"worker": RoleSettings(model="other", max_reply_tokens=5)}}, "here")
    roles, _ = configure_roles(named, {"*": mine})
    assert (roles["*"].policy, roles["worker"].policy.model) == (mine, "other"), "a named model is not the program's"
    assert roles["worker"].replies is not None
    assert roles["worker"].replies.tokens == 5


def test_prices_are_those_that_are_set_or_of_the_table_and_nothing_nearby_is_priced_by_it() -> None:
    table = {"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}
    for base_url, known in (("https://far.example/v1", True), ("http://127.0.0.1:9/v1", False)):
        settings = Settings(model="m", base_url=base_url, api_key=SecretStr("k"))
        roles, _ = configure_roles(settings, {}, table)
        assert (roles["*"].price is not None) is known


def test_answers_are_checked_by_the_model_if_one_is_connected_that_the_program_does_not_script() -> None:
    connected = Settings(model="m", base_url="http://127.0.0.1:9/v1")
    offline, mine = Settings(model="offline"), {"*": ScriptedPolicy([])}
    for settings, policies, chosen in (
        (connected, {}, "model"),
        (connected, mine, "lexical"),
        (offline, {}, "lexical"),
        (connected.with_values({"verify": "off"}, "here"), {}, "off"),
        (connected.with_values({"verify": "model"}, "here"), mine, "model"),
        (offline.with_values({"verify": "lexical"}, "here"), {}, "lexical"),
        (offline.with_values({"roles": {"verifier": RoleSettings(model="m")}}, "here"), {}, "model"),
        (connected, {"verifier": ScriptedPolicy([])}, "lexical"),
    ):
        roles, _ = configure_roles(settings, policies)
        assert choose_verify(settings, policies, roles) == chosen
    wanted = offline.with_values({"verify": "model"}, "here")
    roles, _ = configure_roles(wanted, {})
    with pytest.raises(UsageError, match="no model is connected to verify answers") as caught:
        choose_verify(wanted, {}, roles)
    assert "--verify lexical" in caught.value.fix


async def test_a_session_knows_what_the_program_handed_over(docs: Path) -> None:
    settings = Settings(model="offline", docs=(docs,))

    @tool
    async def tides(harbour: str) -> str:
        """Tell the tides."""
        return harbour

    async def search(query: str) -> list[str]:
        return [query]

    for given, handed in (
        ({}, ()),
        ({"workflow": Auto()}, ()),
        ({"workflow": HiRA()}, ("workflow 'hira'",)),
        ({"workflow": Auto(max_subtasks=3)}, ("workflow 'auto'",)),
        ({"tools": [tides]}, ("tool 'tides'",)),
        ({"policies": {"planner": ScriptedPolicy([])}}, ("policy of 'planner'",)),
        ({"search": search}, ("search",)),
    ):
        session = await open_session(settings, **given)  # type: ignore[arg-type]
        assert session.handed == handed, given
        await session.aclose()


def test_spans_are_exported_only_where_a_collector_or_a_traced_program_takes_them() -> None:
    notices: list[Notice] = []
    for otel in ("", OFF):
        assert open_telemetry(Settings(otel=otel), notices) is None
    assert notices == [], "who asked for no spans misses nothing"


def test_a_collector_that_was_set_for_hira_needs_the_extra_and_one_for_every_program_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    for origin, told in (("--otel", ["spans are not exported: pip install 'hira[otel]'"]), ("OTEL_EXPORTER", [])):
        notices: list[Notice] = []
        settings = Settings().with_values({"otel": "http://127.0.0.1:9"}, origin)
        assert open_telemetry(settings, notices) is None
        assert [notice.text for notice in notices] == told


async def test_a_journal_that_cannot_be_opened_leaves_the_run_unrecorded_and_says_so(tmp_path: Path) -> None:
    notices: list[Notice] = []
    (tmp_path / "file").write_text("no folder")
    assert open_journal(Settings(journal=None), notices) is None
    assert notices == []
    assert open_journal(Settings(journal=tmp_path / "file" / "journal.sqlite"), notices) is None
    (told,) = notices
    assert "this run is not recorded and cannot be resumed" in told.text
    assert told.important
    opened = open_journal(Settings(journal=tmp_path / "journal.sqlite"), notices)
    assert opened is not None
    opened.close()
    assert len(notices) == 1


async def test_what_is_learned_about_one_own_policy_says_nothing_about_another(docs: Path, tmp_path: Path) -> None:
    """A model that fails the verifier's exam takes it once; the next model takes its own."""
    settings = Settings(model="offline", workflow="rag", verify="model", cache=tmp_path / "cache")
    for name in ("weak", "strong"):
        policy = ScriptedPolicy({"*": lambda _: "Some 3530 kilometres is how far the Volga runs [s1]."}, model=name)
        async with Hira(docs=docs, policies={"*": policy}, settings=settings) as hira:
            first, second = [await hira.ask("How long is the Volga?") for _ in range(2)]
        assert [TAKES in answer.notices for answer in (first, second)] == [True, False]
    assert not (tmp_path / "cache" / "endpoints.json").exists()
