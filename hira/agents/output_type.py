"""The type of an answer's value: its JSON schema, what a value has to fulfil, and the sources of its fields."""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, get_origin

from pydantic import BaseModel, PydanticUserError, TypeAdapter, create_model

from hira.core.bm25 import words
from hira.core.errors import DialectError, UsageError
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.sanitize import clean, sanitize
from hira.evidence import Citation
from hira.evidence.claims import read_polarity

WANTED = Prompt(__file__, "output", "output_wanted")
VALUE = "value"
OUTPUT_SCHEMA = "output_schema"
"""The recorded setting with the JSON schema of the output."""
MOST = 64_000
"""Characters of a JSON schema."""
MOST_STEPS = 100_000
"""Keywords of a JSON schema that are applied to one value: references can multiply them without end."""
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})


@dataclass(frozen=True)
class OutputType:
    """The type of an answer's value: a pydantic model, a dataclass, any other type that pydantic validates, or a JSON
    schema as a mapping. Raises `UsageError` for anything else.

    A JSON schema is at most 64,000 characters long, refers only to itself, and takes at most 100,000 steps to validate.
    The model sees its patterns, but hira does not enforce them, because a pattern can take any time. Without `enforced`
    its values are not validated at all.
    """

    shape: Any
    enforced: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.shape, Mapping):
            if self.enforced:
                _check_schema(self.shape)
            return
        what = f"no JSON schema can be made from `output_type`: {self.shape!r:.80}"
        fix = "give a pydantic model, a dataclass, another type, or a JSON schema"
        if not (isinstance(self.shape, type) or get_origin(self.shape)):
            raise UsageError(what, fix=fix)
        try:
            _ = self.value_schema
        except PydanticUserError as error:
            raise UsageError(f"{what}: {error.message.splitlines()[0]}", fix=fix) from None

    @property
    def value_schema(self) -> Mapping[str, Any]:
        """The JSON schema of the value."""
        return self.shape if isinstance(self.shape, Mapping) else TypeAdapter(self.shape).json_schema()

    @property
    def recorded(self) -> Mapping[str, Any]:
        """The part of a run's recorded settings that holds the schema."""
        return {OUTPUT_SCHEMA: self.value_schema}

    def extend(self, question: str) -> str:
        """The question as it is put to the workflow: it names the fields, so that they are looked for."""
        fields = [*_fields(self.schema, self.schema)]
        if not fields:
            return question
        return str(WANTED.fill(question=sanitize(question), fields=Filled("\n".join(f"- {field}" for field in fields))))

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema for the model's reply: an object; any other value is wrapped as `value`."""
        value_schema = self.value_schema
        if not _is_bare(value_schema):
            return value_schema
        kept = {name: value_schema[name] for name in ("$defs", "definitions", "$schema") if name in value_schema}
        value = {name: entry for name, entry in value_schema.items() if name not in kept}
        return {"type": "object", "properties": {VALUE: value}, "required": [VALUE], **kept}

    @property
    def reads(self) -> Any:
        """The type as which a reply is parsed."""
        if isinstance(self.shape, Mapping):
            return dict[str, Any]
        return create_model("Output", value=(self.shape, ...)) if _is_bare(self.value_schema) else self.shape

    def find_fault(self, value: Any) -> str:
        """Describe what violates the JSON schema, empty if nothing does. Python types were validated while parsing."""
        if not (isinstance(self.shape, Mapping) and self.enforced):
            return ""
        try:
            faults = sorted(_validator_of(self.schema).iter_errors(value), key=lambda fault: len(fault.path))
        except DialectError:
            raise
        except Exception as error:  # noqa: BLE001 - a schema that cannot be followed must not cost the answer
            raise DialectError(f"the schema cannot be followed: {type(error).__name__}") from None
        lines = [f"{'.'.join(map(str, fault.path)) or 'object'}: {fault.message}" for fault in faults[:5]]
        return f"Your JSON object does not fit: {'; '.join(lines)}." if lines else ""

    def unwrap(self, value: Any) -> Any:
        if not _is_bare(self.value_schema):
            return value
        if not isinstance(value, dict):
            return value.value
        if VALUE not in value:
            raise DialectError(f"Your JSON object has no field {VALUE!r}.")
        return value[VALUE]

    def dump(self, value: Any) -> Any:
        """The value as JSON has it."""
        return value if isinstance(self.shape, Mapping) else TypeAdapter(self.shape).dump_python(value, mode="json")


def find_recorded_output(settings: Mapping[str, Any]) -> OutputType | None:
    """The output that a run was asked for, by its recorded settings; its value is then a plain JSON one."""
    schema = settings.get(OUTPUT_SCHEMA)
    return OutputType(schema, enforced=False) if schema else None


def _is_bare(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema describes something other than a JSON object."""
    root = _follow(schema, schema)
    return root.get("type") != "object" and "properties" not in root


def _check_schema(schema: Mapping[str, Any]) -> None:
    fix = "correct it"
    try:
        if len(json.dumps(schema)) > MOST:
            raise UsageError(f"the JSON schema has more than {MOST:,} characters", fix="shorten it")
        if strange := next(
            (reference for reference in _references(schema) if not str(reference).startswith("#")), None
        ):
            raise UsageError(
                f"the JSON schema refers to {strange!r:.80}", fix="refer only to its own parts, as #/$defs/NAME"
            )
        kind = _kind_of(schema)
        _validator_of(schema)
        if fault := next(iter(kind(kind.META_SCHEMA).iter_errors(schema)), None):
            # an enumeration names what is allowed
            fault = next((cause for cause in fault.context if cause.validator == "enum"), fault)
            where = ".".join(map(str, fault.absolute_path))
            raise UsageError(f"the JSON schema is not valid: {fault.message:.200}", where=where, fix=fix)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a strange schema does to the validator, it is the schema's fault
        raise UsageError(f"the JSON schema cannot be used: {type(error).__name__}", fix=fix) from None


def _references(schema: Any) -> Iterator[Any]:
    if isinstance(schema, Mapping):
        for name, value in schema.items():
            if name in ("$ref", "$dynamicRef", "$recursiveRef"):
                yield value
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _without_patterns(schema: Any, *, named: bool = False) -> Any:
    """The schema without what runs regular expressions; the keys of `named` are names of the schema's own."""
    if isinstance(schema, Mapping):
        return {
            name: _without_patterns(value, named=not named and name in _NAMED)
            for name, value in schema.items()
            if named or name not in ("pattern", "patternProperties", "format")
        }
    return [_without_patterns(part) for part in schema] if isinstance(schema, list) else schema


def _kind_of(schema: Mapping[str, Any]) -> Any:
    """The class that validates values of the schema, by the draft that it names."""
    try:
        from jsonschema import validators  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("a JSON schema needs a package", fix="pip install 'hira[schema]'") from None
    return validators.validator_for(schema, default=validators.Draft202012Validator)


def _validator_of(schema: Mapping[str, Any]) -> Any:
    """Return a validator that takes a bounded number of steps and fetches nothing."""
    kind, steps = _kind_of(schema), count()
    from jsonschema import validators
    from referencing import Registry

    def bound_steps(check: Callable[..., Any]) -> Callable[..., Any]:
        def check_bounded(*given: Any) -> Any:
            if next(steps) >= MOST_STEPS:
                raise DialectError(f"the schema takes more than {MOST_STEPS:,} steps to validate")
            return check(*given)

        return check_bounded

    made = validators.extend(kind, {name: bound_steps(check) for name, check in kind.VALIDATORS.items()})
    return made(_without_patterns(schema), registry=Registry())


def _fields(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    for name, field in _mapping(schema.get("properties")).items():
        target = _follow(field, whole)
        text = " ".join(str(target.get("description", "")).split())
        parts = ", ".join(_mapping(_follow(target.get("items", target), whole).get("properties")))
        yield clean(f"{name}{f' ({parts})' if parts else ''}{f': {text}' if text else ''}")


def _follow(schema: Any, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a reference within the schema; any other mapping is returned unchanged."""
    target = _mapping(schema)
    name = str(target.get("$ref", ""))
    for place in ("$defs", "definitions"):
        if name.startswith(f"#/{place}/"):
            return _mapping(_mapping(whole.get(place)).get(name.removeprefix(f"#/{place}/")))
    return target


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def find_field_citations(value: Any, citations: list[Citation]) -> dict[str, list[Citation]]:
    """For each field of a JSON value, such as `orders.0.price`, the supported citations whose claim contains it. The
    claim may speak of something else than the field. A yes or no, also a boolean, is in a claim that begins with it."""
    held = [citation for citation in citations if citation.verdict.holds]
    texts = [(citation, f" {' '.join(words(citation.claim))} ") for citation in held]
    return {
        path: [citation for citation, text in texts if _contains(citation.claim, text, leaf)]
        for path, leaf in _leaves(value, "")
        if any(map(str.isalnum, leaf))
    }


def _contains(claim: str, text: str, leaf: str) -> bool:
    """Return whether a claim, whose content words are `text`, contains a value. Light words count as written: "IT"."""
    spelled = " ".join(words(leaf))
    if spelled and f" {spelled} " in text:
        return True
    polarity, rest = read_polarity(leaf)
    if polarity is not None and not rest:
        return read_polarity(claim)[0] is polarity
    return not spelled and bool(re.search(rf"(?<!\w){re.escape(leaf)}(?!\w)", claim))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        value = TypeAdapter(type(value)).dump_python(value, mode="json")
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in items:
            yield from _leaves(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, float) and math.isfinite(value):
        yield path or VALUE, f"{value:g}" if value == int(value) else repr(value)
    elif value is not None:
        yield path or VALUE, str(value) if not isinstance(value, bool) else "yes" if value else "no"
