"""Containers of arrays, taken apart and put together."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest

from tinyfuse.tree import flatten

Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any


class Layer:
    def __init__(self, weight: Any, bias: Any):
        self.weight = weight
        self.bias = bias


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "leaves"),
    [
        (7, [7]),
        (None, []),
        ((1, [2, {"a": 3}]), [1, 2, 3]),
        ({"b": 1, "a": 2}, [1, 2]),
        (Pair(1, Pair(2, 3)), [1, 2, 3]),
        (Point(1, (2, None)), [1, 2]),
        (OrderedDict(b=1, a=2), [1, 2]),
        (defaultdict(list, b=1), [1]),
        ((), []),
    ],
)
def test_a_value_is_what_its_leaves_and_its_structure_make(value: Any, leaves: list[Any]) -> None:
    found, structure = flatten(value)
    assert found == leaves
    rebuilt = structure.unflatten(found)
    assert rebuilt == value
    assert type(rebuilt) is type(value)


def test_objects_are_copied_with_their_attributes() -> None:
    layer = Layer(1.0, [2.0, 3.0])
    leaves, structure = flatten(layer)
    assert leaves == [1.0, 2.0, 3.0]
    copy = structure.unflatten([4.0, 5.0, 6.0])
    assert type(copy) is Layer
    assert (copy.weight, copy.bias) == (4.0, [5.0, 6.0])
    assert layer.weight == 1.0


@pytest.mark.parametrize(
    "leaf",
    [np.arange(3), np.float32(2), "text", Colour.RED, Layer, functools.partial(int), object(), np],
)
def test_what_is_no_container_of_values_is_a_leaf(leaf: Any) -> None:
    leaves, structure = flatten([leaf])
    assert len(leaves) == 1
    assert leaves[0] is leaf
    assert structure.unflatten(leaves)[0] is leaf


def test_structures_compare_and_hash_by_what_they_are() -> None:
    def structure(value: Any) -> Any:
        return flatten(value)[1]

    assert structure((1, {"a": 2})) == structure((3, {"a": 4}))
    assert hash(structure((1, {"a": 2}))) == hash(structure((3, {"a": 4})))
    assert structure((1, 2)) != structure([1, 2])
    assert structure({"a": 1, "b": 2}) != structure({"b": 1, "a": 2})
    assert structure(Layer(1, 2)) != structure(Point(1, 2))


def test_paths_lead_to_the_leaves() -> None:
    _, structure = flatten((Layer(1, [2, 3]), {"k": Point(4, 5)}))
    assert structure.paths() == [
        (0, "weight"),
        (0, "bias", 0),
        (0, "bias", 1),
        (1, "k", "x"),
        (1, "k", "y"),
    ]


def test_a_container_within_itself_is_refused() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    with pytest.raises(ValueError, match=r"^a list contains itself and cannot be taken apart$"):
        flatten(endless)


def test_one_object_in_two_places_is_two_leaves() -> None:
    shared = [1]
    assert flatten((shared, shared))[0] == [1, 1]


def test_the_number_of_leaves_is_checked() -> None:
    with pytest.raises(ValueError, match=r"^the tree has 2 leaves, got 1$"):
        flatten((1, 2))[1].unflatten([1])


@pytest.mark.parametrize("keys", [(1, True, 1.0, np.int64(1)), (0.0, -0.0), ((1,), (True,))])
def test_structures_with_equal_keys_of_other_types_differ(keys: tuple[Any, ...]) -> None:
    structures = [flatten({key: 1})[1] for key in keys]
    assert len(set(structures)) == len(keys)
    assert [structures.index(flatten({key: 1})[1]) for key in keys] == list(range(len(keys)))
    nested = [flatten([(structure.unflatten([1]),)])[1] for structure in structures]
    assert len(set(nested)) == len(keys)
