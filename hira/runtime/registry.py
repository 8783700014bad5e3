"""The workflow that the settings name, with its options, and whether its roles are the ones that are spoken of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from hira.agents.role import EVIDENCE, OUTPUT
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError, did_you_mean
from hira.core.options import SHARED
from hira.core.plugin import WORKFLOWS as INSTALLED
from hira.core.plugin import find_installed, package_of
from hira.core.policy import VERIFIER, Policy
from hira.policies.dialects import DIALECTS, NATIVE, Dialect
from hira.runtime.settings import Settings
from hira.workflows import WORKFLOWS, BuiltIn, Workflow

if TYPE_CHECKING:
    from hira.agents.expert import Expert

JUDGE = "judge"
"""The role that scores answers and reports; no workflow has it."""
EMBED, RERANK, SEARCH = "embed", "rerank", "search"
"""The roles whose settings hold the endpoints of the encoder, the reranker and the vendor's web search."""
ANYWHERE = frozenset({VERIFIER, OUTPUT, EVIDENCE, EMBED, RERANK, SEARCH})
"""Roles of every workflow: those that check the answer, write its value, encode, order and condense passages, and
search the web."""


def make_workflow(settings: Settings, experts: "Sequence[Expert]" = ()) -> BuiltIn:
    """Create the workflow that the settings name, with the built-in experts, the user's own and those of the settings.

    Raises `UsageError` for an unknown workflow or option, and for a flag that the workflow does not have. A workflow
    that is named as `module:Object`, or by an installed package, is loaded, and has only its own options.
    """
    name = settings.workflow
    options: dict[str, Any] = {}
    if settings.workflows:
        from hira.runtime.workflow_options import read_options  # few settings have any

        options = read_options(settings, name)
    make: Any = WORKFLOWS.get(name)
    if make is None and (":" in name or name in find_installed(INSTALLED)):
        from hira.core.loading import load_named
        from hira.runtime.objects import check_workflow

        with settings.located("workflow"):
            workflow = load_named(name, INSTALLED)
            check_workflow(workflow)
        return cast("BuiltIn", workflow)
    if make is None:
        fix = did_you_mean(name, [*WORKFLOWS, *find_installed(INSTALLED)])
        raise UsageError(f"unknown workflow {name!r}", where=f"set by {settings.origin('workflow')}", fix=fix)
    has = {field.name for field in fields(make)}
    given: dict[str, Any] = {}
    for general in SHARED:
        value = getattr(settings, general)
        if value and general in has:
            given[general] = value
        elif value and settings.origin(general).startswith("--"):
            raise UsageError(f"{settings.origin(general)} is not an option of workflow {name!r}", fix="remove it")
    given |= options
    if "experts" in has:
        from hira.agents.experts import EXPERTS  # some workflows have none
        from hira.runtime.objects import check_experts, load_experts

        workflow = [*experts, *load_experts(settings)]
        check_experts(workflow)
        given["experts"] = (*EXPERTS, *workflow)
    return cast("BuiltIn", make(**given))


def find_hidden_workflow(settings: Settings) -> list[str]:
    """Return a notice if hira's own workflow was chosen and an installed package has one of the same name."""
    name = settings.workflow
    if settings.origin("workflow") == "default" or name not in WORKFLOWS:
        return []
    packages = ", ".join(map(package_of, find_installed(INSTALLED).get(name, ())))
    return [f"{name!r} is hira's own workflow; that of the package {packages} is not used"] if packages else []


def check_roles(settings: Settings, workflow: Workflow, policies: Mapping[str, Policy]) -> None:
    """Raise `UsageError` for a role that the workflow does not have, if it lists its `roles`.

    Roles in a settings file may be those of another workflow; roles that were named for this run may not.
    """
    known = getattr(workflow, "roles", None)
    if known is None:
        return
    known = known | ANYWHERE
    for role in (*settings.roles, *policies):
        if role in known or role == "*":
            continue
        name = f"roles.{role}"
        place = "" if role in policies else settings.locate(name, name)
        wanted = role in policies or (not place and settings.origin(name) != "default")
        if wanted or not (role == JUDGE or any(role in make().roles for make in WORKFLOWS.values())):
            where = f"in workflow {workflow.name!r}" + (f", named {place}" if place else "")
            raise UsageError(f"unknown role {role!r}", where=where, fix=did_you_mean(role, sorted(known)))


def dialect_of(workflow: Workflow) -> Dialect:
    """Return the dialect that the workflow prefers if no setting names one: its `dialect`, a name or an object."""
    dialect = getattr(workflow, "dialect", NATIVE)
    if not isinstance(dialect, str):
        return dialect
    if dialect not in DIALECTS:
        where = f"dialect of workflow {workflow.name!r}"
        raise UsageError(f"unknown dialect {dialect!r}", where=where, fix=did_you_mean(dialect, DIALECTS))
    return DIALECTS[dialect]


@dataclass(frozen=True)
class WorkflowUnion:
    """Represents several workflows while their shared session is opened: a role of any of them may be configured."""

    workflows: Mapping[str, BuiltIn]

    @property
    def name(self) -> str:
        return ", ".join(self.workflows)

    @property
    def roles(self) -> frozenset[str]:
        return frozenset(role for workflow in self.workflows.values() for role in workflow.roles)

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset(role for workflow in self.workflows.values() for role in workflow.takes_tools)

    async def run(self, question: str, context: RunContext) -> str:
        raise NotImplementedError(f"{self.name} are run one by one: {question!r}, {context!r}")
