"""The closed set of primitives, with the parameters of each.

Operand shapes are explicit: apart from `Literal`s, the operands of an elementwise equation have the
shape of its output, and views are equations of their own.
"""

from tinyfuse.graph.ir import Primitive

# op: a row of `scalar_ops.SCALAR_OPS`. Operands are in the dtypes that the operation computes in.
elementwise = Primitive("elementwise")
# dtype
cast = Primitive("cast")

# Views: each output element is one input element.
broadcast = Primitive("broadcast")  # shape; aligned at the last axis, as numpy.broadcast_to
reshape = Primitive("reshape")  # shape; in C order
transpose = Primitive("transpose")  # axes
# starts, steps (never 0), shape: element i of an axis is start + step * i
slice_ = Primitive("slice")
# window_shape, axes: window axes come last, as numpy's sliding_window_view
windows = Primitive("windows")
# at: 0 for the real parts of complex numbers, 1 for the imaginary ones
part = Primitive("part")
# Complex numbers of two arrays of one type: the real and the imaginary parts.
from_parts = Primitive("from_parts")

# Each output element is one of several inputs' elements.
pad = Primitive("pad")  # before, after; inputs: array, fill value (shape ())
concat = Primitive("concat")  # axis; inputs: one or more arrays

# The int64 positions 0 … extent - 1.
iota = Primitive("iota")  # extent; no inputs
# Elements chosen by data. inputs: array, then int64 indices of one shape, for its first axes; they
# lie within the array (`wrap_index` makes them). Output: the indices' shape, then the axes left.
gather = Primitive("gather")
# op: set, or a binary row of `SCALAR_OPS`. Inputs: array, values, indices as for gather; the
# values have the shape that a gather would have. The array with values put in, or combined with
# its elements, one after the other in C order of the indices. dtype: what each element is converted
# to before it is combined with a value; what comes of that is converted back, at each step.
scatter = Primitive("scatter")
# starts, steps: the array (input 0) with the values (input 1) at start + step * i, as of a slice.
update = Primitive("update")

# op: sum prod max min any all argmax argmin; axes: ascending, not negative; the axes vanish.
# dtype: of the output; sum and prod convert each element to it first. any and all take bool,
# argmax and argmin one axis.
reduce = Primitive("reduce")
# op: a binary row of `SCALAR_OPS` that gives the dtype it takes; axis. Each element combined with
# the result before it along the axis, one after the other: the first one is itself.
cumulative = Primitive("cumulative")
# axis; kind: the algorithm of numpy's whose bits the order of equal elements has under numpy's
# numerics (quicksort, heapsort, stable); else they stay in their order. NaN comes last, -0 and +0
# are equal. The elements, or their int64 positions, in ascending order along the axis.
sort = Primitive("sort")
argsort = Primitive("argsort")
# lhs, rhs, out: a label (small int) for each axis. Labels of both operands that are not in `out`
# are summed over; every label of `out` is in an operand, no label twice in one place.
# via: the numpy function whose bits the product has under numpy's numerics (matmul, dot, einsum).
contract = Primitive("contract")

# lhs, rhs, out: labels as of contract; one is summed over, that of the keys. The contraction of
# softmax(scores) along the keys (input 0) with values (input 1), in blocks of `block` keys; see
# `online_softmax`. limits: affine forms one after the other, each a factor for every axis of the
# scores and a constant; a score counts as -inf where one of them is negative.
softmax_contract = Primitive("softmax_contract")

# Equations with graphs in them, and with one or more outputs; see `control`. The graphs read
# nothing but their inputs. What a loop carries comes first among its inputs, then what all of its
# turns read.
# extent: how many turns. counted: whether they are as many as the last operand says (int64, from 0
# to the extent), which the body takes too. body: from the number of the turn (int64, from 0), what
# is carried and what is read, to what is carried.
loop = Primitive("loop")
# body: from what is carried and what is read to what is carried. The first of that is bool []:
# whether there is another turn.
while_ = Primitive("while")
# branches: graphs from the same to the same. inputs: the number of the one that runs (int64; that
# of the nearest where there is none), then what they take.
cond = Primitive("cond")

# The parameters of each primitive and their types; "ints" is a tuple of int, "graphs" of graphs.
PARAMETERS: dict[Primitive, dict[str, str]] = {
    elementwise: {"op": "str"},
    cast: {"dtype": "dtype"},
    broadcast: {"shape": "ints"},
    reshape: {"shape": "ints"},
    transpose: {"axes": "ints"},
    slice_: {"starts": "ints", "steps": "ints", "shape": "ints"},
    windows: {"window_shape": "ints", "axes": "ints"},
    part: {"at": "int"},
    from_parts: {},
    pad: {"before": "ints", "after": "ints"},
    concat: {"axis": "int"},
    iota: {"extent": "int"},
    gather: {},
    scatter: {"op": "str", "dtype": "dtype"},
    update: {"starts": "ints", "steps": "ints"},
    reduce: {"op": "str", "axes": "ints", "dtype": "dtype"},
    cumulative: {"op": "str", "axis": "int"},
    sort: {"axis": "int", "kind": "str"},
    argsort: {"axis": "int", "kind": "str"},
    contract: {"lhs": "ints", "rhs": "ints", "out": "ints", "via": "str"},
    softmax_contract: {
        "lhs": "ints",
        "rhs": "ints",
        "out": "ints",
        "block": "int",
        "limits": "ints",
    },
    loop: {"extent": "int", "counted": "bool", "body": "Graph"},
    while_: {"body": "Graph"},
    cond: {"branches": "graphs"},
}
