"""The examples: the filters are right, the demo and the benchmark print what they should."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyfuse
from tinyfuse.compilation import Lowered
from tinyfuse.graph.primitives import contract, elementwise
from tinyfuse.machine import REFERENCE

EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))

import bench  # noqa: E402
import digits  # noqa: E402
import filters  # noqa: E402
import fusion  # noqa: E402
import photo  # noqa: E402
import products  # noqa: E402
import text  # noqa: E402
import timing  # noqa: E402
import workloads  # noqa: E402


def picture(height: int, width: int) -> np.ndarray:
    """A bright disc on a gradient, with some noise: float32[height, width, 3]."""
    y, x = np.mgrid[:height, :width]
    disc = np.hypot(y - height / 2, x - width / 2) < height / 4
    noise = np.random.default_rng(0).uniform(0, 0.2, (height, width, 3))
    shades = 0.4 * x / width + 0.4 * disc
    return (shades[..., np.newaxis] + noise).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (41, 67)])
@pytest.mark.parametrize("example", photo.EXAMPLES, ids=lambda example: example.function.__name__)
def test_filters_equal_numpy(example: photo.Example, shape: tuple[int, int]):
    image = picture(*shape)
    expected = example.function(image)
    result = tinyfuse.jit(example.function)(image)
    assert (result.shape, result.dtype) == (expected.shape, np.float32)
    checked = photo.check(example.function, image)
    assert checked.same_bits
    assert checked.difference <= example.tolerance


def test_parameters_of_filters_are_run_time_values():
    image = picture(20, 30)
    sharpen = tinyfuse.jit(filters.unsharp_mask)
    for amount in (0.0, 0.5, 3.0):
        assert np.array_equal(sharpen(image, amount), filters.unsharp_mask(image, amount))
    assert sharpen.cache_info()[:2] == (2, 1)  # hits, misses


def test_sharpening_by_nothing_changes_nothing():
    image = picture(20, 30)
    assert np.array_equal(tinyfuse.jit(filters.unsharp_mask)(image, 0.0), image)


def test_corners_are_corners():
    image = np.zeros((32, 32, 3), np.float32)
    image[8:24, 8:24] = 1
    response = tinyfuse.jit(filters.harris_response)(image)
    highest = {tuple(place) for place in np.argwhere(response > 0.5 * response.max()).tolist()}
    assert {(8, 8), (8, 23), (23, 8), (23, 23)} <= highest
    assert response[8, 16] < 0 < response[8, 8]  # an edge, a corner
    assert response[16, 16] == 0


def test_the_demo_on_a_part_of_the_photograph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
):
    pytest.importorskip("sklearn", reason="the photograph comes with scikit-learn: make demo")
    image_module = pytest.importorskip("PIL.Image", reason="pictures need pillow: make demo")
    part = photo.photograph()[100:164, 100:180]
    monkeypatch.setattr(photo, "photograph", lambda: part)
    folder = tmp_path / "the pictures"
    assert photo.main([str(folder)], seconds=0.0) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= photo.WIDTH
    for name in ("unsharp_mask", "harris_response", "tone_curve"):
        assert re.search(rf"^  {name} +yes ", printed, re.MULTILINE)
        assert re.search(rf"^  {name} +numpy .* 1 thread .*x\)", printed, re.MULTILINE)
    written = {path.name: image_module.open(path).size for path in folder.iterdir()}
    names = ["photo", "unsharp_mask", "harris_response", "tone_curve"]
    assert written == {f"{name}.png": (80, 64) for name in names}


def test_a_filter_that_is_not_close_enough_is_reported():
    example = photo.EXAMPLES[0]
    assert photo._verdict(example, photo.Checked(0.0, True)).startswith("yes equal (")
    wrong = photo._verdict(example, photo.Checked(0.25, False))
    assert wrong.startswith("NO  within 2e-01 of the largest value (")
    assert wrong.endswith("; NOT the same with 1 thread, all threads, unfused")


def test_long_lines_are_folded():
    line = "  // " + "word " * 30
    first, second = photo.folded(line).splitlines()
    assert len(first) <= 100
    assert second.startswith("  // word")
    assert photo.folded("short") == "short"


def test_medians_take_turns():
    order: list[str] = []

    def call(name: str) -> None:
        order.append(name)
        time.sleep(2 * timing.TURN)

    times = timing.medians({"a": lambda: call("a"), "b": lambda: call("b")}, 0.0)
    assert times.keys() == {"a", "b"}
    assert "".join(order) == "aabb" + "aabb" * timing.ROUNDS


@pytest.mark.parametrize(("cores", "count"), [(1, 0), (2, 2 * timing.ROUNDS)])
def test_turns_begin_when_the_threads_of_others_sleep(
    cores: int, count: int, monkeypatch: pytest.MonkeyPatch
):
    pauses: list[float] = []
    monkeypatch.setattr(timing, "available_cores", lambda: cores)
    monkeypatch.setattr(timing, "sleep", pauses.append)
    timing.medians({"a": lambda: None, "b": lambda: None}, 0.0)
    assert [pause for pause in pauses if pause] == [timing.PAUSE] * count


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5e-7, "  0.2 us"),
        (1e-5, " 10.0 us"),
        (2e-3, " 2.00 ms"),
        (0.5, "500.0 ms"),
        (2, " 2000 ms"),
    ],
)
def test_durations_have_one_width(seconds: float, text: str):
    assert timing.duration(seconds) == text


@pytest.mark.parametrize("workload", workloads.WORKLOADS, ids=lambda w: w.function.__name__)
def test_workloads_equal_numpy(workload: workloads.Workload):
    arrays = workloads.arguments(tuple(tuple(map(reduced, shape)) for shape in workload.shapes))
    expected = workload.function(*arrays)
    result = tinyfuse.jit(workload.function)(*arrays)
    assert result.dtype == expected.dtype
    assert np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max()


def reduced(size: int) -> int:
    return max(size // 32, 16)


def test_fifty_operations_are_fifty():
    arrays = workloads.arguments(((32, 16), (16, 16), (16,)))
    graph = tinyfuse.make_graph(workloads.fifty_operations)(*arrays)
    assert sum(eqn.primitive in (elementwise, contract) for eqn in graph.eqns) == 50


def test_the_benchmark_reads_what_processes_print():
    assert bench.in_process("print(1.5); print(2)") == [1.5, 2.0]


def test_a_row_of_the_benchmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "installed", list)
    total = workloads.Workload(workloads.total, ((16, 16),))
    number = r" *[\d.]+ (us|ms)"
    assert re.fullmatch(rf"  total {number}{number} +\([\d.]+\) +\d+%", bench.row(total, 0.0))


SMALL_PRODUCTS = (
    products.Product("small", products.activated, ((2, 16, 24), (2, 24, 40))),
    products.Product("small", products.across, ((16, 24), (16, 40)), length=16),
    products.Product("small", products.layer, ((16, 24), (24, 40), (40,))),
    products.Product("small", products.queries_keys_values, ((16, 24), *[(24, 40)] * 3)),
)


@pytest.mark.parametrize("each", SMALL_PRODUCTS)
def test_a_row_of_a_product(each: products.Product):
    number = r" *[\d.]+ (us|ms)"
    cell = rf"{number} +\([\d.]+\) +\d+%"
    assert re.fullmatch(rf"  small {number}({cell}){{2,3}}", products.product_row(each, 0.0))
    for name, call in products.calls_of(each)[0].items():
        expected = each.function(*each.factors())
        np.testing.assert_allclose(call(), expected, atol=0.5 if "16" in name else 1e-4)


def test_multiplications_of_products():
    found = [each.multiplications() for each in SMALL_PRODUCTS]
    assert found == [2 * 16 * 24 * 40, 16 * 24 * 40, 16 * 24 * 40, 3 * 16 * 24 * 40]


@pytest.mark.parametrize("cores", [1, 2])
def test_the_peak_of_a_product(monkeypatch: pytest.MonkeyPatch, cores: int):
    """A large product is limited by multiplying and adding, one of a vector by reading."""
    monkeypatch.setattr(products, "host", lambda: REFERENCE)
    monkeypatch.setattr(tinyfuse, "num_threads", lambda: cores)
    square = products.Product("", products.product, ((1024, 1024), (1024, 1024)))
    rate = REFERENCE.constants.float32_rate
    assert products.seconds_at_least(square, 3 << 22) == pytest.approx(1024**3 / rate / cores)
    vector = products.Product("", products.product, ((1, 4096), (4096, 4096)))
    read = REFERENCE.constants.bandwidth if cores == 1 else REFERENCE.constants.shared_bandwidth
    assert products.seconds_at_least(vector, 1 << 26) == pytest.approx((1 << 26) / read[3])


EACH_FUSION = pytest.mark.parametrize("name", fusion.EXAMPLES)


@EACH_FUSION
def test_an_example_of_fusion_has_as_many_kernels_as_it_says(name: str):
    example = fusion.EXAMPLES[name]
    traced = tinyfuse.jit(example.function).trace(*fusion.arguments(example))
    after = Lowered(traced, traced.options, REFERENCE)
    assert (len(after.unfused().kernels), len(after.kernels)) == example.kernels


def test_examples_of_fusion_equal_numpy():
    for example in fusion.EXAMPLES.values():
        shapes = [tuple(min(size, 32) for size in shape) for shape in example.shapes]
        arrays = workloads.arguments(tuple(shapes))
        check_equivalent(example.function, arrays)


def check_equivalent(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> None:
    results, expected = tinyfuse.jit(function)(*arrays), function(*arrays)
    several = isinstance(expected, tuple)
    for result, wanted in zip(results, expected, strict=True) if several else [(results, expected)]:
        assert np.allclose(result, wanted, rtol=1e-5, atol=1e-6)


def test_an_example_of_fusion_prints_its_loops(capsys: pytest.CaptureFixture[str]):
    fusion.main(["squared_error"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "== what is elementwise goes into a reduction"
    assert lines[2] == "def squared_error(x, y):"
    moved = [line for line in lines if "KiB" in line]
    assert moved == [
        "before: 3 kernels; 12,290 KiB read and written; 4,096 KiB of scratch memory",
        "after: 1 kernel; 4,098 KiB read and written; 0 KiB of scratch memory",
    ]
    assert "            out_lanes[i, l] from x, y; square, subtract inline" in lines


# --- networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", digits.NETWORKS)
def test_a_network_learns_digits(name: str):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: make demo")
    network, (seen, held_out) = digits.NETWORKS[name], digits.digits()
    p = digits.trained(network, seen.images, seen.labels, epochs=4)
    compiled = tinyfuse.jit(network.forward)
    assert digits.accuracy(compiled, p, held_out) > 0.9
    expected = network.forward(p, held_out.images)
    found = compiled(p, held_out.images)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", digits.NETWORKS)
def test_gradients_are_slopes(name: str):
    """What a small step along one weight changes in the cross entropy, in float64."""
    network, random = digits.NETWORKS[name], np.random.default_rng(0)
    p = {key: value.astype(np.float64) for key, value in network.parameters(random).items()}
    images, labels = random.random((5, 1, 8, 8)), random.integers(0, 10, 5)

    def entropy() -> float:
        logits = network.forward(p, images)
        chosen = np.exp(logits)[np.arange(5), labels] / np.exp(logits).sum(axis=1)
        return float(-np.log(chosen).mean())

    gradients = network.gradients(p, images, labels)
    for key, value in p.items():
        at = np.unravel_index(np.abs(gradients[key]).argmax(), value.shape)
        old, step = value[at], 1e-6
        value[at] = old + step
        above = entropy()
        value[at] = old - step
        assert gradients[key][at] == pytest.approx((above - entropy()) / (2 * step), rel=1e-4)
        value[at] = old


def test_a_report_on_digits(capsys: pytest.CaptureFixture):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: make demo")
    assert digits.main(["perceptron"], epochs=1, seconds=0.0) == 0
    number, time = r"[\d.]+", r" *[\d.]+ [um]s"
    pattern = rf"perceptron +{number}% of 360 .*numpy{time}, compiled{time}, 1 kernels for 5, "
    assert re.match(pattern, capsys.readouterr().out)


def test_a_model_writes_what_it_learned(capsys: pytest.CaptureFixture):
    assert text.main(length=60, seconds=0.0) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(text.zen()[:60] + "\n")
    assert "100.0% of the letters" in printed


def test_letter_by_letter_is_all_at_once():
    p = text.parameters(np.random.default_rng(1), letters=9)
    letters = np.random.default_rng(2).integers(0, 9, 12)
    p["readout"] = np.random.default_rng(3).normal(size=(text.SIZE, 9)).astype(np.float32)
    expected = (text.hidden(p, letters) @ p["readout"]).argmax(axis=1)
    step, keys, values = tinyfuse.jit(text.decode), text.empty(12), text.empty(12)
    for place in range(12):
        found, own = step(p, letters[place : place + 1], np.array(place), keys, values)
        assert found[0] == expected[place]
        for layer, (key, value) in enumerate(own):
            keys[layer][:, place], values[layer][:, place] = key, value
    assert step.cache_info().misses == 1
