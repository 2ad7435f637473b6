# Everything runs in .venv, which `make setup` fills; the stamp makes the second call free.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test check format lint types overhead clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data,demo,dev]'
	touch $(STAMP)

demo: setup
	$(BIN)/onnxproof demo

test: setup
	$(BIN)/python -m pytest -n 2

format: setup
	$(BIN)/ruff format .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

check: lint types test

overhead: setup
	$(BIN)/python -m benchmarks.overhead

clean:
	rm -rf .venv onnxproof-out
