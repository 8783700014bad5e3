"""`dataclass` as in the standard library, but its methods are written when the first object is made.

The standard decorator compiles six methods of each class at import, which takes 0.4 ms: most of what an import of hira
would cost. A run makes objects of few of its classes.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, replace
from dataclasses import dataclass as compiled_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
    ) -> Any:
        """The class with fields of its annotations, as the standard decorator makes it, with the same arguments."""
        if cls is None:
            return lambda one: dataclass(one, frozen=frozen, slots=slots, kw_only=kw_only, eq=eq)
        cls.__doc__ = cls.__doc__ or cls.__name__  # the standard decorator would write out the signature, which is dear
        own = {*vars(cls)} - ({"__hash__"} if vars(cls).get("__hash__", cls) is None else set())
        made = compiled_dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        methods = {"__init__": _init_later(made, frozen=frozen), "__repr__": _show}
        if eq:
            methods |= {"__eq__": _equals(made), "__hash__": _hashes(made) if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:  # else a copy would be filled by setting its attributes
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name in methods.keys() - own:
            setattr(made, name, methods[name])
        return made


def _init_later(cls: Any, *, frozen: bool) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _write_init(cls, frozen=frozen)
        cls.__init__(self, *args, **kwargs)

    return init


def _write_init(cls: Any, *, frozen: bool) -> Any:
    """The `__init__` that sets the fields of the class, compiled."""
    names: dict[str, Any] = {"__set": object.__setattr__, "__missing": MISSING}
    parameters: dict[bool, list[str]] = {False: ["self"], True: ["*"]}
    lines = []
    for one in fields(cls):
        value, default = one.name, ""
        if one.default_factory is not MISSING:
            names[f"__make_{one.name}"] = one.default_factory
            made = f"__make_{one.name}()"
            value, default = (f"{made} if {value} is __missing else {value}", "=__missing") if one.init else (made, "")
        elif one.default is not MISSING:
            names[f"__default_{one.name}"] = one.default
            value, default = (value, f"=__default_{value}") if one.init else (f"__default_{value}", "")
        elif not one.init:
            continue
        if one.init:
            parameters[bool(one.kw_only)].append(one.name + default)
        lines.append(f"__set(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    every = parameters[False] + (parameters[True] if len(parameters[True]) > 1 else [])
    exec(f"def __init__({', '.join(every)}):\n  " + "\n  ".join(lines or ["pass"]), names)  # noqa: S102 - of our own names
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return names["__init__"]


def _getter(chosen: "list[Field[Any]]") -> Callable[[Any], Any]:
    return attrgetter(*(one.name for one in chosen)) if chosen else lambda _: ()


def _equals(cls: Any) -> Callable[[Any, Any], Any]:
    values = _getter([one for one in fields(cls) if one.compare])
    return lambda self, other: values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented


def _hashes(cls: Any) -> Callable[[Any], int]:
    values = _getter([one for one in fields(cls) if (one.compare if one.hash is None else one.hash)])
    return lambda self: hash(values(self))


@recursive_repr()
def _show(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse(self: Any, name: str, _value: Any = None) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
