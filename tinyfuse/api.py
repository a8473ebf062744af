"""jit: numpy functions that compile themselves for the arguments they are called with.

The stages in between have JAX's names: `f.trace(x).lower().compile()(x)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, overload

from tinyfuse.bound import BoundFunction
from tinyfuse.dispatch import paused
from tinyfuse.graph.rewrite_names import DEFAULT_REWRITES, REWRITES
from tinyfuse.jitted import JittedFunction, functions, mode
from tinyfuse.parameters import Options
from tinyfuse.signature import ShapeDtypeStruct

if TYPE_CHECKING:
    from tinyfuse.graph.ir import Graph
    from tinyfuse.runtime.cache import DiskCacheInfo
    from tinyfuse.schedule.schedule import Schedule
    from tinyfuse.stage.ir import Stages

__all__ = [
    "BoundFunction",
    "CacheInfo",
    "JittedFunction",
    "ShapeDtypeStruct",
    "cache_info",
    "disable_jit",
    "jit",
    "make_graph",
]

Target = Literal["c", "cuda", "cuda-emulated"]
TARGETS = get_args(Target)
MAX_SIZE = 256  # programs in memory of one function


class CacheInfo(NamedTuple):
    """hits, misses: of the jitted functions that this process has now; disk: of compiled C."""

    hits: int
    misses: int
    programs: int
    disk: DiskCacheInfo


@overload
def jit(
    function: Callable[..., Any],
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    check: Literal["nan"] | None = None,
    rewrites: Sequence[str] | None = None,
    target: Target = "c",
    maxsize: int = MAX_SIZE,
) -> JittedFunction: ...


@overload
def jit(
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    check: Literal["nan"] | None = None,
    rewrites: Sequence[str] | None = None,
    target: Target = "c",
    maxsize: int = MAX_SIZE,
) -> Callable[[Callable[..., Any]], JittedFunction]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: str | Sequence[str] = (),
    fuse: bool = True,
    threads: int | None = None,
    schedule: Callable[[Stages], Schedule] | None = None,
    check: Literal["nan"] | None = None,
    rewrites: Sequence[str] | None = None,
    target: Target = "c",
    maxsize: int = MAX_SIZE,
) -> Any:
    """Compile a numpy function for the arguments that it is called with; also as a decorator.

    The first call with arguments of new types traces the function, compiles what it does, and runs
    that; later calls run it at once. Of arrays, numpy scalars and Python floats a program depends
    on shape and dtype only; tuples, lists, dicts and objects are taken apart; everything else
    (Python ints, bools, strings ...) is known while tracing, and each value is compiled for itself.
    Arrays from outside the function are read at every call.

    Args:
        function: computes with numpy and Python, without side effects.
        static_argnames: parameters to be known by value while tracing; they must be hashable.
        dynamic: parameters whose integers are not known while tracing, so that one program serves
            them all: how many turns a loop has, where a slice ends, what indexes an array. Not
            what shapes of new arrays are made of.
        fuse: whether intermediate arrays are left out where that pays. It never changes a bit.
            Where they are not, each operation is still computed in tiles where that is faster.
        threads: how many may work on a call; None: as TINYFUSE_NUM_THREADS says, or all cores.
        schedule: makes the schedule of a program from its stages, in place of the planner.
        check: "nan" first computes each call operation by operation, slowly and unfused, and raises
            NonFiniteError where one makes a NaN or an infinity that its operands have not.
        rewrites: names of those to apply, each of which changes bits; None: "online_softmax", by
            which attention needs no array of all weights (`tinyfuse.graph.online_softmax`).
            "fold_batch_norm" moves the scales of channels into the weights of products.
            "tf32_products", "bfloat16_products" and "float16_products" round what products of
            float32 multiply to that format, which a GPU's tensor cores then do; these alone may
            add in another order (`tinyfuse.graph.tensor_products`).
        target: "c"; "cuda": as CUDA on a GPU, to which each call copies numpy's arrays and from
            which it copies the results, unless one of the arguments is there already: an array of
            CuPy, PyTorch, JAX or Numba, or one of `device_put`. Then the results stay there, as
            `DeviceArray`s that those libraries take as they are, and the call waits for nothing
            (`cuda_stream`); arrays that the function writes are written there. "cuda-emulated": as
            CUDA, of which an emulator runs every thread on the CPU and checks what it does. The
            bits are the same.
        maxsize: how many programs are kept in memory; the one used longest ago goes first.

    Raises:
        TypeError: function or schedule cannot be called.
        ValueError: static_argnames or dynamic names no parameter, or both name one, maxsize is not
            positive, check is no check, or there is no such rewrite or target.
        ThreadCountError: threads is not a positive whole number.
    """
    options = _options(fuse, threads, schedule, check, rewrites, target)
    static, changing = _names(static_argnames), _names(dynamic)

    def jitted(function: Callable[..., Any]) -> JittedFunction:
        _require(function, maxsize)
        return JittedFunction(function, static, options, maxsize, changing)

    return jitted if function is None else jitted(function)


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _require(function: object, maxsize: int) -> None:
    if not callable(function):
        hint = ": put jit below it" if isinstance(function, classmethod | property) else ""
        raise TypeError(f"jit takes a function, not a {type(function).__name__}{hint}")
    if maxsize < 1:
        raise ValueError(f"maxsize must be positive, not {maxsize}")


def _options(
    fuse: bool,
    threads: int | None,
    schedule: Callable[[Stages], Schedule] | None,
    check: Literal["nan"] | None,
    rewrites: Sequence[str] | None,
    target: str,
) -> Options:
    """Those of `jit`, of the values that they may have."""
    if schedule is not None and not callable(schedule):
        raise TypeError(
            f"schedule takes a function of the stages, not {schedule!r:.60}: to run a schedule that"
            " is there already, write lowered.with_schedule(schedule)"
        )
    if check not in (None, "nan"):
        raise ValueError(f"check must be None or 'nan', not {check!r}")
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    fuse, names = bool(fuse) and check is None, _checked_rewrites(rewrites)
    return Options(fuse, _checked_threads(threads), schedule, check, names, target)


def _checked_rewrites(names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return DEFAULT_REWRITES
    wanted = (names,) if isinstance(names, str) else tuple(names)
    unknown = [name for name in wanted if name not in REWRITES]
    if unknown:
        known = ", ".join(REWRITES)
        raise ValueError(f"rewrites: there is no {unknown[0]!r}, only: {known}")
    return tuple([name for name in REWRITES if name in wanted])


def _checked_threads(threads: int | None) -> int | None:
    from tinyfuse.runtime.pool import checked

    return None if threads is None else checked(threads)


def jitted(
    function: Any, asked_by: str, static_argnames: str | Sequence[str] = ()
) -> JittedFunction | BoundFunction:
    """The function, jitted if it is not yet. Raises TypeError where it cannot be called."""
    if isinstance(function, JittedFunction | BoundFunction):
        return function
    if not callable(function):
        raise TypeError(f"{asked_by} takes a function, not {function!r:.60}")
    made: JittedFunction = jit(function, static_argnames=static_argnames)
    return made


def make_graph(
    function: Callable[..., Any], *, static_argnames: str | Sequence[str] = ()
) -> Callable[..., Graph]:
    """A function that returns the graph of `function` for its arguments.

    ::

        print(tinyfuse.make_graph(softmax)(x))

    Raises TypeError where it cannot be called; the function returned, what `trace` raises.
    """
    of = jitted(function, "make_graph", static_argnames)

    @functools.wraps(function)
    def graph_of(*args: Any, **kwargs: Any) -> Graph:
        return of.trace(*args, **kwargs).graph

    return graph_of


@contextmanager
def disable_jit() -> Iterator[None]:
    """Inside this block jitted functions run as plain Python, in the thread that entered it."""
    mode.disabled += 1
    try:
        with paused():
            yield
    finally:
        mode.disabled -= 1


def cache_info() -> CacheInfo:
    """How the caches are used: programs in memory, and compiled C on the disk."""
    from tinyfuse.runtime.cache import disk_cache_info

    infos = [function.cache_info() for function in list(functions)]
    return CacheInfo(
        sum(info.hits for info in infos),
        sum(info.misses for info in infos),
        sum(info.currsize for info in infos),
        disk_cache_info(),
    )
