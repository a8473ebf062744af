"""In what two signatures differ, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyfuse.signature import Signature, spec_text
from tinyfuse.tree import typed

if TYPE_CHECKING:
    from tinyfuse.trace import ArgumentSpec


def differences(new: Signature, old: Signature) -> list[str]:
    """One line for each leaf that differs, or for their structure."""
    before = dict(zip(old.names, old.specs, strict=True))
    after = dict(zip(new.names, new.specs, strict=True))
    lines = [
        f"{name}: {spec_text(spec)}, was {_text_or_absent(before.get(name))}"
        for name, spec in after.items()
        if name not in before or not same_spec(spec, before[name])
    ]
    lines += [
        f"{name}: absent, was {spec_text(spec)}"
        for name, spec in before.items()
        if name not in after
    ]
    if not lines and new.in_tree != old.in_tree:
        lines.append("the same leaves are in containers of other types")
    return lines


def _text_or_absent(spec: ArgumentSpec | None) -> str:
    return "absent" if spec is None else spec_text(spec)


def same_spec(one: ArgumentSpec, other: ArgumentSpec) -> bool:
    if one.kind != "static" or other.kind != "static":
        return one == other
    return bool(typed(one.value) == typed(other.value))
