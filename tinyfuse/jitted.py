"""Jitted functions: the programs of a function that are in memory, and calls that find theirs.

What compiles is imported when something is compiled for the first time: importing tinyfuse does not
wait for it.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from tinyfuse.bound import BoundFunction
from tinyfuse.by_value import ByValue
from tinyfuse.config import compile_log as log
from tinyfuse.dispatch import Dispatcher
from tinyfuse.errors import ArgumentError, SideEffectError, TinyfuseError
from tinyfuse.parameters import Arguments, Form, Function, Options, Parameters
from tinyfuse.pickling import plain, reduced
from tinyfuse.signature import (
    WEAK,
    Call,
    Key,
    ShapeDtypeStruct,
    Signature,
    StaleError,
    TracedArgumentError,
    argument_names,
    quick_key,
    refusal,
    signature_of,
    take_apart,
)
from tinyfuse.signature_differences import differences
from tinyfuse.tracebacks import show_users_frames, without_internal_frames
from tinyfuse.tree import LEAF, Leaf, TreeDef, flatten

if TYPE_CHECKING:
    from tinyfuse.compilation import Lowered, Traced
    from tinyfuse.executable import Executable
    from tinyfuse.trace import Trace

MOST_RECOMPILATIONS = 8  # of one call


class FunctionCacheInfo(NamedTuple):
    """hits, misses: calls that found their program in memory, and that had to compile it."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


class Mode(threading.local):
    """What a thread is at."""

    disabled = 0  # how many `disable_jit` blocks it is in
    compiling = 0  # how many compilations


mode = Mode()
functions: WeakSet[JittedFunction] = WeakSet()

_jobs: dict[tuple[JittedFunction, Key], threading.Event] = {}  # being compiled, by some thread
os.register_at_fork(after_in_child=_jobs.clear)  # the threads that were at it are gone


class JittedFunction(Dispatcher, Leaf):
    """A function under `jit`: compiled when first called with arguments of new types."""

    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __init__(
        self,
        function: Callable[..., Any],
        static: Sequence[str],
        options: Options,
        maxsize: int,
        dynamic: Sequence[str] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        name = function_name(function)
        self._parameters = Parameters(function, name, static, dynamic)
        self._fewest, self._most = self._parameters.fewest, self._parameters.most
        self._options = options
        self._function = Function(function, name, self._parameters, options)
        self._maxsize = maxsize
        self._copy_noticed = False
        self._stand_ins: dict[type, Any] = {}
        self.clear_cache()
        functions.add(self)

    def _slowly(self, /, *args: Any, **kwargs: Any) -> Any:
        """A call that none of the direct calls fits."""
        if mode.disabled:
            return self.__wrapped__(*args, **kwargs)
        form = len(args), tuple(kwargs)
        if kwargs or not self._fewest <= len(args) <= self._most:
            args, kwargs = self._bind(args, kwargs)
        if not kwargs:
            entry = self._quickly_found(args)
            if entry is not None:
                self._uses = entry.used = self._uses + 1
                try:
                    result = entry(args)
                    self._call_directly(entry, form, args)
                    return result
                except StaleError:
                    self._uses -= 1
                except TracedArgumentError:
                    return self._plainly(args, kwargs)
                except TinyfuseError as error:
                    without_internal_frames(error)
                    raise
        try:
            return self._call(form, args, kwargs)
        except Exception as error:
            show_users_frames(error)
            raise

    def _quickly_found(self, args: tuple[Any, ...]) -> Executable | None:
        """The program for arguments that are all leaves."""
        key = quick_key(args)
        entry = self._programs.get(key)
        if type(entry) is not ByValue:
            return entry  # type: ignore[return-value]
        entry.used = self._uses
        return self._programs.get(entry.extended(key, args))  # type: ignore[return-value]

    def _call_directly(self, executable: Executable, form: Form, given: Sequence[Any]) -> None:
        """Let later calls like this one find their program at once, if they are simple enough.

        given: all arguments, in the order of the plan for calls of this form.
        """
        calls = executable.direct_calls
        if form not in calls:
            from tinyfuse.direct_call import direct_call

            calls[form] = direct_call(executable, form, self._parameters.plan(form), given)
        call = calls[form]
        if call is not None and not mode.compiling:
            self._remember(call)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else BoundFunction(self, self._stand_in(instance))

    def _stand_in(self, instance: Any) -> Any:
        """The same instance for all those of a class that have no attributes to tell them apart."""
        cls = type(instance)
        if getattr(instance, "__dict__", True) or cls.__new__ is not object.__new__:
            return instance
        return (
            self._stand_ins.setdefault(cls, instance) if flatten(instance)[1] == LEAF else instance
        )

    def __repr__(self) -> str:
        return f"<jit of {self.__wrapped__!r}>"

    def __copy__(self) -> JittedFunction:
        return self  # as of functions

    def __deepcopy__(self, memo: Any) -> JittedFunction:
        return self

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        parameters = self._parameters
        dynamic = tuple(sorted(parameters.dynamic))
        options = (parameters.static, self._options, self._maxsize, dynamic)
        return reduced(self, protocol, options)

    @functools.cached_property
    def _plain(self) -> FunctionType | None:
        return plain(self)

    @property
    def rewritten_source(self) -> str | None:
        """The text of the function as it is traced; None where that is as it was written.

        Loops hand out what they carry from turn to turn, so that a long one becomes one loop of the
        program.
        """
        import inspect  # only here: it takes as long as the rest of tinyfuse

        from tinyfuse.trace.rewriting import rewritten_source

        code = getattr(inspect.unwrap(self.__wrapped__), "__code__", None)
        return None if code is None else rewritten_source(code)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for arguments of these types; ShapeDtypeStructs may stand for arrays.

        Raises what the function raises, and the errors of `tinyfuse.errors`.
        """
        try:
            return self._trace(self._take_apart(args, kwargs))
        except Exception as error:
            show_users_frames(error)
            raise

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Trace, and plan the loops: `f.trace(...).lower()`."""
        return self.trace(*args, **kwargs).lower()

    def cache_info(self) -> FunctionCacheInfo:
        """How the programs in memory are used."""
        hits = self._uses - self._misses
        return FunctionCacheInfo(hits, self._misses, self._maxsize, len(self._executables()))

    def clear_cache(self) -> None:
        """Forget all programs in memory. Calls that are running one go on."""
        self._programs: dict[Key, Executable | ByValue] = {}
        self._needed: dict[TreeDef, frozenset[int]] = {}  # leaves whose value tracing asked for
        self._layouts: dict[TreeDef, frozenset[int]] = {}  # those whose order in memory it used
        self._writing: set[TreeDef] = set()  # forms of calls that write arrays of the caller's
        self._uses = self._misses = 0
        self._forget_all()

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str:
        """Why a call would compile: what differs from the signature of the nearest program."""
        call = self._take_apart(args, kwargs)
        signature = signature_of(self._parameters, call, self._needs(call))
        if self._find(call) is not None:
            return f"{self._function.name}{signature} is in memory: such a call compiles nothing."
        return f"{self._function.name}{signature}: {self._explanation(signature)}"

    def _explanation(self, signature: Signature, separator: str = "\n  ") -> str:
        known = [executable.signature for executable in self._executables()]
        if not known:
            return "there is no program in memory yet."
        nearest = min(reversed(known), key=lambda old: len(differences(signature, old)))
        lines = differences(signature, nearest) or ["the byte order or the class of an array"]
        return separator.join((f"the nearest program is for {nearest}; what differs:", *lines))

    def _executables(self) -> list[Executable]:
        entries = list(self._programs.values())
        return [entry for entry in entries if not isinstance(entry, ByValue)]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        try:
            return self._parameters.bind(args, kwargs)
        except TypeError as error:
            without_internal_frames(error)
            raise

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return take_apart(self._parameters, *self._bind(args, kwargs))

    def _call(self, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call whose arguments, bound, have to be taken apart, or that has no program yet."""
        try:
            call = take_apart(self._parameters, args, kwargs)
        except TracedArgumentError:  # the call is a part of the function that is being traced
            return self._plainly(args, kwargs)
        entry = self._programs.get(call.key)
        if type(entry) is ByValue:
            entry = self._programs.get(entry.extended(call.key, call.values))
        if entry is None:
            executable = self._compile_once(call)
        else:
            executable = entry  # type: ignore[assignment]
            self._uses = executable.used = self._uses + 1
            self._call_directly(executable, form, call.given)
        for _ in range(MOST_RECOMPILATIONS):
            try:
                return executable(call.values)
            except TracedArgumentError:
                return self._plainly(args, kwargs)
            except StaleError as stale:
                self._uses -= 1
                change = stale
                log.info("recompile %s: %s", self._function.name, stale)
                executable = self._compile(call, told=True)
        raise SideEffectError(
            f"{self._function.name}: {change}, again and again: what it reads from outside changes "
            "whenever it is traced; pass that as an argument"
        )

    def _plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call as a part of the function that is being traced."""
        from tinyfuse.trace import as_traced

        return as_traced(self.__wrapped__)(*args, **kwargs)

    def _needs(self, call: Call) -> frozenset[int]:
        return self._needed.get(call.in_tree, frozenset())

    def _by_value(self, call: Call) -> ByValue:
        places, values = call.places, call.values
        needed = [places[at] for at in sorted(self._needs(call))]
        floats = [at for at in needed if type(values[at]) in WEAK]
        asked = [places[at] for at in sorted(self._layouts.get(call.in_tree, ()))]
        layouts = [at for at in asked if hasattr(values[at], "strides")]
        return ByValue(tuple(floats), tuple(layouts), call.in_tree in self._writing)

    def _key(self, call: Call) -> Key:
        return self._by_value(call).extended(call.key, call.values)

    def _find(self, call: Call) -> Executable | None:
        entry = self._programs.get(self._key(call))
        return None if isinstance(entry, ByValue) else entry

    def _compile_once(self, call: Call) -> Executable:
        """Compile, or wait for the thread that is at it already."""
        job = (self, self._key(call))
        done = threading.Event()
        running = _jobs.setdefault(job, done)
        if running is not done:
            if not mode.compiling:  # else two compilations could wait for one another
                running.wait()
            return self._find(call) or self._compile(call)
        try:
            return self._find(call) or self._compile(call)
        finally:
            _jobs.pop(job, None)
            done.set()

    def _compile(self, call: Call, told: bool = False) -> Executable:
        """told: whether the log has the reason already."""
        from tinyfuse.compiled import log_compilation

        self._require_elements(call)
        mode.compiling += 1
        try:
            traced = self._trace(call)
            if not told:
                self._log_miss(traced)
            compiled = traced.lower().compile()
        finally:
            mode.compiling -= 1
        log_compilation(compiled)
        executable = compiled.executable(call, self._notice_copy)
        self._keep(call, executable)
        return executable

    def _require_elements(self, call: Call) -> None:
        for at, value in enumerate(call.leaves):
            if isinstance(value, ShapeDtypeStruct):
                name = argument_names(call.in_tree, self._parameters)[at]
                message = (
                    "a ShapeDtypeStruct has no elements to compute with; it is for trace and lower"
                )
                raise refusal(ArgumentError(message), self._parameters, name)

    def _trace(self, call: Call) -> Traced:
        from tinyfuse.compilation import Traced
        from tinyfuse.trace import NeedsValue

        while True:
            needs = self._needs(call)
            try:
                traced = Traced(self._function, call, needs)
                self._note_memory(call, traced.trace)
                return traced
            except NeedsValue as needed:
                self._needed[call.in_tree] = needs | {needed.index}
                name = argument_names(call.in_tree, self._parameters)[needed.index]
                log.info(
                    "retrace %s: tracing needs the value of the float %s (%s): each is compiled "
                    "for itself",
                    *(self._function.name, name, needed.reason),
                )

    def _note_memory(self, call: Call, trace: Trace) -> None:
        """Remember what else programs for such calls depend on."""
        if trace.written:
            self._writing.add(call.in_tree)
        layouts = trace.layout_leaves
        if layouts:
            self._layouts[call.in_tree] = self._layouts.get(call.in_tree, frozenset()) | layouts

    def _log_miss(self, traced: Traced) -> None:
        if self._programs and log.isEnabledFor(logging.INFO):
            reason = self._explanation(traced.signature, " ")
            log.info("recompile %s%s: %s", traced.name, traced.signature, reason)

    def _keep(self, call: Call, executable: Executable) -> None:
        self._misses += 1
        by_value = self._by_value(call)
        self._uses = executable.used = by_value.used = self._uses + 1
        if by_value:
            self._programs[call.key] = by_value
        key = by_value.extended(call.key, call.values)
        self._drop(key)  # what another one has taken the place of
        self._programs[key] = executable
        for kind in (ByValue, type(executable)):
            self._evict(kind)

    def _evict(self, kind: type) -> None:
        """Forget what was used longest ago. A call that is running it goes on."""
        entries = [item for item in list(self._programs.items()) if type(item[1]) is kind]
        if len(entries) > self._maxsize:
            entries.sort(key=lambda item: item[1].used)
            for key, _ in entries[: -self._maxsize]:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        entry = self._programs.pop(key, None)
        for call in list(getattr(entry, "direct_calls", {}).values()):
            if call is not None:
                self._forget(call)

    def _notice_copy(self, name: str, why: str) -> None:
        if not self._copy_noticed:
            self._copy_noticed = True
            log.warning("%s: %s %s, so that each call copies it", self._function.name, name, why)


def function_name(function: Any) -> str:
    """Its name, for a partial that of the function in it, `lambda` for a nameless one."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return "".join(letter for letter in name if letter.isalnum() or letter == "_") or "function"
