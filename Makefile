# `make` or `make help` lists what there is. VENV, PYTHON and WORKERS may be given on the line:
#   make test PYTHON=python3.12 WORKERS=8
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BENCH ?=
GOLDEN ?=
DATA ?= data
MODEL ?=
BIN := $(VENV)/bin
READY := $(VENV)/.installed
PINS := requirements/dev.txt

# Two workers with two BLAS threads each spin-wait for one another: one thread a worker.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help demo test gallery golden site laws check lint types imports pages bench docs pins clean fuzz faults model viewer

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## from a fresh clone: audits of synthetic people, one from pixels, and where the reports are
	$(BIN)/isolux demo --out demo --overwrite
	$(BIN)/isolux demo --pixels --out demo-pixels --overwrite
	@echo "Open $(CURDIR)/demo/report.html and $(CURDIR)/demo-pixels/run/report.html"

model: $(READY) ## train the demo's network again (minutes; needs PyTorch); MODEL=--check compares
	$(BIN)/python -m scripts.train_masks $(MODEL)

test: $(READY) ## the whole suite, docstrings' examples included
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

golden: $(READY) ## the same commands as ever give the same tables and words (GOLDEN=--write: anew)
	$(BIN)/python -m scripts.golden build/golden
	$(BIN)/python -m scripts.golden --digest build/golden $(GOLDEN)

gallery: $(READY) ## audits of real models, into docs/gallery.md (DATA=FOLDER: data that you have)
	$(BIN)/python -m scripts.gallery $(DATA)

laws: $(READY) ## every simulation at full size (long), its figures into tests/laws/figures/
	ISOLUX_LAWS=full $(BIN)/python -m pytest tests/laws -n $(WORKERS) --dist worksteal

fuzz: $(READY) ## a million damaged inputs to every reader (an hour; FUZZ=N: N of them)
	FUZZ=$${FUZZ:-1000000} $(BIN)/python -m pytest -s tests/faults/test_fuzz.py

faults: $(READY) ## 1,000 killed commands, full disks, limits of memory, two writers (long)
	ISOLUX_FAULTS=whole $(BIN)/python -m pytest -s tests/faults

check: lint types imports pages ## style, types, who imports whom, the pages: what CI asks first

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m scripts.names

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

pages: $(READY)
	$(BIN)/python -m pytest tests/docs/test_pages.py

bench: $(READY) ## each benchmark beside its peer, into benchmarks/RESULTS.md (BENCH=--quick: a try)
	$(BIN)/python -m benchmarks $(BENCH)

viewer: ## build the page of `isolux view` from viewer/ (needs npm); commit what changes
	cd viewer && npm ci --ignore-scripts --no-audit --no-fund && npm run build

site: $(READY) ## the documentation as a site, into site/: built, then its links, search and axe-core asked
	rm -rf site
	$(BIN)/python -m scripts.site site
	ISOLUX_SITE=$(CURDIR)/site $(BIN)/python -m pytest tests/site

docs: $(READY) ## the pages' links and words, and every example in them and in docstrings
	$(BIN)/python -m pytest tests/docs src packages/curate/src worlds/src

pins: $(READY) ## write requirements/ anew from the ranges in pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --group dev --extra all --universal --python-version 3.11 \
	  --generate-hashes --upgrade --quiet --custom-compile-command "make pins" --output-file $(PINS)
	$(BIN)/uv pip compile pyproject.toml --constraint $(PINS) --universal --python-version 3.11 \
	  --generate-hashes --quiet --custom-compile-command "make pins" --output-file requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --extra ray --constraint $(PINS) --universal --python-version 3.11 \
	  --generate-hashes --quiet --custom-compile-command "make pins" --output-file requirements/ray.txt

clean: ## remove the environment and every cache (not your runs)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src packages worlds tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +

# Made once, and again only when the pins or the project file change. `--no-build-isolation`:
# the build tool is pinned too, so nothing is installed whose hash is not in the file.
$(READY): $(PINS) pyproject.toml packages/curate/pyproject.toml worlds/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isolux needs Python 3.11 or newer: make PYTHON=python3.11")'
	@echo "Setting up $(VENV) (about a minute, once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(PINS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e packages/curate -e worlds
	@touch $@
