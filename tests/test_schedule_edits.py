"""Schedules edited by hand, at random: each is refused, or it computes the same bits."""

from __future__ import annotations

import re
from collections import Counter

from tests.test_controls import ARGUMENTS, example, planned, unfused, wrong
from tinyfuse.errors import ScheduleError
from tinyfuse.schedule.reading import read_schedule
from tinyfuse.schedule.schedule import Schedule
from tinyfuse.schedule.text import schedule_text
from tinyfuse.testing.choices import Choices, SeededChoices

SEEDS = range(1500)
MOST_EDITS = 3
NOISE = ("", " ", ";", ",", "(", ")", "9", "0", "i", "\x00", "é", "; ")


def edited(choices: Choices, text: str) -> str:
    """With one line that says something else of its stage."""
    head, *lines = text.splitlines()
    at = choices.below(len(lines))
    names = [line.split(":")[0].strip() for line in lines]
    loops = re.findall(r"(\w+(?: by \d+)?) <", choices.choose(lines)) or ["i"]
    edit = choices.choose((_moved, _kept, _ordered, _marked, _cut, _spoilt))
    lines[at] = edit(choices, lines[at], names, loops)
    return "\n".join([head, *lines, ""])


def _site(choices: Choices, names: list[str], loops: list[str]) -> str:
    name = choices.choose(names)
    return choices.choose((name, f"{name}, {choices.choose(loops)}"))


def _moved(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    stage, _, said = line.partition(": ")
    site = _site(choices, names, loops)
    along = f"{site}, {choices.choose(loops)} along {choices.choose(loops)}"
    places = ("root", "inline", f"compute_at({site})", f"compute_with({along})")
    return f"{stage}: {'; '.join([choices.choose(places), *said.split('; ')[1:]])}"


def _kept(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    place, *rest = line.split("; ")
    site, loop, number = _site(choices, names, loops), choices.choose(loops), choices.below(5)
    prefetch = f"prefetch({choices.choose(names)}, {loop}, {site}, {number})"
    said = ("streamed", f"fold({loop}, {number})", f"store_at({site})", "store_at(root)", prefetch)
    return "; ".join([place, choices.choose(said), *rest])


def _ordered(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    """A loop comes first, or is gone, or is there twice."""
    place, _, said = line.rpartition("; ")
    own = said.split(", ")
    found = own.pop(choices.below(len(own)))
    return f"{place}; {', '.join(choices.choose(([found, *own], own, [found, *own, found])))}"


def _marked(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    place, _, said = line.rpartition("; ")
    own = said.split(", ")
    own[choices.below(len(own))] += choices.choose((" vector", " parallel", " unroll", " shifted"))
    return f"{place}; {', '.join(own)}"


def _cut(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    place, _, said = line.rpartition("; ")
    own = said.split(", ")
    at = choices.below(len(own))
    axis, _, rest = own[at].partition(" <")
    own.insert(at, f"{axis.split()[0] if axis else 'i'} by {1 + choices.below(5)} <{rest}")
    return f"{place}; {', '.join(own)}"


def _spoilt(choices: Choices, line: str, names: list[str], loops: list[str]) -> str:
    at = choices.below(len(line) + 1)
    return line[:at] + choices.choose(NOISE) + line[at + choices.below(2) :]


def outcome(seed: int) -> str:
    """`refused` or `right`, or else what is wrong, and with which schedule."""
    choices = SeededChoices(seed)
    case = example(list(ARGUMENTS)[seed % len(ARGUMENTS)])
    text = schedule_text(choices.choose((planned, unfused))(case.stages), whole=True)
    for _ in range(1 + choices.below(MOST_EDITS)):
        text = edited(choices, text)
    try:
        schedule = Schedule(*read_schedule(text, case.stages, "text"), "load(text)")
        fault = wrong(schedule, case)
    except ScheduleError as error:
        return "refused" if str(error) else "refused without a word"
    except Exception as error:  # whatever a schedule that should be refused leads to
        fault = repr(error)
    return f"{fault} of\n{text}" if fault else "right"


def test_edited_schedules_are_refused_or_right() -> None:
    found = Counter(map(outcome, SEEDS))
    assert found.keys() == {"refused", "right"}
    assert found["refused"] > found["right"] > 100, found
