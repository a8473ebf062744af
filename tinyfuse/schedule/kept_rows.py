"""Which rows that a kernel keeps can lie in its result: see `lower.rows_in_results`."""

from __future__ import annotations

from tinyfuse.graph.scalar_ops import EXP_NONPOSITIVE
from tinyfuse.schedule.places import Places
from tinyfuse.stage.expr import Load, Op
from tinyfuse.stage.index import affine
from tinyfuse.stage.ir import Stage


def rows_in_result(root: Stage, places: Places) -> list[Stage]:
    """The stages whose rows become those of the result of a kernel, element by element.

    A row is divided faster into another one; but for exponentials, whose sizes are known.
    """
    if root.reduce_axes or root.row_axis or root.scatter:
        return []
    attached = places.attached.get(root, ())
    return [stage for stage in attached if _becomes(stage, root, places)]


def _becomes(stage: Stage, root: Stage, places: Places) -> bool:
    loads = [load for load in places.loads(root) if load.source is stage]
    own = tuple(map(affine, root.axes))
    alike = stage.dtype == root.dtype and bool(loads)
    return (
        alike
        and all(load.indices == own and not load.data for load in loads)
        and (_is_exponential(stage) or not _is_divided(stage, root))
    )


def _is_exponential(stage: Stage) -> bool:
    return isinstance(stage.body, Op) and stage.body.name == EXP_NONPOSITIVE


def _is_divided(stage: Stage, root: Stage) -> bool:
    if not isinstance(root.body, Op) or root.body.name != "divide":
        return False
    dividend = root.body.operands[0]
    return isinstance(dividend, Load) and dividend.source is stage
