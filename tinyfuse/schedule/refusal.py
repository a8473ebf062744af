"""What is said of a directive that is refused: the user's line, what is legal, and the loop nest.

::

    parallel(e, j): only the outermost loop over independent elements can be shared by threads
      at softmax.py:4, in softmax: e = np.exp(x - x.max(axis=-1, keepdims=True))
      legal: parallel(e, i)
          compute e:
        *   for i < 64:
              for j < 1024:
                e[i, j] from subtract

What is legal is found by trying it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise, permutations
from typing import TYPE_CHECKING, NamedTuple

from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.loop_nest import Line, loop_nest_lines
from tinyfuse.schedule.places import Places, Site
from tinyfuse.schedule.text import loop_name
from tinyfuse.source import Source, location
from tinyfuse.stage.ir import Stage

if TYPE_CHECKING:
    from tinyfuse.schedule.schedule import Schedule

MOST_LINES = 40  # of a loop nest
MOST_TRIED = 64  # directives, for one message


class Choice(NamedTuple):
    """Something else that could be said of a stage. site: where it shows in the loop nest."""

    text: str
    site: Site | None
    make: Callable[[], Schedule]


def refused(schedule: Schedule, directive: str, stage: Stage, message: object) -> ScheduleError:
    """The error for a directive on a stage of a schedule. message: what was attempted, and why not.

    The rest of it is found when it is read: a search for legal schedules may try many directives.
    """

    def details() -> str:
        choices = CHOICES.get(directive)
        return explained(schedule.places, stage, choices and _legal(choices(schedule, stage)))

    return ScheduleError(str(message), details)


def explained(places: Places, stage: Stage, legal: Sequence[Choice] | None = None) -> str:
    """The lines below a message about a stage. legal: what can be done; None if nobody knows."""
    lines = [f"at {_place_text(source)}" for source in stage.sources]
    if legal is not None:
        lines.append(_legal_text(legal))
    marked = [choice.site for choice in legal or () if choice.site]
    about = [stage, *[site.stage for site in marked]]
    if legal is not None and not marked:
        about += places.readers[stage]
    nest = [_marked(line, marked) for line in loop_nest_lines(places, about)]
    if len(nest) > MOST_LINES:
        nest = [*nest[:MOST_LINES], "    …"]
    return "".join([f"\n  {line}" for line in [*lines, *nest]])


def _place_text(source: Source) -> str:
    text = " ".join([line.strip() for line in source.statement.split("\n")])
    return f"{location(source)}: {text}" if text else location(source)


def _legal_text(legal: Sequence[Choice]) -> str:
    texts = list(dict.fromkeys([choice.text for choice in legal]))
    return f"legal: {'; '.join(texts) or 'nothing of the kind'}"


def _marked(line: Line, sites: Sequence[Site]) -> str:
    mark = "*" if line.site is not None and line.site in sites else " "
    return f"  {mark} {'  ' * line.depth}{line.text}"


def _legal(choices: Iterable[Choice]) -> list[Choice]:
    return [choice for choice in islice(choices, MOST_TRIED) if _is_legal(choice)]


def _is_legal(choice: Choice) -> bool:
    try:
        choice.make()
    except ScheduleError:
        return False
    return True


# -- what could be said instead


def _places(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
    yield Choice("inline", None, partial(schedule.inline, stage))
    yield Choice("store", None, partial(schedule.store, stage))
    for site in _sites_around(schedule, stage):
        make = partial(schedule.compute_at, stage, site.stage, site.loop)
        yield Choice("compute_at where the loop nest has a *", site, make)


def _sites_around(schedule: Schedule, stage: Stage) -> Iterator[Site]:
    """The places in what reads a stage, and in what that is computed in."""
    readers = schedule.places.readers[stage]
    around = [host for reader in readers for host in schedule.places.chain(reader)]
    for host in dict.fromkeys(around):
        yield Site(host, None)
        yield from [Site(host, loop) for loop in schedule[host].loops]


def _storages(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
    yield Choice("store_at the root", None, partial(schedule.store_at, stage))
    for host in schedule.places.chain(stage)[1:]:
        for loop in (None, *schedule[host].loops):
            make = partial(schedule.store_at, stage, host, loop)
            yield Choice("store_at where the loop nest has a *", Site(host, loop), make)


def _orders(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
    for order in permutations(schedule[stage].loops):
        text = f"reorder({', '.join([stage.name, *map(loop_name, order)])})"
        yield Choice(text, None, partial(schedule.reorder, stage, *order))


def _pairs(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
    for outer, inner in pairwise(schedule[stage].loops):
        text = f"fuse({stage.name}, {loop_name(outer)}, {loop_name(inner)})"
        yield Choice(text, Site(stage, outer), partial(schedule.fuse, stage, outer, inner))


def _copies(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
    for source in dict.fromkeys(load.source for load in schedule.places.loads(stage)):
        text = f"cache_read({stage.name}, {source.name})"
        yield Choice(text, None, partial(schedule.cache_read, stage, source))


def _loops_for(directive: str) -> Callable[[Schedule, Stage], Iterator[Choice]]:
    def choices(schedule: Schedule, stage: Stage) -> Iterator[Choice]:
        for loop in schedule[stage].loops:
            make = partial(getattr(schedule, directive), stage, loop)
            yield Choice(f"{directive}({stage.name}, {loop_name(loop)})", Site(stage, loop), make)

    return choices


CHOICES: dict[str, Callable[[Schedule, Stage], Iterator[Choice]]] = {
    **dict.fromkeys(("inline", "store", "compute_at", "compute_with"), _places),
    "store_at": _storages,
    "reorder": _orders,
    **{
        name: _loops_for(name)
        for name in ("parallel", "vectorize", "unroll", "serial", "pad", "cache_write")
    },
    "fuse": _pairs,
    "cache_read": _copies,
}
