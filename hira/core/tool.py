"""Tools that a role may call: a name, a description, a JSON schema, and a function that returns an observation."""

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    TypedDict,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from typing_extensions import ParamSpec, TypeVar

from hira.core.errors import ToolDown, ToolError, UsageError, uncapitalise
from hira.core.patterns import compile_lazily
from hira.core.sanitize import clip_title
from hira.core.sources import Source, join_question_and_answer
from hira.core.tokens import clip

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

# Tokens of one text that reach the model, and the characters per token that are counted: prose never has more.
SHOWN = 4_000
_COUNTED = 20
_SPELLED = 160
_ARGS = compile_lazily(r"^(?:Args|Arguments|Parameters):[ \t]*\n(?P<entries>(?:[ \t]+.*\n?|\n)+)", re.MULTILINE)
_PARAMETER = compile_lazily(r"^(?P<name>\w+)[ \t]*(?:\([^)\n]*\))?:[ \t]*(?P<note>.*(?:\n[ \t]+.*)*)", re.MULTILINE)


LEFT_OUT = "\n…\n"
"""The separator of two passages of one source."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as the model reads it; the whole text stays with the source."""

    source: Source
    text: str


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a tool call.

    Args:
        text: hira's own words, or counts; for a failed call, the failure.
        passages: Parts of sources that were read.
        ok: False for a call that failed.
        citable: True if an answer may cite the text: in a run it becomes a source together with the call.
    """

    text: str = ""
    passages: tuple[Passage, ...] = ()
    ok: bool = True
    citable: bool = False

    def change_texts(self, change: Callable[[str], str]) -> "Observation":
        """Return a copy with each of its texts changed, those of its sources too, for hooks that mask names."""
        passages: list[Passage] = []
        for passage in self.passages:
            source = replace(passage.source.change_text(change), title=change(passage.source.title))
            passages.append(Passage(source, change(passage.text)))
        return replace(self, text=change(self.text), passages=tuple(passages))


Run = Callable[[dict[str, Any]], Awaitable[Observation]]
D = TypeVar("D", default=Any)
P = ParamSpec("P", default=...)
R = TypeVar("R", default=Any)


@dataclass(frozen=True, slots=True)
class Context(Generic[D]):
    """The run that calls a tool, as the first parameter of its function. The model never sees it.

    Args:
        deps: The program's `Hira(deps=…)`, such as a pool of connections.
        run_id: The id of the run.
        question: The question of the run.
    """

    deps: D
    run_id: str = ""
    question: str = ""


@dataclass(frozen=True)
class Tool(Generic[P, R]):
    """A tool. One that wraps a function can be called like it.

    Args:
        name: Its name for the model.
        description: Its purpose, for the model.
        parameters: The JSON schema of its arguments, an object.
        run: Gets arguments that were checked against the schema, and returns an observation.
        seconds: How long one call may take.
        pure: True if the same arguments give the same result within one run, so that it is called once.
        stateful: True if its calls build on one another, so that a resumed run repeats the earlier ones, unseen.
        check: Converts the model's arguments. Raises `ToolError`.
        server: The server that an MCP-style call names in addition to the tool.
        blocked: Hosts that are never opened or shown.
        speaks: The role that a call runs. Its own calls are recorded, so a resumed run repeats this one.
        shown: Tokens of each text that reach the model, 0 for all.
        function: The function that it wraps.
        bound: Returns `run` for a run's `Context`, if the function takes one.
        needs_approval: True if a person has to approve each call.
        deps: The name of the type of the program's `deps` that the function needs, empty if it needs none.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run
    seconds: float = 120.0
    pure: bool = False
    stateful: bool = False
    check: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=dict, repr=False)
    server: str = "tools"
    blocked: Collection[str] = ()
    speaks: str = ""
    shown: int = SHOWN
    function: Callable[P, R] | None = field(default=None, repr=False)
    bound: Callable[[Context], Run] | None = field(default=None, repr=False)
    needs_approval: bool = False
    deps: str = ""

    @property
    def has_effects(self) -> bool:
        """Return whether a call may change something that lasts, as far as hira knows."""
        return not (self.pure or self.stateful or self.speaks)

    def bind(self, context: Context) -> "Tool[P, R]":
        """Return the tool for one run; the tool itself if its function takes no `Context`."""
        return replace(self, run=self.bound(context)) if self.bound else self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the wrapped function and return its own result, as its tests need it. Models use `call`."""
        if self.function is None:
            raise UsageError(f"the tool {self.name!r} was not made of a function", fix="await its method call({…})")
        return self.function(*args, **kwargs)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The function definition of the chat API."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @property
    def fields(self) -> list[str]:
        """The names of the parameters, required ones first."""
        names = list(self.parameters.get("properties", {}))
        return sorted(names, key=lambda name: name not in self.parameters.get("required", ()))

    async def call(self, arguments: Mapping[str, Any]) -> Observation:
        """Run the tool with these arguments. `ToolError` explains to the model what went wrong."""
        checked = self.check(arguments)
        try:
            async with asyncio.timeout(self.seconds):
                observation = await self.run(checked)
        except TimeoutError:
            raise ToolDown(f"{self.name} did not finish within {self.seconds:g} seconds") from None
        if observation.passages:
            named = tuple(
                replace(passage, source=replace(passage.source, title=clip_title(passage.source.title)))
                for passage in observation.passages
            )
            observation = replace(observation, passages=named)
        return limit_texts(observation, self, arguments)


def limit_texts(observation: Observation, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
    """Cut the texts that the model reads to the tool's limit. A plain text that is too long becomes a source, so that
    nothing of it is lost; the message of a failed call is only cut."""
    if not tool.shown:
        return observation
    text = _cut(observation.text, tool.shown)
    if text == observation.text and not observation.passages:
        return observation
    passages = tuple(replace(passage, text=_cut(passage.text, tool.shown)) for passage in observation.passages)
    if text != observation.text and observation.ok:
        (whole,) = read_result(f"tool:{tool.name}", tool.name, arguments, observation.text).passages
        return replace(observation, text="", passages=(replace(whole, text=text), *passages), citable=False)
    return replace(observation, text=text, passages=passages)


def join_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a call with folded white space, to distinguish two calls of one tool."""
    return " ".join(" ".join(map(str, arguments.values())).split())


def read_result(place: str, title: str, arguments: Mapping[str, Any], result: str) -> Observation:
    """Return a tool's text as a citable source, together with the call, which says what the result is about. Results of
    equal calls have equal locations.

    >>> read_result("tool:tides", "tides", {"harbour": "Husum"}, "3.5 m").passages[0].source.location
    'tool:tides({"harbour": "Husum"})'
    """
    if not result.strip():
        return Observation(result)
    spelled = json.dumps(dict(arguments), ensure_ascii=False, default=str)
    location = json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str) if arguments else ""
    if len(location) > _SPELLED:
        location = f"{location[:_SPELLED]}… #{hashlib.sha256(location.encode()).hexdigest()[:8]}"
    source = Source(f"{place}({location})", title, join_question_and_answer(f"{title}({spelled})", result), "tool")
    return Observation(passages=(Passage(source, result),))


def _cut(text: str, limit: int) -> str:
    """Return at most about `limit` tokens of a text, its beginning and its end."""
    most = limit * _COUNTED
    return clip(text if len(text) <= most else text[: most // 2] + text[-most // 2 :], limit, middle=True)


class _ToolOptions(TypedDict, total=False):
    name: str
    seconds: float
    pure: bool
    shown: int
    needs_approval: bool


@overload
def tool(function: Callable[P, R], **options: Unpack[_ToolOptions]) -> Tool[P, R]: ...


@overload
def tool(function: None = None, **options: Unpack[_ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str = "",
    seconds: float = 120.0,
    pure: bool = False,
    shown: int = SHOWN,
    needs_approval: bool = False,
) -> Any:
    """Turn a typed function into a tool: its docstring is the description, its signature the schema.

    >>> @tool
    ... def population(city: str) -> str:
    ...     "How many people live in a city."
    ...     return CENSUS[city]

    A plain function runs in a thread and may block. It may return text or an `Observation`. The function can still be
    called. A first parameter of the type `Context` is hidden from the model: each run passes its own.

    Args:
        function: The function; each of its parameters needs a type.
        name: The tool's name for the model, by default the function's.
        seconds: How long one call may take.
        pure: True if the same arguments give the same result within one run, so that it is called once.
        shown: Tokens of each text that reach the model, 0 for all; a longer text is kept whole as a source.
        needs_approval: True if a person has to approve each call (`Hira(approve_tool=…)`).

    Raises:
        UsageError: No model could call the function.
    """
    if function is None:
        return partial(tool, name=name, seconds=seconds, pure=pure, shown=shown, needs_approval=needs_approval)
    first, deps = find_context(function)
    model, parameters = _arguments(function, first)
    called = name or function.__name__
    description, notes = split_docstring(inspect.cleandoc(function.__doc__ or ""))
    if notes:  # in a copy: tools of one signature share the original
        properties = {
            name: {"description": notes[name], **schema} if name in notes else schema
            for name, schema in parameters["properties"].items()
        }
        parameters = {**parameters, "properties": properties}

    async def refuse(_arguments: dict[str, Any]) -> Observation:
        raise ToolError(f"{called} works only within a run, which provides its context")

    run: Run = partial(_run, function)
    if first:
        run = refuse
    return Tool(
        called,
        description,
        parameters,
        run,
        seconds,
        pure,
        check=partial(_check, model, called),
        shown=shown,
        function=function,
        bound=(lambda context: partial(_run, partial(function, **{first: context}))) if first else None,
        needs_approval=needs_approval,
        deps=deps,
    )


def _check(model: "type[BaseModel]", tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool as its function takes them. Raises `ToolError`."""
    from pydantic import ValidationError

    try:
        checked = model.model_validate(dict(arguments))
    except ValidationError as error:
        raise ToolError(f"wrong arguments for {tool}: {describe_faults(error, 'arguments')}") from None
    return {key: getattr(checked, key) for key in type(checked).model_fields}


async def _run(function: Callable[..., Any], arguments: dict[str, Any]) -> Observation:
    """Call the function, a plain one in a thread."""
    if inspect.iscoroutinefunction(function):
        result = await function(**arguments)
    else:
        # asyncio has only a few threads; blocking tools of many questions wait concurrently
        from anyio import to_thread

        result = await to_thread.run_sync(partial(function, **arguments), abandon_on_cancel=True)
    return result if isinstance(result, Observation) else Observation(_write_result(result), citable=True)


def text_tool(function: Callable[..., Awaitable[Observation]], required: Mapping[str, str], **optional: str) -> Tool:
    """Turn an async function of hira's own into a tool. All of its parameters are texts, given with their descriptions,
    so that nothing is inspected before the first call: that took 30 ms of a start."""
    notes = {**required, **optional}
    texts = {name: {**({"description": note} if note else {}), "type": "string"} for name, note in notes.items()}
    inspected = lru_cache(maxsize=1)(lambda: tool(function))
    return Tool(
        function.__name__,
        inspect.cleandoc(function.__doc__ or ""),
        {"type": "object", "properties": texts, "required": [*required]},
        lambda arguments: function(**arguments),
        check=lambda arguments: inspected().check(arguments),
        function=function,
    )


def describe_faults(error: "ValidationError", whole: str) -> str:
    """Describe what does not fit a schema; `whole` names the value itself."""
    faults = ((".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors())
    return "; ".join(f"{place or whole}: {uncapitalise(message)}" for place, message in faults)


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section "Args:", and the description of each parameter in this section.

    >>> split_docstring("High water.\\n\\nArgs:\\n    harbour: its name,\\n        in German")
    ('High water.', {'harbour': 'its name, in German'})
    """
    section = _ARGS.search(docstring)
    if section is None:
        return docstring, {}
    entries = _PARAMETER.finditer(inspect.cleandoc(f"\n{section['entries']}"))
    notes = {entry["name"]: " ".join(entry["note"].split()) for entry in entries}
    return f"{docstring[: section.start()].rstrip()}\n\n{docstring[section.end() :].lstrip()}".strip(), notes


def find_context(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the name of the first parameter if it takes the run's `Context`, and the type of its `deps`."""
    if not inspect.isroutine(function):
        return "", ""
    first = next(iter(inspect.signature(function).parameters), "")
    hint = _read_hints(function, extras=False).get(first)
    if (get_origin(hint) or hint) is not Context:
        return "", ""
    (deps,) = get_args(hint) or (Any,)
    optional = deps is Any or deps is NoneType or NoneType in get_args(deps)
    return first, "" if optional else getattr(deps, "__qualname__", str(deps))


def _arguments(function: Callable[..., Any], context: str = "") -> "tuple[type[BaseModel], Mapping[str, Any]]":
    """Return the model and the schema of a function's arguments. Raises `UsageError` if it cannot be a tool."""
    if not inspect.isroutine(function):
        raise UsageError(f"a tool needs a function, got {function!r}", fix="write @tool above a def")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        fix = "return its result at once, for example as a list"
        raise UsageError(f"a tool needs a function that returns, got the generator {function!r}", fix=fix)
    hints = _read_hints(function, extras=True)
    fields: list[_Field] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == context:
            continue
        name, what = parameter.name, f"tool {function.__name__!r}:"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            what = f"{what} {str(parameter).partition(':')[0]!r} gives a model no names for its arguments"
            raise UsageError(what, fix="name each parameter, or take one list or dict")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            what = f"{what} parameter {name!r} cannot be given by its name"
            raise UsageError(what, fix="leave out the / of the signature")
        if name not in hints:
            method = f"make it of an object's method: tool(it.{function.__name__})"
            fix = method if name in ("self", "cls") else f"write {name}: str"
            raise UsageError(f"{what} parameter {name!r} needs a type", fix=fix)
        hint, default = hints[name], ... if parameter.default is parameter.empty else parameter.default
        fields.append(_Field(name, _make_comparable(hint), type(default), default, hint))
    from pydantic import PydanticUserError

    try:
        return _model(function.__name__, tuple(fields))
    except TypeError:  # a default such as a list cannot be looked up
        return _model.__wrapped__(function.__name__, tuple(fields))
    except PydanticUserError:
        raise _describe_unreadable(function.__name__, fields) from None


def _describe_unreadable(name: str, fields: "Sequence[_Field]") -> UsageError:
    """The error of a tool with a parameter that no JSON value can be."""
    from pydantic import PydanticUserError, TypeAdapter

    what = f"tool {name!r}: its parameters have no JSON schema"
    for parameter in fields:
        try:
            TypeAdapter(parameter.hint).json_schema()
        except PydanticUserError:
            shown = getattr(parameter.hint, "__name__", str(parameter.hint))
            what = f"tool {name!r}: parameter {parameter.name!r} has a type that no model can write: {shown}"
    return UsageError(what, fix="use str, int, float, bool, a list, a dict, a dataclass or a pydantic model")


def _read_hints(function: Callable[..., Any], *, extras: bool) -> dict[str, Any]:
    """Return the types of a function's parameters. Raises `UsageError` for a name that its module does not have."""
    try:
        return get_type_hints(function, include_extras=extras)
    except NameError as error:
        what = f"function {function.__name__!r}: the type of a parameter is unknown: {error}"
        raise UsageError(what, fix="define the type in the module and not in a function, or import it there") from None


@dataclass(frozen=True)
class _Field:
    """One parameter. Two are equal if no model could distinguish them."""

    name: str
    told: Any
    sort: type
    default: Any
    hint: Any = field(compare=False)


def _make_comparable(hint: Any) -> Any:
    """Return a hint in comparable form: two descriptions with the same words are equal, though they are two objects."""
    from pydantic.fields import FieldInfo

    if get_origin(hint) is not Annotated:
        return hint
    metadata = ((part, isinstance(part, FieldInfo) and part.is_required()) for part in hint.__metadata__)
    return (hint.__origin__, *(repr(part) if is_plain else part for part, is_plain in metadata))


@lru_cache(maxsize=64)
def _model(name: str, fields: tuple[_Field, ...]) -> "tuple[type[BaseModel], Mapping[str, Any]]":
    """Create the model and the schema; cached, because tools have few signatures and a class is expensive to create."""
    from pydantic import ConfigDict, create_model

    parameters: dict[str, Any] = {parameter.name: (parameter.hint, parameter.default) for parameter in fields}
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **parameters)
    schema = model.model_json_schema()
    # the title that pydantic derives from a parameter's name is useless to a model, and so is an empty default
    properties = {
        key: {name: value for name, value in details.items() if name != "title" and (name, value) != ("default", "")}
        for key, details in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    if definitions := schema.get("$defs"):
        parameters["$defs"] = definitions
    return model, parameters


def _write_result(result: object) -> str:
    """Return what a function returned as text: lists, mappings, models and dataclasses as JSON."""
    if result is None or isinstance(result, str | int | float):
        return str(result)
    from pydantic_core import to_jsonable_python  # only few tools return structures

    written = to_jsonable_python(result, fallback=str)
    return written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
