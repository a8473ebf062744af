"""jit: numpy functions that compile themselves for the arguments they are called with.

The stages in between have JAX's names: `f.trace(x).lower().compile()(x)`.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, overload
from weakref import WeakSet

from tinyfuse.compilation import (
    Compiled,
    Function,
    Lowered,
    Options,
    Traced,
    log_compilation,
)
from tinyfuse.errors import ArgumentError, TinyfuseError, is_internal, without_internal_frames
from tinyfuse.executable import Executable, Stale
from tinyfuse.graph.ir import Graph
from tinyfuse.parameters import Arguments, Parameters
from tinyfuse.runtime.cache import DiskCacheInfo, disk_cache_info
from tinyfuse.runtime.pool import checked
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.signature import (
    Call,
    Key,
    ShapeDtypeStruct,
    Signature,
    TracedArgumentError,
    argument_names,
    differences,
    quick_key,
    signature_of,
    take_apart,
    typed,
)
from tinyfuse.stage.ir import Stages
from tinyfuse.trace import NeedsValue
from tinyfuse.tree import TreeDef

__all__ = [
    "CacheInfo",
    "Compiled",
    "FunctionCacheInfo",
    "JittedFunction",
    "Lowered",
    "ShapeDtypeStruct",
    "Traced",
    "cache_info",
    "disable_jit",
    "jit",
    "make_graph",
]

log = logging.getLogger("tinyfuse.compile")

MAX_SIZE = 256  # programs in memory of one function


class FunctionCacheInfo(NamedTuple):
    """The programs in memory of one function: how many calls found theirs, how many had to compile."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class CacheInfo(NamedTuple):
    """hits, misses: of all jitted functions in this process that still exist; disk: of compiled C."""

    hits: int
    misses: int
    programs: int
    disk: DiskCacheInfo


class _Mode(threading.local):
    compiling = 0  # how many compilations this thread is in
    disabled = 0  # how many `disable_jit` blocks this thread is in


_mode = _Mode()
_jobs: dict[tuple[JittedFunction, Key], threading.Event] = {}  # being compiled, by some thread
_functions: WeakSet[JittedFunction] = WeakSet()
os.register_at_fork(after_in_child=_jobs.clear)  # the threads that were at it are gone


class _ByValue:
    """In place of a program: the key has to be extended by the values of these floats."""

    __slots__ = ("places", "used")

    def __init__(self, places: tuple[int, ...], used: int) -> None:
        self.places = places
        self.used = used

    def extended(self, key: Key, values: Sequence[Any]) -> Key:
        return (*key, *[typed(values[place]) for place in self.places])


class JittedFunction:
    """A function under `jit`: compiled when first called with arguments of new types."""

    def __init__(
        self, function: Callable[..., Any], static: Sequence[str], options: Options, maxsize: int
    ) -> None:
        functools.update_wrapper(self, function)
        name = function_name(function)
        self._parameters = Parameters(function, name, static)
        self._function = Function(function, name, self._parameters, options)
        self._fewest, self._most = self._parameters.fewest, self._parameters.most
        self._maxsize = maxsize
        self._copy_noticed = False
        self._reset()
        _functions.add(self)

    def _reset(self) -> None:
        self._programs: dict[Key, Executable | _ByValue] = {}
        self._by_value: dict[TreeDef, frozenset[int]] = {}  # leaves whose values tracing needs
        self._uses = self._misses = 0

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _mode.disabled:
            return self.__wrapped__(*args, **kwargs)
        if kwargs or not self._fewest <= len(args) <= self._most:
            args, kwargs = self._bind(args, kwargs)
        if not kwargs:
            key = quick_key(args)
            entry = self._programs.get(key)
            if type(entry) is _ByValue:
                entry.used = self._uses
                entry = self._programs.get(entry.extended(key, args))
            if type(entry) is Executable:
                self._uses = entry.used = self._uses + 1
                try:
                    return entry(args)
                except Stale:
                    pass
                except TinyfuseError as error:
                    raise without_internal_frames(error)
        try:
            return self._call(args, kwargs)
        except Exception as error:
            raise at_users_line(error)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundFunction(self, instance)

    def __repr__(self) -> str:
        return f"<tinyfuse.jit of {self.__wrapped__!r}>"

    # -- stages

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments of these types; a ShapeDtypeStruct can stand for an array.

        Raises what the function raises, and the errors of `tinyfuse.errors`.
        """
        try:
            return self._trace(self._take_apart(args, kwargs))
        except Exception as error:
            raise at_users_line(error)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace, and plan the loops: `f.trace(...).lower()`."""
        return self.trace(*args, **kwargs).lower()

    # -- the programs in memory

    def cache_info(self) -> FunctionCacheInfo:
        hits = self._uses - self._misses
        return FunctionCacheInfo(hits, self._misses, self._maxsize, len(self._executables()))

    def clear_cache(self) -> None:
        """Forget all programs in memory. Those that other threads are running go on."""
        self._reset()

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str:
        """Why a call with these arguments would compile: what differs from the nearest signature."""
        call = self._take_apart(args, kwargs)
        signature = signature_of(self._parameters, call, self._needed(call))
        if self._find(call) is not None:
            return f"{self._function.name}{signature} is in memory: such a call compiles nothing."
        return f"{self._function.name}{signature}: {self._explanation(signature)}"

    def _explanation(self, signature: Signature) -> str:
        known = [executable.signature for executable in self._executables()]
        if not known:
            return "there is no program in memory yet."
        nearest = min(reversed(known), key=lambda old: len(differences(signature, old)))
        lines = differences(signature, nearest) or ["arrays in another byte order or of another class"]
        return f"the nearest program is for {nearest}; what differs:" + "".join(
            f"\n  {line}" for line in lines
        )

    def _executables(self) -> list[Executable]:
        return [entry for entry in list(self._programs.values()) if isinstance(entry, Executable)]

    # -- calls

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return take_apart(self._parameters, *self._bind(args, kwargs))

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        try:
            return self._parameters.bind(args, kwargs)
        except TypeError as error:
            raise without_internal_frames(error)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            call = take_apart(self._parameters, args, kwargs)
        except TracedArgumentError:  # called by a function that is being traced: a part of that one
            return self.__wrapped__(*args, **kwargs)
        executable = self._find(call)
        if executable is None:
            executable = self._compile_once(call)
        else:
            self._uses = executable.used = self._uses + 1
        while True:
            try:
                return executable(call.values)
            except Stale as stale:
                log.info("recompile %s: %s", self._function.name, stale)
                executable = self._compile(call)

    def _needed(self, call: Call) -> frozenset[int]:
        return self._by_value.get(call.in_tree, frozenset())

    def _key(self, call: Call) -> Key:
        return _by_value(call, self._needed(call)).extended(call.key, call.values)

    def _find(self, call: Call) -> Executable | None:
        entry = self._programs.get(self._key(call))
        return entry if isinstance(entry, Executable) else None

    def _compile_once(self, call: Call) -> Executable:
        """Compile, or wait for the thread that is at it already."""
        job = (self, self._key(call))
        mine = threading.Event()
        running = _jobs.setdefault(job, mine)
        if running is not mine:
            if not _mode.compiling:  # two compilations that wait for one another would wait for ever
                running.wait()
            return self._find(call) or self._compile(call)
        try:
            return self._find(call) or self._compile(call)
        finally:
            _jobs.pop(job, None)
            mine.set()

    def _compile(self, call: Call) -> Executable:
        self._require_elements(call)
        _mode.compiling += 1
        try:
            traced = self._trace(call)
            if self._programs:
                log.info(
                    "recompile %s%s: %s",
                    traced.name,
                    traced.signature,
                    self._explanation(traced.signature).replace("\n ", ""),
                )
            compiled = traced.lower().compile()
        finally:
            _mode.compiling -= 1
        log_compilation(compiled)
        executable = compiled.executable(call, self._notice_copy)
        self._keep(call, executable)
        return executable

    def _require_elements(self, call: Call) -> None:
        for at, value in enumerate(call.leaves):
            if isinstance(value, ShapeDtypeStruct):
                name = argument_names(call.in_tree, self._parameters)[at]
                raise ArgumentError(
                    f"argument {name}: a ShapeDtypeStruct has no elements to compute with: it is for "
                    "trace and lower"
                )

    def _trace(self, call: Call) -> Traced:
        while True:
            needed = self._needed(call)
            try:
                return Traced(self._function, call, needed)
            except NeedsValue as needs:
                name = argument_names(call.in_tree, self._parameters)[needs.index]
                log.info(
                    "retrace %s: the value of the float %s is needed while tracing (%s); each value of "
                    "it is now compiled for itself",
                    self._function.name,
                    name,
                    needs.reason,
                )
                self._by_value[call.in_tree] = needed | {needs.index}

    def _keep(self, call: Call, executable: Executable) -> None:
        self._misses += 1
        self._uses = executable.used = self._uses + 1
        marker = _by_value(call, self._needed(call), self._uses)
        if marker.places:
            self._programs[call.key] = marker
        self._programs[marker.extended(call.key, call.values)] = executable
        for kind in (Executable, _ByValue):
            self._evict(kind)

    def _evict(self, kind: type) -> None:
        """Drop what was used longest ago; a thread that runs it keeps it alive."""
        entries = [item for item in list(self._programs.items()) if type(item[1]) is kind]
        if len(entries) > self._maxsize:
            entries.sort(key=lambda item: item[1].used)
            for key, _ in entries[: -self._maxsize]:
                self._programs.pop(key, None)

    def _notice_copy(self, name: str) -> None:
        if not self._copy_noticed:
            self._copy_noticed = True
            log.warning(
                "%s: %s is not in C order (or not aligned, or not in native byte order) and is copied "
                "at each call",
                self._function.name,
                name,
            )


def _by_value(call: Call, needed: frozenset[int], used: int = 0) -> _ByValue:
    floats = [at for at in sorted(needed) if type(call.leaves[at]) is float]
    return _ByValue(tuple([call.places[at] for at in floats]), used)


class BoundFunction:
    """A jitted method of an instance. Instances with attributes of equal types share a program."""

    __slots__ = ("__func__", "__self__")

    def __init__(self, function: JittedFunction, instance: Any) -> None:
        self.__func__ = function
        self.__self__ = instance

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        return self.__func__.trace(self.__self__, *args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str:
        return self.__func__.explain_miss(self.__self__, *args, **kwargs)


def function_name(function: Any) -> str:
    """Its name, of a partial that of the function in it; `lambda` for a nameless one."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "".join(letter for letter in name if letter.isalnum() or letter == "_") or "function"


def at_users_line(error: Exception) -> BaseException:
    """The error with frames of the user's only, unless it is a fault of ours."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if isinstance(error, TinyfuseError) or (place is not None and not is_internal(place.tb_frame)):
        return without_internal_frames(error)
    return error


@overload
def jit(
    function: Callable[..., Any],
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    maxsize: int = MAX_SIZE,
) -> JittedFunction: ...


@overload
def jit(
    *,
    static_argnames: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    maxsize: int = MAX_SIZE,
) -> Callable[[Callable[..., Any]], JittedFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    maxsize: int = MAX_SIZE,
) -> Any:
    """Compile a numpy function for the arguments that it is called with; also as a decorator.

    The first call with arguments of new types traces the function, compiles what it does, and runs
    that; later calls run it at once. Arrays and numpy scalars are arguments of the program by shape
    and dtype, and so are Python floats; tuples, lists, dicts and objects are taken apart; everything
    else (Python ints, bools, strings, ...) is known while tracing, and each value is compiled for
    itself. Arrays from outside the function are read at every call.

    Args:
        function: computes with numpy and Python, without side effects.
        static_argnames: parameters to be known by value while tracing; they must be hashable.
        fuse: whether intermediate arrays are left out where that pays. It never changes a bit.
        threads: how many may work on a call; None: as TINYFUSE_NUM_THREADS says, or all cores.
        schedule: makes the schedule of a program from its stages, in place of the planner.
        maxsize: how many programs are kept in memory; the one used longest ago goes first.

    Raises:
        TypeError: function cannot be called.
        ValueError: static_argnames names no parameter, or maxsize is not positive.
        ThreadCountError: threads is not a positive whole number.
    """
    if function is None:
        return functools.partial(
            jit,
            static_argnames=static_argnames,
            fuse=fuse,
            threads=threads,
            schedule=schedule,
            maxsize=maxsize,
        )
    if not callable(function):
        hint = ": put jit below it" if isinstance(function, classmethod | property) else ""
        raise TypeError(f"jit takes a function, not a {type(function).__name__}{hint}")
    if maxsize < 1:
        raise ValueError(f"maxsize must be positive, not {maxsize}")
    options = Options(bool(fuse), None if threads is None else checked(threads), schedule)
    static = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return JittedFunction(function, static, options, maxsize)


def make_graph(
    function: Callable[..., Any], *, static_argnames: str | Sequence[str] = ()
) -> Callable[..., Graph]:
    """A function that returns the graph of `function` for its arguments.

    ::

        print(tinyfuse.make_graph(softmax)(x))
    """
    jitted = function if isinstance(function, JittedFunction | BoundFunction) else None
    traced = jitted or jit(function, static_argnames=static_argnames)

    @functools.wraps(function)
    def graph_of(*args: Any, **kwargs: Any) -> Graph:
        return traced.trace(*args, **kwargs).graph

    return graph_of


@contextmanager
def disable_jit() -> Iterator[None]:
    """Inside this block jitted functions run as plain Python, in the thread that entered it."""
    _mode.disabled += 1
    try:
        yield
    finally:
        _mode.disabled -= 1


def cache_info() -> CacheInfo:
    """How the caches are used: programs in memory, and compiled C on the disk."""
    infos = [function.cache_info() for function in list(_functions)]
    return CacheInfo(
        sum(info.hits for info in infos),
        sum(info.misses for info in infos),
        sum(info.currsize for info in infos),
        disk_cache_info(),
    )
