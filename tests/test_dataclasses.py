"""hira's `dataclass` makes classes that behave as those of the standard library do."""

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hira.core.dataclasses import dataclass
from hira.core.memory import Fact


def pair(decorate: Callable[..., Any], **options: Any) -> Any:
    class Pair:
        left: int
        right: str = "r"
        others: list[int] = dataclasses.field(default_factory=list, compare=False)
        marked: bool = dataclasses.field(default=False, repr=False, kw_only=True)
        total: int = dataclasses.field(default=0, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.left + len(self.others))

    return decorate(Pair, **options)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("slots", [True, False])
def test_objects_are_made_compared_shown_and_changed_as_by_the_standard_decorator(frozen: bool, slots: bool) -> None:
    ours, theirs = (pair(one, frozen=frozen, slots=slots) for one in (dataclass, dataclasses.dataclass))
    for make in (ours, theirs):
        one = make(1, others=[2], marked=True)
        assert dataclasses.asdict(one) == {"left": 1, "right": "r", "others": [2], "marked": True, "total": 2}
        assert dataclasses.replace(one, right="x").right == "x"
        assert one == make(1, "r", [2], marked=True)
        assert one != make(2)
        assert one != 1
        assert repr(one).endswith("Pair(left=1, right='r', others=[2], total=2)")
        assert make(1).others is not make(1).others
        assert hasattr(one, "__dict__") is not slots
        with pytest.raises(TypeError):
            make()
        with pytest.raises(TypeError):
            make(1, "r", [], True)
        if frozen:
            assert hash(one) == hash(make(1, others=[2], marked=True))
            with pytest.raises(dataclasses.FrozenInstanceError):
                one.left = 2
        else:
            with pytest.raises(TypeError, match="unhashable"):
                hash(one)
            one.left = 5
            assert one.left == 5


def test_a_frozen_object_can_be_pickled() -> None:
    fact = Fact("The tower is 12 m high.", ("s1",), "t1")
    assert pickle.loads(pickle.dumps(fact)) == fact  # noqa: S301 - of our own bytes
