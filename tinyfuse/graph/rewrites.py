"""The named rewrites of graphs: those that change bits, and so are part of the meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tinyfuse.graph.fold_batch_norm import fold_batch_norm
from tinyfuse.graph.ir import Graph
from tinyfuse.graph.online_softmax import online_softmax
from tinyfuse.graph.rewrite_names import DEFAULT_REWRITES, REWRITES
from tinyfuse.graph.scalar_ops import NEAREST
from tinyfuse.graph.tensor_products import tensor_products

_REWRITES: dict[str, Callable[[Graph], Graph]] = {
    "fold_batch_norm": fold_batch_norm,
    "online_softmax": online_softmax,
    **{f"{name.removeprefix('nearest_')}_products": tensor_products(name) for name in NEAREST},
}


def rewritten(graph: Graph, names: Collection[str] = DEFAULT_REWRITES) -> Graph:
    """A simplified graph after the rewrites of these names."""
    for name in REWRITES:
        if name in names:
            graph = _REWRITES[name](graph)
    return graph
