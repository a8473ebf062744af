"""Records are the standard library's dataclasses in all that tinyfuse uses of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from tinyfuse import records

DEFINITIONS = """
class Base:
    __slots__ = ()
    def twice(self):
        return self, self

@dataclass(frozen=True, slots=True)
class Point(Base):
    "A point."
    x: int
    y: float = 2.0
    name: str = field(default="p", compare=False)
    parts: list = field(default_factory=list, repr=False)
    def shifted(self, by):
        return replace(self, x=self.x + by)

@dataclass(slots=True)
class Changing:
    total: int = 0
    seen: dict = field(default_factory=dict)

@dataclass(frozen=True, eq=False, slots=True)
class Identity:
    value: object
    @property
    def double(self):
        return self.value * 2

@dataclass
class Open:
    value: int
    more: list = field(default_factory=list)

@dataclass(frozen=True)
class One:
    value: float

@dataclass(frozen=True, slots=True)
class Own:
    value: int
    def __repr__(self):
        return "own"
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 5

@dataclass(frozen=True, slots=True)
class Empty:
    pass
"""


def defined(module: ModuleType) -> ModuleType:
    made = ModuleType(f"records_by_{module.__name__.rpartition('.')[2]}")
    vars(made).update(dataclass=module.dataclass, field=module.field, replace=module.replace)
    sys.modules[made.__name__] = made
    exec(DEFINITIONS, vars(made))
    return made


OURS, THEIRS = defined(records), defined(dataclasses)


def both(expression: str) -> tuple[Any, Any]:
    return tuple([_outcome(expression, vars(module)) for module in (OURS, THEIRS)])


def _outcome(expression: str, names: dict[str, Any]) -> Any:
    try:
        return eval(expression, {**names, "copy": copy, "pickle": pickle})
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "expression",
    [
        "repr(Point(1)), Point.__doc__, Point.__qualname__, Point.__match_args__, Point.__slots__",
        "repr(Point(1, 3, name='q', parts=[1])), repr(Point(y=1, x=2).twice())",
        "Point(1).parts is Point(1).parts, Point(1).parts",
        "Point(1) == Point(1), Point(1) == Point(1, name='other'), Point(1) == Point(2)",
        "Point(1) != Point(1, parts=[3]), Point(1) == (1, 2.0, [])",
        "hash(Point(1))",
        "hash(One(2.5)) == hash(One(2.5)), One(float('nan')) == One(float('nan'))",
        "Point(1).shifted(3), Point(1).shifted(3) == Point(4)",
        "Point()",
        "Point(1, 2, 3, 4, 5)",
        "Point(1, x=2)",
        "Point(1, z=2)",
        "setattr(Point(1), 'x', 3)",
        "delattr(Point(1), 'x')",
        "setattr(One(1), 'value', 3)",
        "[c := Changing(), setattr(c, 'total', 5), c.seen.update(a=1), repr(c)]",
        "Changing(1) == Changing(1), Changing.__hash__, Changing.__slots__",
        "hash(Changing())",
        "setattr(Changing(), 'other', 1)",
        "Identity(1) == Identity(1), [i := Identity(2), i == i, hash(i) == hash(i)][1:], i.double",
        "repr(Identity([1])), Identity.__match_args__",
        "[o := Open(1), o.more.append(2), setattr(o, 'other', 3), repr(o), vars(o)][2:]",
        "Open(1) == Open(1), Open.value if hasattr(Open, 'value') else None, hasattr(Open, 'more')",
        "repr(Own(1)), Own(1) == Own(2), hash(Own(1))",
        "Empty() == Empty(), repr(Empty()), hash(Empty()) == hash(Empty())",
        "copy.copy(Point(1)), copy.deepcopy(Point(1, parts=[[1]])), copy.copy(Changing(4))",
        "repr(pickle.loads(pickle.dumps(Point(1, 2, 'n', [3]))))",
        "pickle.loads(pickle.dumps(One(2)))",
        "hasattr(Point(1), '__dict__'), hasattr(Open(1), '__dict__')",
        "replace(Changing(1, {2: 3}), total=4)",
        "replace(Point(1), z=4)",
        "issubclass(Point, Base), Point(1).__class__ is Point",
    ],
)
def test_records_are_dataclasses(expression: str):
    ours, theirs = both(expression)
    if isinstance(theirs, tuple) and theirs and isinstance(theirs[0], type):
        assert ours[0] is theirs[0]
        assert ours[1].replace("OURS", "") == theirs[1]
    else:
        assert repr(ours) == repr(theirs)


def test_a_class_is_matched_by_position():
    match OURS.Point(1, 5.0):
        case OURS.Point(1, y):
            assert y == 5.0
        case _:
            pytest.fail("no match")


def test_the_real_init_takes_the_place_of_the_first_when_it_pays():
    cls = defined(records).Point
    first = cls.__init__
    made = [cls(1, name="n") for _ in range(records._WRITTEN_FROM - 1)]
    assert cls.__init__ is first
    made.append(cls(1, name="n"))
    assert cls.__init__ is not first
    assert cls.__init__.__qualname__ == "Point.__init__"
    made.append(cls(1, name="n"))
    assert all(each == made[0] and each.name == "n" for each in made)
    assert len({id(each.parts) for each in made}) == len(made)


def test_the_standard_library_has_no_part_in_it():
    code = "import sys, tinyfuse.records\nprint('dataclasses' in sys.modules)"
    bare = [sys.executable, "-S", "-c", code.replace("tinyfuse.records", "records")]
    folder = str(__import__("pathlib").Path(records.__file__).parent)
    code = f"import sys\nsys.path.insert(0, {folder!r})\n" + bare[-1]
    outcome = subprocess.run([*bare[:-1], code], capture_output=True, text=True)
    assert outcome.stdout == "False\n", outcome.stderr
