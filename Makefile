# Every command sets up what it needs in .venv first, once. Another Python: make demo PYTHON=python3.12

PYTHON ?= python3
PYTEST_ARGS ?= -n auto

export PYTHON

.PHONY: demo test lint bench gpu thorough clean

demo: # the examples on a photograph: what they compile to, whether it is right, how fast it is
	@.ci/setup demo
	@.venv/bin/python examples/photo.py

test:
	@.ci/setup testing,zig,demo,dev
	@.venv/bin/python -m pytest $(PYTEST_ARGS)

lint:
	@.ci/setup testing,zig,demo,dev
	@.venv/bin/python -m ruff check
	@.venv/bin/python -m ruff format --check
	@.venv/bin/python -m mypy
	@.venv/bin/clang-format --dry-run --Werror runtime_c/*.[ch]

bench: # the times that are promised
	@.ci/setup demo
	@.venv/bin/python examples/bench.py

gpu: # the kernels of the tests on a GPU, against numpy and C and under NVIDIA's checkers, and how fast they are
	@.ci/setup testing,zig,demo,dev
	@.venv/bin/python -m tests.gpu --sanitize

thorough: # an hour of mathematics and of pairs of operations, then hours of random programs, which go on where they were stopped
	@.ci/setup testing,zig,demo,dev
	@.venv/bin/python -m tests.thorough --math
	@.venv/bin/python -m tests.thorough --pairs
	@.venv/bin/python -m tests.thorough
	@.venv/bin/python -m tests.thorough --loops

clean:
	rm -rf .venv build dist photo-output .hypothesis .mypy_cache .pytest_cache .ruff_cache
