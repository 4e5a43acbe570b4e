# Two commands matter: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint clean bench-check

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

# Against ruff, flake8 and pylint over the installed sources of Keras and TensorFlow.
bench-check: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench-check]'
	$(BIN)/python benchmarks/check.py

clean:
	rm -rf $(VENV) .stoker build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
