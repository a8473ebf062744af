"""Random programs around products of matrices: what they are made of, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinyfuse.dtypes import is_supported
from tinyfuse.testing.choices import Choices, SeededChoices
from tinyfuse.testing.generate import evaluate
from tinyfuse.testing.program import Program, Statement, operator
from tinyfuse.testing.values import LAYOUTS, draw_values, layouts_of

# Around the rows and columns of tiles, vectors and blocks of rows.
EXTENTS = (
    *(8, 16, 7, 12, 13, 17, 23, 24, 6, 5, 31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 97, 128, 130),
    *(1, 2, 200, 0),
)
LENGTHS = (8, 16, 9, 7, 12, 33, 64, 17, 20, 32, 2, 100, 4095, 4097, 5000, 8200)
DTYPES = tuple(
    np.dtype(name) for name in (*("float32", "float64") * 5, "int32", "int64", "bool", "uint8")
)
MOST_PRODUCTS = 4
REFUSALS = (ValueError, TypeError, IndexError, OverflowError)  # of numpy


class Drawn:
    """A program as far as it is drawn: its arguments, statements, and what all names are.

    visits: of all products together, at most.
    """

    def __init__(self, choices: Choices, visits: int):
        self.choices, self.left = choices, visits
        self.dtype = choices.choose(DTYPES)
        self.arguments: dict[str, np.ndarray] = {}
        self.values: dict[str, Any] = {}
        self.statements: list[Statement] = []

    def extent(self, most: int | None = None) -> int:
        most = self.left if most is None else most
        return self.choices.choose([each for each in EXTENTS if each <= most] or [1])

    def argument(self, *shape: int, dtype: Any = None) -> str:
        """One of those there are, or a new one."""
        known = [name for name, value in self.arguments.items() if value.shape == shape]
        if known and dtype is None and self.choices.chance(1, 4):
            return self.choices.choose(known)
        name = f"x{len(self.arguments)}"
        if dtype is None:
            dtype = self.choices.choose(DTYPES) if self.choices.chance(1, 12) else self.dtype
        array = draw_values(self.choices, shape, np.dtype(dtype))
        if self.choices.chance(1, 3):
            array = LAYOUTS[self.choices.choose(layouts_of(shape))](array)
        self.arguments[name] = self.values[name] = array
        return name

    def indices(self, extent: int, count: int) -> str:
        name = f"x{len(self.arguments)}"
        random = np.random.default_rng(self.choices.below(1 << 16))
        self.arguments[name] = self.values[name] = random.integers(0, max(extent, 1), count)
        return name

    def add(self, template: str, *operands: str) -> str:
        """A value by the name that is returned. Raises what numpy raises."""
        expression = operator(template, *operands)
        value = evaluate(expression, self.values)
        if not is_supported(np.asarray(value).dtype):
            raise TypeError(f"{value.dtype} is not supported")
        name = f"v{len(self.statements)}"
        self.values[name] = value
        self.statements.append(Statement(name, expression))
        return name

    def matrix(self) -> str:
        """A matrix: one of the last values, or a new argument."""
        found = [n for n in self.values if np.ndim(self.values[n]) == 2 and self._is_of_floats(n)]
        if found and not self.choices.chance(1, 6):
            return found[-1 - self.choices.below(min(3, len(found)))]
        return self.argument(self.extent(200), self.choices.choose(LENGTHS[:12]))

    def _is_of_floats(self, name: str) -> bool:
        return self.values[name].dtype == self.dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.values[name])

    def columns(self, *others: int) -> int:
        """Columns of a product, so many that it does not take too long."""
        visited = max(1, int(np.prod(others)))
        found = self.extent(self.left // visited)
        self.left -= visited * found
        return found


Construct = Callable[[Drawn], str]


# --- products -------------------------------------------------------------------------------------


def plain(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    return drawn.add("{0} @ {1}", x, drawn.argument(length, drawn.columns(rows, length)))


def transposed(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    return drawn.add("{0} @ {1}.T", x, drawn.argument(drawn.columns(rows, length), length))


def transposed_first(drawn: Drawn) -> str:
    x = drawn.matrix()
    length, rows = drawn.shape(x)
    return drawn.add("{0}.T @ {1}", x, drawn.argument(length, drawn.columns(rows, length)))


def weights_first(drawn: Drawn) -> str:
    x = drawn.matrix()
    length, columns = drawn.shape(x)
    return drawn.add("{1} @ {0}", x, drawn.argument(drawn.columns(length, columns), length))


def long(drawn: Drawn) -> str:
    length = drawn.choices.choose(LENGTHS[-4:])
    rows = drawn.columns(length, 16)
    x, w = drawn.argument(rows, length), drawn.argument(length, drawn.extent(17))
    return drawn.add("{0} @ {1}", x, w)


def gram(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    if rows * rows * length > drawn.left:
        raise ValueError("this takes long")
    drawn.left -= rows * rows * length
    return drawn.add(drawn.choices.choose(("{0} @ {0}.T", "np.inner({0}, {0})")), x)


def labelled(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    columns = drawn.columns(rows, length)
    labels, shape = drawn.choices.choose(
        (
            ("ik,jk->ij", (columns, length)),
            ("ik,kj->ji", (length, columns)),
            ("ik,jk->ji", (columns, length)),
            ("ik,kj->j", (length, columns)),
            ("ik,jk->j", (columns, length)),
            ("ik,ij->kj", (rows, columns)),
            ("ki,kj->ji", (rows, columns)),
        )
    )
    return drawn.add(f"np.einsum('{labels}', {{0}}, {{1}})", x, drawn.argument(*shape))


def tensordot(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    w = drawn.argument(drawn.columns(rows, length), length)
    return drawn.add("np.tensordot({0}, {1}, ((1,), (1,)))", x, w)


def stacked(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    w = drawn.argument(3, length, drawn.columns(rows, length))
    form = drawn.choices.choose(("{0} @ {1}[1]", "{0} @ {1}[-1]", "({0} @ {1}).sum(0)"))
    return drawn.add(form, x, w)


def of_slices(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    columns = drawn.columns(rows, length)
    form = drawn.choices.choose(
        ("{0} @ {1}[1:-2, 3:]", "{0} @ {1}[length:2:-1, ::-1]", "{0}[::-1] @ {1}[:length, 1:]")
    )
    w = drawn.argument(length + 3, columns + 3)
    return drawn.add(form.replace("length", str(length + 2 * ("2:" in form))), x, w)


def gathered(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    columns = drawn.columns(rows, length)
    form, most, count, shape = drawn.choices.choose(
        (
            ("{0} @ {1}[{2}]", 10, length, (10, columns)),
            ("{0} @ {1}[{2}].T", 10, columns, (10, length)),
            ("{0} @ {1}[:, {2}]", 10, columns, (length, 10)),
            ("{0}[{2}] @ {1}", rows, rows, (length, columns)),
        )
    )
    w = drawn.argument(*shape)
    return drawn.add(form, x, w, drawn.indices(most, count))


def with_a_vector(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    form, count = drawn.choices.choose((("{1} @ {0}", rows), ("{0} @ {1}", length)))
    return drawn.add(form, x, drawn.argument(count))


def outer(drawn: Drawn) -> str:
    return drawn.add(
        "np.outer({0}, {1})", drawn.argument(drawn.extent(100)), drawn.argument(drawn.extent(100))
    )


def batched(drawn: Drawn) -> str:
    form, shapes = drawn.choices.choose(
        (
            ("{0} @ {1}", ("bik", "bkj")),
            ("{0} @ {1}", ("bik", "kj")),
            ("{0} @ {1}", ("ik", "bkj")),
            ("{0} @ {1}.swapaxes(-1, -2)", ("bcik", "bcjk")),
            ("np.einsum('bik,bkj->bij', {0}, {1})", ("bik", "bkj")),
            ("np.einsum('bik,bjk->bji', {0}, {1})", ("bik", "bjk")),
            ("np.einsum('ibk,jbk->bij', {0}, {1})", ("ibk", "jbk")),
            ("np.einsum('bik,bkj->ij', {0}, {1})", ("bik", "bkj")),
            ("np.einsum('ibk,bkcj->icj', {0}, {1})", ("ibk", "bkcj")),
            ("np.tensordot({0}, {1}, 2)", ("ibk", "bkj")),
        )
    )
    sizes = {"b": 2, "c": 3, "i": drawn.extent(70), "k": drawn.choices.choose(LENGTHS[:9])}
    sizes["j"] = drawn.columns(6, sizes["i"], sizes["k"])
    x, y = [drawn.argument(*[sizes[axis] for axis in shape]) for shape in shapes]
    found = drawn.add(form, x, y)
    if drawn.choices.below(2):
        found = drawn.add(drawn.choices.choose(("{0}.sum(0)", "{0}[0]", "{0}[..., 0, :]")), found)
    return found


def pairs(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    y = drawn.argument(drawn.columns(rows, length), length)
    form = drawn.choices.choose(
        (
            "(({0}[:, None] - {1}) ** 2).sum(-1)",
            "np.abs({0}[:, None] - {1}).max(-1)",
            "(({0}[:, None] + 1) * {1}).sum(-1)",
            "({0}[:, None] / {1}).sum(-1)",
        )
    )
    return drawn.add(form, x, y)


def siblings(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    for _ in range(2 + drawn.choices.below(2)):
        w = drawn.argument(length, drawn.columns(rows, length))
        found = drawn.add("{0} @ {1}", x, w)
    return found


MASKS = (
    "np.where(np.tri(*{0}.shape, dtype=bool), {0}, {0}.dtype.type(-1e9))",
    "np.where(np.tri(*{0}.shape, dtype=bool), {0}, -np.inf)",
    "{0} + np.triu(np.full({0}.shape, -np.inf, {0}.dtype), 1)",
    "np.where(np.arange({0}.shape[0])[:, None] + 30 >= np.arange({0}.shape[1]), {0}, -np.inf)",
)


def attention(drawn: Drawn) -> str:
    x = drawn.matrix()
    rows, length = drawn.shape(x)
    columns = drawn.columns(rows, length)
    scores = drawn.add("{0} @ {1}.T", x, drawn.argument(columns, length))
    if drawn.choices.below(2):
        scores = drawn.add(drawn.choices.choose(MASKS), scores)
    weights = softmax(drawn, scores)
    return drawn.add("{0} @ {1}", weights, drawn.argument(columns, drawn.columns(rows, columns)))


def heads(drawn: Drawn) -> str:
    """Attention of two heads, from one matrix of rows."""
    count, size = drawn.extent(70), drawn.choices.choose((8, 4, 16, 5))
    x = drawn.argument(count, 2 * size)
    split = "({0} @ {1}).reshape(-1, 2, " + str(size) + ").swapaxes(0, 1)"
    q, k, v = [drawn.add(split, x, drawn.argument(2 * size, 2 * size)) for _ in range(3)]
    weights = softmax(drawn, drawn.add("{0} @ {1}.swapaxes(-1, -2)", q, k))
    drawn.left -= 3 * 4 * size * size * count + 4 * count * count * size
    joined = drawn.add("({0} @ {1}).swapaxes(0, 1).reshape(" + f"{count}, -1)", weights, v)
    return drawn.add("{0} @ {1} + {2}", joined, drawn.argument(2 * size, 2 * size), x)


PRODUCTS: tuple[Construct, ...] = (
    *(plain, plain, transposed, plain, transposed_first, weights_first, siblings, attention),
    *(labelled, batched, stacked, of_slices, gathered, heads, long, gram, tensordot, pairs),
    *(with_a_vector, outer),
)


# --- what comes before and after ------------------------------------------------------------------


def _last(drawn: Drawn) -> str:
    """Among the last values most of the time, else any."""
    names = [name for name in drawn.values if np.ndim(drawn.values[name])]
    if drawn.choices.chance(1, 5):
        return drawn.choices.choose(names)
    return names[-1]


def softmax(drawn: Drawn, x: str) -> str:
    e = drawn.add("np.exp({0} - {0}.max(-1, keepdims=True))", x)
    return drawn.add("{0} / {0}.sum(-1, keepdims=True)", e)


def softmax_of_the_last(drawn: Drawn) -> str:
    return softmax(drawn, _last(drawn))


def elementwise(drawn: Drawn) -> str:
    forms = (
        *("{0} * 2", "np.maximum({0}, 0)", "np.where({0} > 0, {0}, 0)", "-{0}", "{0} * {0}"),
        *("np.tanh({0})", "0.5 * {0} * (1 + np.tanh({0} + {0} ** 3))", "np.sqrt(np.abs({0}))"),
        *("{0} / (1 + np.abs({0}))", "{0}.astype(np.float64)", "{0}.astype(np.float32)"),
        *("{0} > 0", "{0}[::-1]", "{0}.T", "{0}[1:]", "{0}[:, :-1]", "np.square({0}) + {0}"),
    )
    return drawn.add(drawn.choices.choose(forms), _last(drawn))


def biased(drawn: Drawn) -> str:
    x = _last(drawn)
    shape = drawn.shape(x)
    form = drawn.choices.choose(("{0} + {1}", "{0} - {1}", "{0} * {1}", "np.maximum({0}, {1})"))
    of_rows = (*shape[:-1], 1)
    return drawn.add(form, x, drawn.argument(*drawn.choices.choose((shape[-1:], shape, of_rows))))


def combined(drawn: Drawn) -> str:
    """With another value of the same shape."""
    x = _last(drawn)
    others = [n for n in drawn.values if drawn.shape(n) == drawn.shape(x) and n != x]
    if not others:
        raise ValueError("there is none")
    return drawn.add("{0} + {1}", x, drawn.choices.choose(others))


def masked(drawn: Drawn) -> str:
    x = _last(drawn)
    mask = drawn.argument(*drawn.shape(x), dtype=np.bool_)
    return drawn.add("np.where({1}, {0}, {0}.dtype.type(0))", x, mask)


def rowwise(drawn: Drawn) -> str:
    forms = (
        *("{0} - {0}.mean(-1, keepdims=True)", "{0} / (1 + np.abs({0}).max(-1, keepdims=True))"),
        *("{0}.sum(-1)", "{0}.sum(0)", "{0}.argmax(-1)", "{0}.max(0)", "{0}.sum()"),
        *("np.cumsum({0}, -1)", "np.cumsum({0}, 0)", "{0} - {0}.mean(0)", "{0}.mean(0)"),
        *("np.sort({0}, -1)", "({0} * {0}).mean(-1, keepdims=True) + {0}", "{0}.argmin(0)"),
    )
    return drawn.add(drawn.choices.choose(forms), _last(drawn))


AROUND: tuple[Construct, ...] = (
    *(elementwise, elementwise, biased, rowwise, softmax_of_the_last, combined, masked),
)


def contraction_program(seed: int, visits: int = 400_000) -> Program:
    """A function of the seed. visits: elements that all its products go through, at most."""
    choices = SeededChoices(seed)
    drawn = Drawn(choices, visits)
    drawn.matrix()
    steps = [choices.choose(AROUND)] if choices.chance(1, 4) else []
    for _ in range(1 + choices.below(MOST_PRODUCTS)):
        steps.append(choices.choose(PRODUCTS))
        steps += [choices.choose(AROUND) for _ in range(choices.below(4))]
    for step in steps:
        before = dict(drawn.arguments), dict(drawn.values), list(drawn.statements)
        try:
            step(drawn)
        except REFUSALS:
            drawn.arguments, drawn.values, drawn.statements = before
    if not drawn.statements:
        drawn.add("{0} + {0}", next(iter(drawn.values)))
    return _program(drawn, f"contraction_program({seed}, {visits})", f"products_{seed}")


def _program(drawn: Drawn, label: str, name: str) -> Program:
    """What the last value, and perhaps others, are computed from."""
    targets = [statement.target for statement in drawn.statements]
    outputs = (targets[-1], *[t for t in targets[:-1] if drawn.choices.chance(1, 6)])
    needed, kept = set(outputs), []
    for statement in reversed(drawn.statements):
        if statement.target in needed:
            needed.update(statement.expression.operands)
            kept.append(statement)
    arguments = {name: drawn.arguments[name] for name in drawn.arguments if name in needed}
    return Program(label, arguments, {}, tuple(kept[::-1]), outputs, exact=False, name=name)
