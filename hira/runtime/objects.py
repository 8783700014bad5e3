"""The objects that a program hands over, or that settings name: loaded and validated. A mistake is a `UsageError`."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from hira.agents.expert import Expert
from hira.core.errors import UsageError, did_you_mean, find_near
from hira.core.hooks import NO_HOOKS, Hooks
from hira.core.loading import Configurable, load_named, load_object
from hira.core.plugin import TOOLS
from hira.evidence import Verifier
from hira.runtime.settings import ExpertSettings, Settings, list_retrievers
from hira.tools import Tool
from hira.tools.retriever import Retriever, make_search_tool
from hira.workflows import WORKFLOWS, Workflow

# The names that tools of hira's own have in the prompts of experts and planner.
TAKEN = frozenset(
    ["search", "scholar", "browse", "files", "python", "look", "subtask", "follow_citations", "google_search"]
)
_EXPERT = "an expert has name, description, ability, cost, needs and async work(task, context): docs/experts.md"
_TOOL = "write @tool above the function (from hira import tool) and give tools=[…]"
_WORKFLOW = "a workflow has a name and async run(question, context): docs/workflows.md"
LONGEST_NAME = 64
"""Characters of a tool's name that endpoints accept."""
_POLICY = "a policy has a model and async complete(request, watch): docs/policies.md"


def check_verifier(verifier: Any, name: str = "`verifier`") -> None:
    if not isinstance(verifier, Verifier):
        fix = "a verifier has a name and async verify(claims, question): docs/evidence.md"
        raise UsageError(f"{name} is not a verifier: {verifier!r:.80}", fix=fix)


def check_workflow(workflow: Any) -> None:
    _no_class(workflow, "workflow")
    if not isinstance(getattr(workflow, "name", None), str) or not workflow.name:
        raise UsageError(f"workflow has no name: {workflow!r}", fix=_WORKFLOW)
    if not inspect.iscoroutinefunction(getattr(workflow, "run", None)):
        raise UsageError(f"workflow {workflow.name!r} has no async method run", fix=_WORKFLOW)
    _check_arguments(workflow, "run", f"workflow {workflow.name!r}", _WORKFLOW)


def check_tools(tools: Any) -> None:
    """Raise `UsageError` unless the list contains only tools, none of which conflicts with hira's own."""
    for tool in _several(tools, "tools", _TOOL):
        if not isinstance(tool, Tool):
            raise UsageError(f"`tools` must contain only tools, got {tool!r}", fix=_TOOL)
        if not tool.description:
            what = f"tool {tool.name!r} has no description"
            raise UsageError(what, fix="write a docstring for its function: the model reads it")
        _check_name(tool.name, "tool")
        for name, least in (("seconds", 0.001), ("shown", 0)):
            value = getattr(tool, name)
            if not isinstance(value, int | float) or not value >= least:
                what = f"`{name}` of the tool {tool.name!r} must be a number of at least {least}, got {value!r}"
                raise UsageError(what, fix=f"write @tool({name}=60)")
        if tool.name in TAKEN:
            fix = 'rename it: @tool(name="…")'
            raise UsageError(f"tool {tool.name!r} has the name of a built-in tool", fix=fix)
    _no_name_twice([tool.name for tool in tools], "tools")


def check_experts(experts: Any) -> None:
    """Raise `UsageError` unless the list contains only experts, none of which conflicts with hira's own."""
    for candidate in _several(experts, "experts", _EXPERT):
        _no_class(candidate, "experts")
        for name, kinds in (("name", str), ("description", str), ("ability", str), ("cost", (int, float))):
            value = getattr(candidate, name, None)
            if not isinstance(value, kinds) or value == "":
                raise UsageError(f"the expert {_name_of(candidate)} has no {name}", fix=_EXPERT)
        _check_name(candidate.name, "expert")
        needs = getattr(candidate, "needs", None)
        if isinstance(needs, str) or not isinstance(needs, Collection):
            raise UsageError(
                f"`needs` of the expert {_name_of(candidate)} must be a collection", fix="write needs = frozenset()"
            )
        if not inspect.iscoroutinefunction(getattr(candidate, "work", None)):
            raise UsageError(f"the expert {_name_of(candidate)} has no async method work", fix=_EXPERT)
        _check_arguments(candidate, "work", f"the expert {_name_of(candidate)}", _EXPERT)
        if isinstance(candidate, Configurable):
            candidate.check()
    if not experts:
        return
    from hira.agents.experts import EXPERTS  # only experts of the program or the settings share their names

    _no_name_twice(
        [*(expert.name for expert in EXPERTS), *(expert.name for expert in experts)], "experts, with hira's own,"
    )


def _check_name(name: str, kind: str) -> None:
    if not (name.isascii() and name.replace("-", "_").isidentifier() and len(name) <= LONGEST_NAME):
        what = f"the {kind} name {name!r} is not one that endpoints accept"
        raise UsageError(what, fix=f"use the letters a to z, digits, _ and -, at most {LONGEST_NAME}")


def _check_policies(policies: Any) -> None:
    if not isinstance(policies, Mapping):
        raise UsageError(f"`policies` must be a mapping, got {policies!r}", fix='write policies={"*": policy}')
    for role, policy in policies.items():
        _no_class(policy, f"policies[{role!r}]")
        if not isinstance(getattr(policy, "model", None), str) or not inspect.iscoroutinefunction(
            getattr(policy, "complete", None)
        ):
            raise UsageError(f"policies[{role!r}] is not a policy: {policy!r}", fix=_POLICY)
        _check_arguments(policy, "complete", f"policies[{role!r}]", _POLICY)


def _check_arguments(candidate: Any, method: str, owner: str, fix: str) -> None:
    """Raise `UsageError` for a method that cannot be called with two arguments, as all of these are."""
    signature = inspect.signature(getattr(candidate, method))
    try:
        signature.bind(None, None)
    except TypeError:
        raise UsageError(f"{owner}: {method}{signature} must take two arguments", fix=fix) from None


def _several(values: Any, name: str, fix: str) -> Iterable[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise UsageError(f"`{name}` must be a list, got {values!r}", fix=fix)
    return values


def _no_class(value: Any, name: str) -> None:
    if isinstance(value, type):
        raise UsageError(f"{name}: {value.__name__} is a class", fix=f"give an instance: {value.__name__}()")


def _no_name_twice(names: Sequence[str], what: str) -> None:
    twice = next((name for index, name in enumerate(names) if name in names[:index]), "")
    if twice:
        raise UsageError(f"{what} contain the name {twice!r} twice", fix="rename one of them")


def _name_of(expert: Any) -> str:
    return repr(getattr(expert, "name", None) or type(expert).__name__)


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "workflow": check_workflow,
    "tools": check_tools,
    "experts": check_experts,
    "policies": _check_policies,
    "verifier": check_verifier,
}
"""The checks of those arguments of `Hira` that are objects."""


def check_objects(given: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first of these arguments of `Hira` that is not what it should be."""
    if "client" in given and not inspect.iscoroutinefunction(getattr(given["client"], "post", None)):
        what = f"`client` must be an asynchronous OpenAI client, got {type(given['client']).__name__}"
        raise UsageError(what, fix="give an openai.AsyncOpenAI or openai.AsyncAzureOpenAI")
    for name, check in _CHECKS.items():
        is_named = name in ("workflow", "verifier") and isinstance(given.get(name), str)
        if name in given and not is_named:
            check(given[name])
    for name, argument in (("approve", "a list of subtasks"), ("approve_tool", "a hira.ToolUse")):
        if name in given and not callable(given[name]):
            what = f"`{name}` must be a function, got {given[name]!r}"
            raise UsageError(what, fix=f"give a function of {argument}")
    hooks = given.get("hooks", NO_HOOKS)
    if not isinstance(hooks, Hooks):
        raise UsageError(f"`hooks` must be Hooks, got {hooks!r:.80}", fix="write hooks=Hooks(before_tool=…)")
    for name in hooks.names:
        if not callable(getattr(hooks, name)):
            raise UsageError(f"the hook {name} must be a function, got {getattr(hooks, name)!r:.80}")


def load_experts(settings: Settings) -> Iterator[Expert]:
    """Yield the experts of the settings. Raises `UsageError` that names the table of a wrong one."""
    for name, table in settings.experts.items():
        with settings.located(f"experts.{name}", f"experts.{name}"):
            expert = load_expert(name, table)
            check_experts([expert])
        yield expert


def load_expert(name: str, table: ExpertSettings) -> Expert:
    """Load an expert of the settings with its options; a function takes the name of its table."""
    from hira.agents.function_expert import FunctionExpert  # few runs have experts of their own

    loaded: Any = load_object(table.object, table.options)
    if ":" in name:
        return cast(Expert, loaded)
    if isinstance(loaded, FunctionExpert):
        return replace(loaded, name=name)
    if getattr(loaded, "name", name) != name:
        what = f"{table.object!r} in the table [experts.{name}] is an expert with the name {loaded.name!r}"
        raise UsageError(what, fix=f"write [experts.{loaded.name}]")
    return cast(Expert, loaded)


def gather_tools(
    settings: Settings, tools: Sequence[Tool], search: Retriever | None, deps: Any
) -> tuple[list[Tool], list[Tool], list[str]]:
    """Return the program's tools with those that the settings name, a "search" for the program's retriever and for each
    that the settings name, and notices about those that are not used.

    Raises `UsageError` for a tool that cannot be used, or that needs what the program has not handed over.
    """
    with settings.located("tools"):
        named, lines = load_tools(settings.tools)
        check_tools(named)
    every = [*tools, *named]
    check_tools(every)
    retrievers = [make_search_tool(search)] if search else []
    with settings.located("search"):
        retrievers += [make_search_tool(load_object(name)) for name in list_retrievers(settings.search)]
    for tool in (*every, *retrievers):
        if tool.deps and deps is None:
            what = f"tool {tool.name!r} needs deps of the type {tool.deps}, and there are none"
            raise UsageError(what, fix="give Hira(deps=…)")
    return every, retrievers, lines


def load_tools(names: Sequence[str]) -> tuple[list[Tool], list[str]]:
    """Return the tools that the settings name, and notices about those that hira's own tools of that name replace."""
    tools: list[Tool] = []
    lines: list[str] = []
    for name in names:
        installed = ":" not in name
        if installed and name in TAKEN:
            lines.append(f"the tool {name!r} is hira's own; an installed one of this name is not used")
            continue
        tool = load_named(name, TOOLS)
        if installed and isinstance(tool, Tool) and tool.name in TAKEN:
            lines.append(f"the installed tool {name!r} is not used: hira has its own tool {tool.name!r}")
            continue
        tools.append(tool)
    return tools, lines


def find_unused_tools(settings: Settings, workflow: Workflow, tools: Sequence[Tool] = ()) -> list[str]:
    """Return a notice about tools that no role of the workflow gets, if it lists them in `takes_tools`.

    Servers in a settings file may be for roles of another workflow, or for an expert of another program; a role that
    never gets tools, or is misspelt, is a `UsageError`.
    """
    takes = getattr(workflow, "takes_tools", None)
    if takes is None:
        return []
    # all roles are given a server's tools unless some are named
    given = {name: frozenset(server.roles) if server.for_some else takes for name, server in settings.mcp.items()}
    unused = [f"those of MCP server {name!r}" for name, served in given.items() if not takes & served]
    unused += ["the given tools"] if tools and not takes else []
    lines = [f"no role of workflow {workflow.name!r} gets these tools: {', '.join(unused)}"] if unused else []
    made = [make() for make in WORKFLOWS.values()] if settings.mcp else []
    anywhere = takes.union(*(workflow.takes_tools for workflow in made))
    roles = {*getattr(workflow, "roles", ()), *(role for workflow in made for role in workflow.roles)}
    for name, served in given.items():
        for role in sorted(served - anywhere):
            if role in roles or find_near(role, anywhere):
                fix = did_you_mean(role, sorted(takes)) if takes else "remove `roles`"
                what = f"`roles` of [mcp.{name}]: role {role!r} takes no tools"
                raise UsageError(what, where=settings.locate(f"mcp.{name}"), fix=fix)
            lines.append(f"[mcp.{name}] names {role!r}, which is not a role of this workflow")
    return lines
