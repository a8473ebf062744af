"""How many kernels layers of networks are, and how much scratch memory they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tinyfuse import jit, nn
from tinyfuse.compilation import Lowered
from tinyfuse.machine import REFERENCE
from tinyfuse.testing import ArraySpec, check_equivalence


def lowered(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Lowered:
    traced = jit(function).trace(*[np.zeros(shape, np.float32) for shape in shapes])
    return Lowered(traced, traced.options, REFERENCE)


IMAGE, WEIGHT, CHANNELS = (1, 64, 56, 56), (64, 64, 3, 3), (64,)
WEIGHT_16 = (64, 16, 3, 3)
PADDED, PACKED, FEATURES = 4 * 64 * 58 * 58, 4 * 64 * 64 * 9, 4 * 64 * 56 * 56


def conv_bn_relu(x, weight, scale, shift):
    y = nn.conv(x, weight, padding=1)
    return nn.relu(y * scale[:, None, None] + shift[:, None, None])


def test_what_follows_a_convolution_is_in_its_kernel():
    program = lowered(conv_bn_relu, IMAGE, WEIGHT, CHANNELS, CHANNELS)
    assert program.scratch_bytes == PADDED + PACKED
    assert len(program.kernels) == 2


def pooled(pool: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def layers(x, weight, scale, shift):
        y = nn.conv(x, weight, padding=1, **options)
        if not options:
            scale, shift = scale[:, None, None], shift[:, None, None]
        return pool(nn.relu(y * scale + shift), 2, **options)

    return layers


@pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
def test_a_convolution_that_is_pooled_is_never_stored(pool: Callable[..., Any]):
    program = lowered(pooled(pool), IMAGE, WEIGHT, CHANNELS, CHANNELS)
    assert program.scratch_bytes == PADDED + PACKED
    assert len(program.kernels) == 2
    image, weight = (1, 56, 56, 64), (3, 3, 64, 64)
    program = lowered(pooled(pool, channels_last=True), image, weight, CHANNELS, CHANNELS)
    assert program.scratch_bytes <= PADDED + PACKED


def residual(x, weight, scale, shift):
    return nn.relu(nn.conv(x, weight, padding=1) * scale[:, None, None] + x)


@pytest.mark.parametrize(
    ("layers", "step", "written"),
    [
        (conv_bn_relu, "i3 by 8", FEATURES),
        (pooled(nn.max_pool), "i1 by 32", FEATURES // 4),
        (pooled(nn.avg_pool), "i1 by 32", FEATURES // 4),
        (residual, None, 0),  # what is added lies along the pixels
    ],
)
def test_what_follows_a_convolution_is_computed_in_vectors_of_channels(
    layers: Callable[..., Any], step: str | None, written: int
):
    """And its pixels lie side by side again by transposes, of whole vectors."""
    program = lowered(layers, IMAGE, WEIGHT, CHANNELS, CHANNELS)
    lines = [x for x in str(program.schedule).splitlines() if x.startswith("  out_local: ")]
    start = f"  out_local: compute_at(out, {step}); layout(i0, i2, i3, i1); "
    assert [line[: len(start)] for line in lines] == ([start] if step else [])
    kernel = program.as_text("c").partition("*restrict out, long begin")[2].partition("\n}\n")[0]
    assert kernel.count("tf_transpose_") == len(lines)
    reasons = [each.reason for each in program.decisions if each.producer == "out_local"]
    stays = f"out stays as the program has it, {written} bytes are transposed"
    lies = "its i1 lies in vectors, as in y_1, and is written across"
    assert reasons == [f"{lies}: {stays}"] * len(lines)


def test_what_follows_a_convolution_has_the_same_bits_however_it_is_scheduled():
    shapes = ((2, 3, 7, 9), (17, 3, 3, 3), (17,), (17,))
    assert len(lowered(conv_bn_relu, *shapes).kernels) == 2
    arrays = [ArraySpec("float32", shape) for shape in shapes]
    check_equivalence(conv_bn_relu, *arrays, exact=False, schedules=2, examples=2)


def test_windows_that_overlap_would_compute_a_convolution_again_and_again():
    def layers(x, weight):
        return nn.max_pool(nn.conv(x, weight, padding=1), 3, stride=2)

    program = lowered(layers, IMAGE, WEIGHT)
    assert program.scratch_bytes >= PADDED + PACKED + FEATURES


@pytest.mark.parametrize("size", [28, 32])
def test_steps_between_outputs_leave_tiles(size: int):
    """Also where as many outputs as fill vectors lie side by side, but not what they read."""
    program = lowered(lambda x, w: nn.conv(x, w, stride=2), (1, 16, 9, 2 * size + 1), WEIGHT_16)
    assert any("registers" in str(decision) for decision in program.decisions)


def test_a_pool_by_reshape_is_a_pool():
    def layers(x, weight):
        y = nn.conv(x, weight, padding=1)
        return y.reshape(1, 64, 28, 2, 28, 2).max(axis=(3, 5))

    assert lowered(layers, IMAGE, WEIGHT).scratch_bytes == PADDED + PACKED


@pytest.mark.parametrize("options", [{}, {"channels_last": True}])
@pytest.mark.parametrize("pool", [nn.max_pool, nn.avg_pool])
def test_pools_have_the_same_bits_however_they_are_scheduled(
    pool: Callable[..., Any], options: dict[str, Any]
):
    image, weight = ((1, 8, 11, 2), (3, 3, 2, 17)) if options else ((1, 2, 8, 11), (17, 2, 3, 3))
    arrays = [ArraySpec("float32", shape) for shape in (image, weight, (17,), (17,))]
    layers = pooled(pool, **options)
    assert len(lowered(layers, image, weight, (17,), (17,)).kernels) == 2
    check_equivalence(layers, *arrays, exact=False, schedules=0, examples=1)


# --- other ways to write a convolution ------------------------------------------------------------


def windows(x):
    return sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))


def by_tensordot(x, weight):
    return np.tensordot(windows(x), weight, axes=((1, 4, 5), (1, 2, 3)))


def by_tensordot_of_weights(x, weight):
    return np.tensordot(weight, windows(x), axes=((1, 2, 3), (1, 4, 5)))


def by_matmul(x, weight):
    """What is called im2col."""
    o = weight.shape[0]
    columns = windows(x).transpose(0, 2, 3, 1, 4, 5).reshape(-1, weight.size // o)
    return columns @ weight.reshape(o, -1).T + 1


FORMS = pytest.mark.parametrize("form", [by_tensordot, by_tensordot_of_weights, by_matmul])


@FORMS
def test_windows_that_a_reshape_merges_are_read_where_they_are(form: Callable[..., Any]):
    program = lowered(form, IMAGE, WEIGHT)
    assert program.scratch_bytes <= PADDED + PACKED + FEATURES  # no columns
    product = next(s for s in program.schedule.stages.stages if len(s.reduce_axes) == 3)
    assert [axis.extent for axis in product.reduce_axes] == [64, 3, 3]
    assert sorted(axis.extent for axis in product.axes) == [56, 56, 64]
    assert "%" not in program.as_text("c").partition(f"*restrict {product.name}")[2]


@FORMS
def test_forms_of_convolutions_have_the_same_bits_however_they_are_scheduled(
    form: Callable[..., Any],
):
    arrays = [ArraySpec("float32", shape) for shape in ((2, 2, 5, 7), (6, 2, 3, 3))]
    check_equivalence(form, *arrays, exact=False, schedules=2, examples=2)


@pytest.mark.parametrize("form", [by_tensordot, by_matmul])
def test_chains_longer_than_a_block_are_split_where_they_were(form: Callable[..., Any]):
    """460 channels of 9 taps: a block of 4096 products, and the rest."""
    x, weight = (
        np.random.default_rng(seed).normal(size=shape).astype(np.float32)
        for seed, shape in enumerate([(1, 460, 3, 4), (3, 460, 3, 3)])
    )
    expected = form(x.astype(np.float64), weight.astype(np.float64))
    fused, unfused = jit(form)(x, weight), jit(form, fuse=False)(x, weight)
    np.testing.assert_array_equal(fused, unfused)
    np.testing.assert_allclose(fused, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("rows", "products", "shared"),
    [
        (1, 5000, "j by 256 < 512 parallel, block < 2"),
        (8, 5000, "j by 32 < 512 padded parallel, block < 2"),
        (64, 8192, "block < 2 parallel"),
        (1, 11008, "j by 256 < 512 parallel, block < 3"),
        (1, 100_000, "block < 25 parallel"),
    ],
)
def test_threads_share_blocks_of_a_chain_that_are_even(rows: int, products: int, shared: str):
    """The last one is shorter: of two, the other thread would wait; of 25, for a moment."""
    program = lowered(lambda a, b: a @ b, (rows, products), (products, 512))
    assert f"out_blocks: root; {shared}" in str(program.schedule)


@FORMS
def test_products_of_no_windows_are_empty(form: Callable[..., Any]):
    x, weight = np.zeros((0, 2, 5, 7), np.float32), np.zeros((6, 2, 3, 3), np.float32)
    assert jit(form)(x, weight).shape == form(x, weight).shape


def test_a_product_whose_columns_are_split_afterwards_is_computed_once():
    """In tiles of several rows, and so not in a loop over single rows of what reads it."""
    program = lowered(lambda x, w: (w @ x.reshape(64, -1)).reshape(x.shape), IMAGE, (64, 64))
    flops = sum(cost.flops for cost in program.cost.values())
    needed = 2 * 64 * 64 * 56 * 56
    assert needed <= flops <= 1.05 * needed


def test_what_is_not_fused_is_tiled_all_the_same():
    """So that what fusion gains is told apart from what tiles do."""
    program = lowered(conv_bn_relu, IMAGE, WEIGHT, CHANNELS, CHANNELS).unfused()
    assert len(program.kernels) == 5
    assert program.scratch_bytes == PADDED + FEATURES + PACKED
    assert any("in registers" in str(decision) for decision in program.decisions)


@pytest.mark.parametrize(
    ("channels", "block"),
    [(16, "i1 by 8"), (24, "i1 by 6"), (32, "i1 by 8"), (128, "i1 by 32"), (192, "i1 by 48")],
)
def test_threads_that_share_blocks_of_channels_end_together(channels: int, block: str):
    """Two threads, where an image is padded again in the kernel that computes it."""
    image, weight = (1, channels, 32, 32), (channels, channels, 3, 3)

    def layers(x, first, second):
        return nn.conv(nn.relu(nn.conv(x, first, padding=1)), second, padding=1)

    (line,) = [
        x
        for x in str(lowered(layers, image, weight, weight).schedule).splitlines()
        if " root; i1 by " in x and "parallel" in x
    ]
    assert line.partition("root; ")[2].partition(" <")[0] == block


@pytest.mark.parametrize("channels", [64, 96])
def test_convolutions_of_one_image_each_take_what_follows(channels: int):
    """Also where what follows has the same shape; the image is padded once."""

    def layers(x, first, second):
        return [nn.relu(nn.conv(x, weight, padding=1)) for weight in (first, second)]

    program = lowered(layers, IMAGE, WEIGHT, (channels, 64, 3, 3))
    assert len(program.kernels) == 3
    assert program.scratch_bytes == PADDED + 4 * channels * 64 * 9
    (known,) = [each for each in program.decisions if each.producer == "out"]
    assert known.action == "store"
    small = (1, 8, 28, 28), (32, 8, 3, 3), (channels // 2, 8, 3, 3)
    arrays = [
        np.random.default_rng(n).normal(size=s).astype(np.float32) for n, s in enumerate(small)
    ]
    assert len(lowered(layers, *small).kernels) == 3
    for fused, apart in zip(jit(layers)(*arrays), jit(layers, fuse=False)(*arrays), strict=True):
        np.testing.assert_array_equal(fused, apart)


def test_a_pair_of_pointwise_convolutions_of_one_image_is_one_kernel():
    def layers(x, first, second):
        return [nn.relu(nn.conv(x, weight)) for weight in (first, second)]

    program = lowered(layers, IMAGE, (64, 64, 1, 1), (64, 64, 1, 1))
    assert (len(program.kernels), program.scratch_bytes) == (1, 0)


def test_an_inception_module():
    """The branches' first convolutions pad for the second ones; the pool pads as it goes."""

    def module(x, one, before_three, three, before_five, five, after_pool):
        wide = nn.conv(nn.relu(nn.conv(x, before_three)), three, padding=1)
        wider = nn.conv(nn.relu(nn.conv(x, before_five)), five, padding=2)
        pooled = nn.conv(nn.max_pool(x, 3, stride=1, padding=1), after_pool)
        branches = [nn.conv(x, one), wide, wider, pooled]
        return np.concatenate([nn.relu(branch) for branch in branches], axis=1)

    weights = ((64, 192, 1, 1), (96, 192, 1, 1), (128, 96, 3, 3), (16, 192, 1, 1), (32, 16, 5, 5))
    program = lowered(module, (1, 192, 28, 28), *weights, (32, 192, 1, 1))
    assert (len(program.kernels), len(program.unfused().kernels)) == (8, 18)
    assert program.scratch_bytes == 2_108_928


def test_convolutions_of_one_image_that_are_pooled_are_fused_all_the_same(caplog: Any):
    """A pool takes no element by itself: each convolution keeps a kernel of its own there."""

    def layers(x, first, second):
        y = nn.relu(nn.conv(x, first, padding=1))
        pooled = y.reshape(1, 32, 14, 2, 28).min(axis=3)
        return pooled, nn.relu(nn.conv(x, second, padding=1))

    program = lowered(layers, (1, 8, 28, 28), (32, 8, 3, 3), (32, 8, 3, 3))
    assert not caplog.messages
    assert len(program.kernels) < len(program.unfused().kernels)


@pytest.mark.parametrize(
    ("channels", "tile"), [(16, "16 < 16"), (32, "32 < 32"), (48, "16 < 48"), (64, "32 < 64")]
)
def test_tiles_are_no_wider_than_the_channels_fill(channels: int, tile: str):
    weight = (channels, channels, 3, 3)
    program = lowered(
        lambda x, weight: nn.relu(nn.conv(nn.relu(nn.conv(x, weight)), weight)),
        (1, channels, 56, 56),
        weight,
    )
    tiles = [line for line in str(program.schedule).splitlines() if " unroll, " in line]
    assert len(tiles) == 2
    assert all(f" by {tile} padded, i3 by 8 < " in line for line in tiles)


TAPS = "i3 < 28 vector, k < 3 reduced unroll, l < 3 reduced unroll"


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w: nn.depthwise_conv(x, w, padding=1), ((1, 64, 28, 28), (64, 3, 3))),
        (lambda x, w: nn.depthwise_conv(x, w, stride=2), ((1, 64, 57, 57), (64, 3, 3))),
    ],
)
def test_taps_of_each_channel_are_added_up_before_anything_is_stored(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]
):
    program = lowered(function, *shapes)
    assert len(program.kernels) == 1
    assert TAPS in str(program.schedule)
    text = program.as_text("c")
    assert text.count("out_acc = __builtin_fmaf(") == 9
    assert text.count("= out_acc;") == 1
    arrays = [ArraySpec("float32", shape) for shape in shapes]
    check_equivalence(function, *arrays, exact=False, schedules=1, examples=1)


def test_taps_along_one_axis_are_added_up_before_anything_is_stored():
    program = lowered(lambda x, w: nn.conv(x, w), (8, 1, 4000), (1, 1, 9))
    assert "k < 3992 vector, l < 9 reduced unroll" in str(program.schedule)


def test_taps_that_take_many_operations_are_not_written_out():
    program = lowered(lambda x: nn.max_pool(x, 3, stride=1), (1, 64, 30, 30))
    assert "k < 3 reduced, l < 3 reduced, i3 < 28 vector" in str(program.schedule)
