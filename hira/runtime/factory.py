"""Settings become people and things: who speaks for each role, and what they may use in a run."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hira.agents.run_context import Continuation, RoleConfig, RunOptions, Verify
from hira.core.budget import ReplyBound
from hira.core.errors import UsageError
from hira.core.events import Notice
from hira.core.hooks import NO_HOOKS, Hooks
from hira.core.policy import VERIFIER, Policy, Sampling
from hira.core.prices import FREE, Price, Prices, litellm_table
from hira.evidence import Verifier
from hira.journal import Journal
from hira.policies.dialects import DIALECTS, FALLBACKS, NATIVE, Dialect
from hira.policies.facts import EndpointFacts, ModelFacts
from hira.policies.names import GGUF, IN_PROCESS, LOCAL_PORTS, OFFLINE, OPENAI_URL, is_nearby, names_of
from hira.runtime.endpoints import EndpointList, find_model, with_client
from hira.runtime.registry import SEARCH, WorkflowUnion, check_roles, dialect_of, find_hidden_workflow, make_workflow
from hira.runtime.session import HOOK, Session
from hira.runtime.settings import OFF, RoleSettings, Settings
from hira.runtime.settings.keys import find_place
from hira.runtime.toolset import open_toolset
from hira.tools import Tool
from hira.workflows import Workflow

if TYPE_CHECKING:
    from hira.agents.expert import Expert
    from hira.runtime.telemetry import Telemetry
    from hira.tools.retriever import Retriever


async def open_session(  # noqa: PLR0913 - one for each thing that a program may hand over
    settings: Settings,
    *,
    search: "Retriever | None" = None,
    tools: Sequence[Tool] = (),
    experts: "Sequence[Expert]" = (),
    policies: Mapping[str, Policy] | None = None,
    workflow: Workflow | None = None,
    client: Any = None,
    verifier: Verifier | None = None,
    deps: Any = None,
    hooks: Hooks = NO_HOOKS,
    ports: Sequence[int] = LOCAL_PORTS,
) -> Session:
    """Open a session: configure the roles and open the tools. Faults of the settings are raised here, before any work.

    `policies` replace the endpoints of their roles; with an entry `*` no endpoint is looked for. A `client` sends the
    requests of every role without an endpoint.
    """
    given = dict(policies or {})
    all_tools: list[Tool] = []
    notices: list[str] = []
    retrievers: list[Tool] = []
    if search or tools or settings.search or settings.tools:
        from hira.runtime.objects import gather_tools

        all_tools, retrievers, notices = gather_tools(settings, tools, search, deps)
    flow = check_names(settings, workflow, experts, given)
    if all_tools or settings.mcp:
        from hira.runtime.objects import find_unused_tools

        notices += find_unused_tools(settings, flow, all_tools)
    if client is not None:
        settings = with_client(settings, client)
    elif "*" not in given:
        settings = await find_model(settings, ports)
    prices, facts, hidden = await asyncio.gather(  # a slow disk holds up no other run
        asyncio.to_thread(litellm_table),
        asyncio.to_thread(EndpointFacts, settings.cache),
        asyncio.to_thread(find_hidden_workflow, settings),
    )
    notices += hidden
    roles, policies_to_close = configure_roles(settings, given, prices, dialect_of(flow), client, facts)
    if verifier is None and settings.verifier:
        with settings.located("verifier"):
            from hira.core.loading import load_object  # few runs have their own
            from hira.runtime.objects import check_verifier

            verifier = load_object(settings.verifier)
            check_verifier(verifier, repr(settings.verifier))
    verify = choose_verify(settings, given, roles)
    sees = "look" in getattr(flow, "roles", ()) and roles.get("look", roles["*"]).policy.model != OFFLINE
    price = roles.get(SEARCH, roles["*"]).price if settings.web_searches else None
    toolset = await open_toolset(settings, all_tools, retrievers, sees=sees, price=price)
    toolset.notices += map(Notice, notices)
    journal = await asyncio.to_thread(open_journal, settings, toolset.notices)
    named = workflow is None or isinstance(workflow, WorkflowUnion) or workflow == make_workflow(settings, experts)
    handed = [
        *(f"tool {tool.name!r}" for tool in tools),
        *(f"expert {expert.name!r}" for expert in experts),
        *(f"policy of {role!r}" for role in given),
        *([] if client is None else ["client"]),
        *([] if search is None else ["search"]),
        *([] if named else [f"workflow {flow.name!r}"]),
        *([f"verifier {verifier.name!r}"] if verifier and not settings.verifier else []),
        *([] if hooks is NO_HOOKS else [f"{HOOK}{name}" for name in hooks.names]),
    ]
    telemetry = open_telemetry(settings, toolset.notices)
    return Session(
        settings,
        roles,
        flow,
        toolset,
        policies_to_close,
        make_run_options(settings, verify, verifier, hooks, deps),
        journal,
        telemetry,
        tuple(handed),
    )


def check_names(
    settings: Settings, workflow: Workflow | None, experts: "Sequence[Expert]", policies: Mapping[str, Policy]
) -> Workflow:
    """Return the workflow, the given one or that of the settings.

    Raises `UsageError` for a workflow, a role or a search service that does not exist.
    """
    flow = workflow or make_workflow(settings, experts)
    if settings.roles or policies:
        check_roles(settings, flow, policies)
    if names := settings.web_searches:
        from hira.runtime.services import check_searches

        check_searches(names, settings)
    return flow


def make_run_options(
    settings: Settings, verify: Verify, verifier: Verifier | None, hooks: Hooks = NO_HOOKS, deps: Any = None
) -> RunOptions:
    """The options of runs as the settings and the program have them."""
    return RunOptions(
        verify,
        verifier,
        settings.verifier_exam,
        settings.evidence,
        settings.rewrite,
        settings.instructions,
        hooks=hooks,
        deps=deps,
    )


def choose_verify(settings: Settings, policies: Mapping[str, Policy], roles: Mapping[str, RoleConfig]) -> Verify:
    """Choose how answers are checked: as the settings say, otherwise by the run's model if an endpoint is connected.

    A program's `policies` are often scripts that count their calls: they are asked only if the settings say so. Raises
    `UsageError` if the settings require a model and no model is connected.
    """
    role = VERIFIER if VERIFIER in roles else "*"
    offline = roles[role].policy.model == OFFLINE
    if settings.verify == "model" and offline:
        what = "no model is connected to verify answers"
        fix = "name one (--model, model=, --role verifier=MODEL or roles=), or use --verify lexical or verify="
        raise UsageError(what, fix=fix)
    return settings.verify or ("lexical" if offline or role in policies else "model")


def open_journal(settings: Settings, notices: list[Notice]) -> Journal | None:
    """Open the journal that the settings name. If that fails, add a notice and leave the runs unrecorded."""
    if settings.journal is None:
        return None
    try:
        return Journal(settings.journal)
    except UsageError as error:
        text = f"{error.what} ({settings.journal}); this run is not recorded and cannot be resumed"
        notices.append(Notice(text, important=True))
        return None


def open_telemetry(settings: Settings, notices: list[Notice]) -> "Telemetry | None":
    """Open the exporter of spans: the one that is set, or that of a program that has set OpenTelemetry up; None without
    one. If it cannot be used and was set for hira, add a notice."""
    sdk, api = sys.modules.get("opentelemetry.sdk.trace"), sys.modules.get("opentelemetry.trace")
    is_traced = bool(sdk and api and isinstance(api.get_tracer_provider(), sdk.TracerProvider))  # loads nothing
    if settings.otel == OFF or not (settings.otel or is_traced):
        return None
    try:
        from hira.runtime.telemetry import Telemetry

        return Telemetry(settings.otel)
    except ImportError:
        if not settings.origin("otel").startswith("OTEL_"):
            notices.append(Notice("spans are not exported: pip install 'hira[otel]'", important=True))
        return None


def configure_roles(
    settings: Settings,
    policies: Mapping[str, Policy],
    table: Mapping[str, Mapping[str, Any]] | None = None,
    dialect: Dialect = NATIVE,
    client: Any = None,
    facts: EndpointFacts | None = None,
) -> tuple[dict[str, RoleConfig], tuple[Policy, ...]]:
    """The configuration of each role, `*` for all that are not named, and the policies that were opened for them.

    Roles that name the same model at the same place share one policy. `table` is litellm's, of prices; it is not asked
    for what is served from this machine or its network. `dialect` is the workflow's own, where none is set. `facts` are
    those about models; what is learned about a program's own policy lasts as long as its role.
    """
    facts = facts or EndpointFacts()
    given = {
        OFFLINE: FREE,
        **{name: Price(price.input, price.output, price.cached) for name, price in settings.prices.items()},
    }
    opened: dict[EndpointList, Policy] = {}

    configs: dict[str, RoleConfig] = {}
    roles = {"*": RoleSettings(), **dict.fromkeys(policies, RoleSettings()), **settings.roles}
    for role, role_settings in roles.items():
        continuation = role_settings.continuation or settings.continuation
        model = role_settings.model or settings.model
        names = names_of(model) or [model]
        endpoints = EndpointList(
            tuple(find_place(name, role, role_settings, settings) for name in names),
            continuation,
            role_settings.api or settings.api,
            json.dumps(dict(role_settings.extra_body), sort_keys=True, default=str),
        )
        policy = policies.get(role) or (
            None if role_settings.model or role_settings.adapter is not None else policies.get("*")
        )
        if policy is None:
            if endpoints not in opened:
                opened[endpoints] = endpoints.open(client, settings.timeout)
            policy = opened[endpoints]
        sampling = Sampling(
            settings.temperature if role_settings.temperature is None else role_settings.temperature,
            settings.top_p if role_settings.top_p is None else role_settings.top_p,
            role_settings.top_k or settings.top_k,
            seed=settings.seed,
            reasoning_effort=role_settings.reasoning_effort or settings.reasoning_effort,
        )
        named = role_settings.dialect or settings.dialect
        spoken = DIALECTS[named] if named else dialect
        nearby = table and any(is_nearby(place.base_url) for place in endpoints.places)
        free = {place.model: FREE for place in endpoints.places if place.model.startswith((IN_PROCESS, GGUF))}
        prices = Prices(free | given, table if table and not nearby else {})
        longest = role_settings.max_reply_tokens or settings.max_reply_tokens
        # what a program hands over is its own: it is bounded where somebody says so
        is_given = policy is not opened.get(endpoints)
        usual = None if is_given else ReplyBound()
        replies = ReplyBound(longest, longest) if longest else usual
        chosen = named or continuation != "turns" or spoken is not NATIVE
        otherwise = "" if chosen else FALLBACKS[NATIVE.name]
        goes_on: Continuation = "turns" if continuation == "turns" else "chain"
        first = endpoints.places[0]
        about = ModelFacts() if is_given else ModelFacts(facts)
        if not is_given and first.model != OFFLINE:
            about = facts.about(first.base_url or OPENAI_URL, first.model)
        configs[role] = RoleConfig(policy, sampling, spoken, goes_on, prices, otherwise, replies, about)
    return configs, tuple(opened.values())
