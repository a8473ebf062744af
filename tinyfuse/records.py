"""Dataclasses that cost little to define.

What compiles consists of some eighty of them. Those of the standard library write and compile the
code of every method when a class is defined: half of the time that it takes to import tinyfuse's
compiler. Here only `__init__` is written, when a class has been used so often that it pays.

Of the standard library's they have what tinyfuse uses, with the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace

__all__ = ["dataclass", "field", "replace"]

_REQUIRED: Any = object()  # in place of a default
_WRITTEN_FROM = 32  # uses of a class on: writing its `__init__` takes as long as so many without it


class _Field:
    """What a class says of an attribute."""

    __slots__ = ("compare", "default", "factory", "repr")

    def __init__(self, default: Any, factory: Any, compare: bool, shown: bool) -> None:
        self.default = default
        self.factory = factory
        self.compare = compare
        self.repr = shown

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED and self.factory is None

    def made(self) -> Any:
        """The value where none is given."""
        return self.default if self.factory is None else self.factory()


def _field(
    *,
    default: Any = _REQUIRED,
    default_factory: Any = None,
    compare: bool = True,
    repr: bool = True,  # noqa: A002
) -> Any:
    return _Field(default, default_factory, compare, repr)


def _dataclass(
    cls: Any = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    if cls is None:
        return lambda cls: _defined(cls, frozen, eq, slots)
    return _defined(cls, frozen, eq, slots)


def _replace(record: Any, **changes: Any) -> Any:
    cls = type(record)
    values = {name: getattr(record, name) for name in cls.__record_fields__}
    return cls(**{**values, **changes})


if not TYPE_CHECKING:
    dataclass, field, replace = _dataclass, _field, _replace


def _defined(cls: type, frozen: bool, eq: bool, slots: bool) -> type:
    fields = {name: _of_class(cls, name) for name in cls.__annotations__}
    methods = {
        "__record_fields__": fields,
        "__match_args__": tuple(fields),
        "__init__": _first_init(fields),
        "__repr__": _repr,
    }
    if eq:
        methods.update(_comparing(fields, frozen))
    if frozen:
        methods.update(__setattr__=_refuse_setting, __delattr__=_refuse_deleting)
    if frozen and slots:
        methods.update(__getstate__=_state, __setstate__=_set_state)
    own = {name: value for name, value in methods.items() if _may_define(cls, name)}
    if slots:
        return _with_slots(cls, tuple(fields), own)
    for name, value in own.items():
        setattr(cls, name, value)
    for name, each in fields.items():
        if isinstance(cls.__dict__.get(name), _Field):
            delattr(cls, name) if each.default is _REQUIRED else setattr(cls, name, each.default)
    return cls


def _of_class(cls: type, name: str) -> _Field:
    value = cls.__dict__.get(name, _REQUIRED)
    return value if isinstance(value, _Field) else _Field(value, None, True, True)


def _may_define(cls: type, name: str) -> bool:
    """Unless the class itself does."""
    return name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None)


def _with_slots(cls: type, names: tuple[str, ...], methods: Mapping[str, Any]) -> type:
    """The class again: slots have to be known when a class is made."""
    left_out = (*names, "__dict__", "__weakref__")
    kept = {name: value for name, value in vars(cls).items() if name not in left_out}
    made = type(cls)(cls.__name__, cls.__bases__, {**kept, **methods, "__slots__": names})
    made.__qualname__ = cls.__qualname__
    return made


# -- methods


def _first_init(fields: Mapping[str, _Field]) -> Callable[..., None]:
    """Does what the real one does; writes that, in its own place, when it is called often."""
    left_out = {name: each for name, each in fields.items() if not each.required}
    set_value = object.__setattr__
    uses = 0

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        nonlocal uses
        uses += 1
        if len(args) == len(fields) and not kwargs and uses < _WRITTEN_FROM:
            for name, value in zip(fields, args, strict=True):
                set_value(self, name, value)
            return
        given = dict(zip(fields, args, strict=False), **kwargs)
        values = {**left_out, **given}
        fits = len(given) == len(args) + len(kwargs) and values.keys() == fields.keys()
        if not fits or uses >= _WRITTEN_FROM:
            cls = _defining(type(self))
            cls.__init__ = _written_init(cls)
            cls.__init__(self, *args, **kwargs)
            return
        for name in fields:
            value = values[name]
            set_value(self, name, value.made() if type(value) is _Field else value)

    return __init__


def _defining(cls: type) -> Any:
    """The record that a class is, or is derived from."""
    return next(base for base in cls.__mro__ if "__record_fields__" in vars(base))


def _written_init(cls: Any) -> Callable[..., None]:
    fields: dict[str, _Field] = cls.__record_fields__
    frozen = cls.__setattr__ is _refuse_setting
    variables: dict[str, Any] = {"REQUIRED": _REQUIRED, "set_attribute": object.__setattr__}
    parameters, lines = [], []
    for name, each in fields.items():
        variables[f"{name}_default"] = each.default
        variables[f"{name}_factory"] = each.factory
        parameters.append(name if each.required else f"{name}={name}_default")
        if each.factory is not None:
            lines.append(f"if {name} is REQUIRED: {name} = {name}_factory()")
        slot = vars(cls).get(name)
        if frozen and hasattr(slot, "__set__"):
            variables[f"set_{name}"] = slot.__set__
            lines.append(f"set_{name}(self, {name})")
        else:
            lines.append(
                f"set_attribute(self, {name!r}, {name})" if frozen else f"self.{name} = {name}"
            )
    text = f"def __init__({', '.join(['self', *parameters])}):\n "
    exec(text + "\n ".join(lines or ["pass"]), variables)
    init: Any = variables["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _repr(self: Any) -> str:
    cls = type(self)
    shown = [name for name, each in cls.__record_fields__.items() if each.repr]
    values = ", ".join([f"{name}={getattr(self, name)!r}" for name in shown])
    return f"{cls.__qualname__}({values})"


def _comparing(fields: Mapping[str, _Field], frozen: bool) -> dict[str, Any]:
    names = [name for name, each in fields.items() if each.compare]
    values = _tuple_of(names)

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or values(self) == values(other)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _tuple_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda self: ()
    values = attrgetter(*names)  # with one name it gives no tuple
    return values if len(names) > 1 else lambda self: (values(self),)


def _refuse_setting(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError  # only here: it takes milliseconds

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deleting(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in type(self).__record_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(type(self).__record_fields__, state, strict=True):
        object.__setattr__(self, name, value)
