"""Validation of the objects that a program hands over, or that settings name. Every mistake is a `UsageError`."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from hira.core.errors import UsageError
from hira.core.hooks import Hooks
from hira.core.plugin import Configurable
from hira.evidence import Verifier
from hira.tools import Tool

# The names that tools of hira's own have in the prompts of experts and planner.
TAKEN = frozenset(
    ["search", "scholar", "browse", "files", "python", "look", "subtask", "follow_citations", "google_search"]
)
_EXPERT = "an expert has name, description, ability, cost, needs and async work(task, context): docs/experts.md"
_TOOL = "write @tool above the function (from hira import tool) and give tools=[…]"
_WORKFLOW = "a workflow has a name and async run(question, context): docs/workflows.md"
_POLICY = "a policy has a model and async complete(request, watch): docs/policies.md"


def _check_hooks(hooks: Any) -> None:
    if not isinstance(hooks, Hooks):
        raise UsageError(f"`hooks` must be Hooks, got {hooks!r:.80}", fix="write hooks=Hooks(before_tool=…)")
    for name in hooks.names:
        if not callable(getattr(hooks, name)):
            raise UsageError(f"the hook {name} must be a function, got {getattr(hooks, name)!r:.80}")


def check_verifier(verifier: Any, name: str = "`verifier`") -> None:
    """Raise `UsageError` for what is no verifier."""
    if not isinstance(verifier, Verifier):
        fix = "a verifier has a name and async verify(claims, question): docs/evidence.md"
        raise UsageError(f"{name} is not a verifier: {verifier!r:.80}", fix=fix)


def _check_function(name: str, argument: str, function: Any) -> None:
    if not callable(function):
        raise UsageError(f"`{name}` must be a function, got {function!r}", fix=f"give a function of {argument}")


def _check_client(client: Any) -> None:
    if not inspect.iscoroutinefunction(getattr(client, "post", None)):
        fix = "give an openai.AsyncOpenAI or openai.AsyncAzureOpenAI"
        raise UsageError(f"`client` must be an asynchronous OpenAI client, got {type(client).__name__}", fix=fix)


def check_workflow(workflow: Any) -> None:
    """Raise `UsageError` for what is no workflow; a name is one."""
    if isinstance(workflow, str):
        return
    _no_class(workflow, "workflow")
    if not isinstance(getattr(workflow, "name", None), str) or not workflow.name:
        raise UsageError(f"workflow has no name: {workflow!r}", fix=_WORKFLOW)
    if not inspect.iscoroutinefunction(getattr(workflow, "run", None)):
        raise UsageError(f"workflow {workflow.name!r} has no async method run", fix=_WORKFLOW)


def check_tools(tools: Any) -> None:
    """Raise `UsageError` for a list that contains something other than a tool, or a tool that conflicts with hira's
    own."""
    for tool in _several(tools, "tools", _TOOL):
        if not isinstance(tool, Tool):
            raise UsageError(f"`tools` must contain only tools, got {tool!r}", fix=_TOOL)
        if not tool.description:
            what = f"tool {tool.name!r} has no description"
            raise UsageError(what, fix="write a docstring for its function: the model reads it")
        if tool.name in TAKEN:
            fix = 'rename it: @tool(name="…")'
            raise UsageError(f"tool {tool.name!r} has the name of a built-in tool", fix=fix)
    _no_name_twice([tool.name for tool in tools], "tools")


def check_deps(tools: Sequence[Tool], deps: Any) -> None:
    """Raise `UsageError` for a tool that needs what the program has not handed over."""
    for tool in tools:
        if tool.deps and deps is None:
            what = f"tool {tool.name!r} needs deps of the type {tool.deps}, and there are none"
            raise UsageError(what, fix="give Hira(deps=…)")


def check_experts(experts: Any) -> None:
    """Raise `UsageError` for a list that contains something other than an expert, or an expert that conflicts with
    hira's own."""
    for candidate in _several(experts, "experts", _EXPERT):
        _no_class(candidate, "experts")
        for name, kinds in (("name", str), ("description", str), ("ability", str), ("cost", (int, float))):
            value = getattr(candidate, name, None)
            if not isinstance(value, kinds) or value == "":
                raise UsageError(f"the expert {_name_of(candidate)} has no {name}", fix=_EXPERT)
        needs = getattr(candidate, "needs", None)
        if isinstance(needs, str) or not isinstance(needs, Collection):
            raise UsageError(
                f"`needs` of the expert {_name_of(candidate)} must be a collection", fix="write needs = frozenset()"
            )
        if not inspect.iscoroutinefunction(getattr(candidate, "work", None)):
            raise UsageError(f"the expert {_name_of(candidate)} has no async method work", fix=_EXPERT)
        if isinstance(candidate, Configurable):
            candidate.check()
    if not experts:
        return
    from hira.agents.experts import EXPERTS  # only experts of the program or the settings share their names

    _no_name_twice(
        [*(expert.name for expert in EXPERTS), *(expert.name for expert in experts)], "experts, with hira's own,"
    )


def _check_policies(policies: Any) -> None:
    if not isinstance(policies, Mapping):
        raise UsageError(f"`policies` must be a mapping, got {policies!r}", fix='write policies={"*": policy}')
    for role, policy in policies.items():
        _no_class(policy, f"policies[{role!r}]")
        if not isinstance(getattr(policy, "model", None), str) or not inspect.iscoroutinefunction(
            getattr(policy, "complete", None)
        ):
            raise UsageError(f"policies[{role!r}] is not a policy: {policy!r}", fix=_POLICY)


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
    "client": _check_client,
    "workflow": check_workflow,
    "tools": check_tools,
    "experts": check_experts,
    "policies": _check_policies,
    "verifier": lambda verifier: None if isinstance(verifier, str) else check_verifier(verifier),
    "approve": partial(_check_function, "approve", "a list of subtasks"),
    "approve_tool": partial(_check_function, "approve_tool", "a hira.ToolUse"),
    "hooks": _check_hooks,
}
"""For arguments of `Hira` that are given: what checks each of them."""


def check_objects(given: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first of these arguments of `Hira` that is not what it should be."""
    for name, check in _CHECKS.items():
        if name in given:
            check(given[name])
