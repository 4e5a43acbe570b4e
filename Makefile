# Two commands matter: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo demo-software-gpu bench-software-gpu test lint clean

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev]'
	@touch $@

test: lint
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .stoker build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache

bench-software-gpu: $(READY)
	$(BIN)/python benchmarks/software_gpu.py

# The famous example, where a C++ compiler can build the device; elsewhere it says what to install.
demo-software-gpu: $(READY)
	@if $(BIN)/stoker software-gpu --build; then $(BIN)/python examples/software_gpu/one_debug_line.py; \
	else echo "The software GPU example was left out: it needs a C++ compiler."; fi
