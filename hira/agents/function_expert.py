"""Experts made of functions, as `@tool` makes tools."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, get_type_hints, overload

from hira.agents.expert import Account, Task
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError, did_you_mean

Work = Callable[..., Awaitable[Account | str]]


@dataclass(frozen=True, slots=True)
class FunctionExpert:
    """An expert that wraps an async function."""

    name: str
    """The name that the coordinator reads, and that `[experts.NAME]` gives."""
    description: str
    """Tasks that the expert can do, for the coordinator."""
    ability: str
    """The dimension it belongs to; `without` in the settings removes a whole ability."""
    cost: int
    """1 for the cheapest expert."""
    needs: frozenset[str]
    """The tools of the toolbox without which the expert is not offered."""
    function: Work = field(repr=False)
    """Does a subtask."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values of the function's keyword parameters, from the settings; they may hold passwords."""

    async def work(self, task: Task, context: RunContext) -> Account:
        report = await self.function(task, context, **self.options)
        return Account(report, report) if isinstance(report, str) else report

    def configure(self, options: Mapping[str, Any]) -> Self:
        """Return the expert with values of its keyword parameters. Raises `UsageError` for one that does not fit."""
        from hira.core.wrong_values import read_value  # loads pydantic

        hints = get_type_hints(self.function)
        kinds = {parameter.name: hints.get(parameter.name, Any) for parameter in _list_options(self.function)}
        checked: dict[str, Any] = {}
        for name, value in options.items():
            if name not in kinds:
                fix = did_you_mean(name, kinds) if kinds else "it has none: write them as keyword parameters"
                raise UsageError(f"the expert {self.name!r} has no option {name!r}", fix=fix)
            what = f"option {name!r} of the expert {self.name!r}"
            checked[name] = read_value(kinds[name], value, what, secret=True)
        return replace(self, options={**self.options, **checked})

    def check(self) -> None:
        """Raise `UsageError` if an option without a default has no value."""
        for parameter in _list_options(self.function):
            if parameter.default is parameter.empty and parameter.name not in self.options:
                what = f"the expert {self.name!r} lacks the option {parameter.name!r}"
                raise UsageError(what, fix=f"set {parameter.name} in [experts.{self.name}] of hira.toml")


@overload
def expert(
    function: Work, *, ability: str = "", cost: int = 1, name: str = "", needs: Collection[str] = ()
) -> FunctionExpert: ...


@overload
def expert(
    function: None = None, *, ability: str = "", cost: int = 1, name: str = "", needs: Collection[str] = ()
) -> Callable[[Work], FunctionExpert]: ...


def expert(
    function: Work | None = None, *, ability: str = "", cost: int = 1, name: str = "", needs: Collection[str] = ()
) -> Any:
    """Turn an async function into an expert: its docstring describes the expert for the coordinator.

    >>> @expert(ability="timetables", cost=1)
    ... async def harbour(task: Task, context: RunContext, *, island: str = "Amrum") -> str:
    ...     "Knows how long the ferries to the islands take."
    ...     return FERRIES[island]

    The function gets the subtask and the run, and returns its conclusion, or an `Account` with its reasoning too.
    Keyword parameters are options, which `[experts.NAME]` of hira.toml may set.

    Args:
        function: The async function.
        ability: The dimension the expert belongs to, by default its name.
        cost: 1 for the cheapest; of experts that can do the same, the coordinator takes the cheapest.
        name: The expert's name, by default the function's.
        needs: The tools of the toolbox without which the expert is not offered, such as `{"search"}`.

    Raises:
        UsageError: The function is not async, or has no docstring.
    """
    if function is None:
        return partial(expert, ability=ability, cost=cost, name=name, needs=needs)
    if not inspect.iscoroutinefunction(function):
        raise UsageError(
            f"an expert needs an async function, got {function!r:.80}", fix="write async def below @expert"
        )
    name = name or function.__name__
    description = inspect.cleandoc(function.__doc__ or "")
    if not description:
        raise UsageError(f"the expert {name!r} has no description", fix="write a docstring: the coordinator reads it")
    return FunctionExpert(name, description, ability or name, cost, frozenset(needs), function)


def _list_options(function: Work) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
