# Two commands matter: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready

.PHONY: demo test lint bench bench-overhead bench-guard soak clean

demo: $(READY)
	$(BIN)/python examples/show_demo.py

test: lint
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: bench-overhead bench-guard

bench-overhead: $(BENCH_READY)
	$(BIN)/python benchmarks/overhead.py

bench-guard: $(READY)
	$(BIN)/python benchmarks/guard.py

# A million steps: the record stays small and the process does not grow.
soak: $(READY)
	$(BIN)/python benchmarks/soak.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev]'
	@touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,bench]'
	@touch $@

clean:
	rm -rf $(VENV) .stoker build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
