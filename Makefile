# What a clone can do. `make help` lists it; every target installs what it needs first.
# Everything made here lies in git-ignored folders: .venv, .cache, target/ and the dbt project's own.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := python/constraints.txt
ATTACKED := $(addprefix target/bench/real/,jaffle-shop/target/base dbt_shopify/integration_tests/target/base)
PYPROJECT := python/pyproject.toml
BUNDLE := python/dbt_ripple/pages/bundle/explorer.js
# dbt's own progress and Spark's warnings go to this file; the screen has the answer.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install demo picture test lint lint-python lint-sql unit slow coverage golden spark wheel matrix bench bench-real campaign mutants attack fuzz fuzz-events corpus format tables house explorer explorer-check lock clean

PYTEST := $(BIN)/pytest -c $(PYPROJECT) --rootdir python -q --durations=15
# A file's tests stay together, as many share what their module has built; conftest.py puts the longest first.
TWO_AT_ONCE := -n 2 --dist loadfile --no-loadscope-reorder
NO_SPARK := not spark and not matrix and not campaign
# Ends a recipe's last command: prints how long it took.
TOOK = && echo "make $@: $$SECONDS seconds"

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(VENV)/.installed $(BUNDLE)  ## Install the package and its tools into .venv, pinned by version and hash.

$(VENV)/.installed: $(PYPROJECT) $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dbt-ripple needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1): make PYTHON=..." >&2; exit 2; }
	@echo "installing into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' $(CONSTRAINTS) \
	  | $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(CONSTRAINTS)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e python
	@$(BROWSER)
	@touch $@

# For the tests of pages. Without one they are skipped, and say so.
BROWSER = command -v chromium chromium-browser google-chrome-stable google-chrome > /dev/null \
  || $(BIN)/playwright install --only-shell chromium > /dev/null 2>&1 \
  || echo "no Chromium could be had, so tests of pages will be skipped: install chromium from your distribution" >&2

demo: install  ## The main job, end to end: build a shop, load its lineage, ask it, edit one expression of it.
	@$(BIN)/python integration_tests/demo.py

picture: demo  ## Update the README's picture of the explorer's page.
	cp integration_tests/target/demo/explorer.png docs/explorer.png

test: lint unit slow spark explorer-check wheel  ## Everything CI runs.

lint: install  ## Format, lint, types, the order of the rooms, SQL style.
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint-python lint-sql

lint-python:
	$(BIN)/ruff format --check python
	$(BIN)/ruff format --check --config $(PYPROJECT) integration_tests
	$(BIN)/ruff check python
	$(BIN)/ruff check --config $(PYPROJECT) integration_tests
	$(BIN)/mypy --config-file $(PYPROJECT)
	cd python && ../$(BIN)/lint-imports

lint-sql:
	$(BIN)/sqlfluff lint --disable-progress-bar models analyses tests integration_tests/models integration_tests/twin

unit: install  ## The tests that need neither Spark nor a build by dbt, in a few minutes.
	$(BIN)/pytest -c $(PYPROJECT) --rootdir python python/dbt_ripple -q --doctest-modules
	$(PYTEST) python/tests -m "$(NO_SPARK) and not slow" $(TWO_AT_ONCE) --every-reason $(TOOK)

slow: install  ## The tests by dbt on DuckDB, by browsers, and by many random cases.
	$(PYTEST) python/tests -m "$(NO_SPARK) and slow" $(TWO_AT_ONCE) $(TOOK)

coverage: install  ## Run unit and slow tests, and print which lines they do not reach.
	$(PYTEST) python/tests -m "$(NO_SPARK)" $(TWO_AT_ONCE) --cov=dbt_ripple --cov-report=term:skip-covered $(TOOK)

golden: install  ## Record what a refactoring may not change: fingerprints, edges and answers.
	$(BIN)/python python/tests/golden/golden.py record $(TOOK)

spark: install .cache/tpc/tpcds.json  ## The tests on a real Spark, a real metastore and a real dbt.
	$(PYTEST) python/tests -m "spark and not matrix" $(TWO_AT_ONCE) $(TOOK)

matrix: install  ## The oldest and the newest dbt, other table formats, a real Airflow, Spark and Kafka; writes docs/matrix.md.
	$(BIN)/python python/tests/matrix.py $(TOOK)

# The TPC queries come out of a wheel; their text is not ours and stays out of git.
.cache/tpc/tpcds.json: python/tests/oracle/make_tpc.py
	$(BIN)/python $<

# The code, and the data that it reads: nothing else is in a wheel.
IN_THE_WHEEL := '^(File Name |dbt_ripple-[^/]*dist-info/|dbt_ripple/(.*\.py |py.typed |collector/schemas/|flow/functions/|graph/known_hooks.json |pages/(bundle|templates)/))'

wheel: install  ## Build the wheel and use it alone.
	@rm -rf target/wheel && mkdir -p target/wheel
	$(BIN)/python -m build --quiet --no-isolation --wheel --outdir target/wheel python
	$(BIN)/python -m zipfile -l target/wheel/*.whl | grep 'dist-info/licenses/LICENSE' > /dev/null
	! $(BIN)/python -m zipfile -l target/wheel/*.whl | grep -vE $(IN_THE_WHEEL)
	$(BIN)/uv venv --quiet target/wheel/venv
	$(BIN)/uv pip install --quiet --python target/wheel/venv/bin/python -c $(CONSTRAINTS) target/wheel/*.whl
	target/wheel/venv/bin/dbt-ripple --version
	target/wheel/venv/bin/dbt-ripple explorer --no-cache -o target/wheel/explorer.html --project-dir . \
	  --target-path python/tests/artifacts/fixtures/v12_dbt_1_11

campaign: install  ## Edit, build and test thousands of times; every test that changes must have been selected.
	$(PYTEST) python/tests -m campaign
	for seed in 101 202 303 404; do $(BIN)/python python/tests/campaign/campaign.py --mutants 2500 --seed $$seed --jobs 2; done
	$(BIN)/python python/tests/campaign/campaign.py --mutants 300 --engine spark
	$(BIN)/python python/tests/campaign/definitions.py --copies 500

# COUNT=100 SEED=2 draws others; MAP=--map records anew which tests reach which lines, as the first run does.
mutants: install  ## Make soundness guards wrong, one at a time: at least 95 of 100 are caught by a unit test.
	$(BIN)/python python/tests/mutants.py --count $(or $(COUNT),300) --seed $(or $(SEED),1) $(MAP) $(TOOK)

attack: install  ## 500 hostile and 200 harmless edits of public projects (see bench-real): the gate is fooled by none.
	$(BIN)/python python/tests/campaign/attack.py $(ATTACKED)

fuzz: install  ## Execute 100,000 pairs of queries; if their results differ, their fingerprints must differ.
	$(BIN)/python python/tests/fuzz/fuzz.py --pairs 100000 --jobs 2
	$(BIN)/python python/tests/fuzz/fuzz.py --pairs 2000 --engine spark

fuzz-events: install  ## Send 5,000 fuzzed events to a running collector: its memory, and how long others wait.
	$(BIN)/python python/tests/collector/fuzz_collector.py $(TOOK)

bench: install  ## Measure the analysis against the floor and the peers, and the collector; writes BENCHMARKS.md.
	$(BIN)/python python/bench/run.py --write
	$(BIN)/python python/bench/run_collect.py --events 10000 --write

bench-real: install  ## Measure on public projects whose clones lie in CLONES, and on our shop; writes BENCHMARKS.md.
	$(BIN)/python python/bench/run_real.py $(if $(CLONES),"$(CLONES)") --write $(TOOK)

corpus: install  ## Count how much of the public SQL of 14 dialects is followed; CLONES has clones of sqlfluff and sqlglot.
	$(BIN)/python python/bench/corpus.py "$(CLONES)" $(TOOK)

format: install  ## Format the code.
	$(BIN)/ruff format python
	$(BIN)/ruff format --config $(PYPROJECT) integration_tests
	$(BIN)/ruff check --fix python

house: install  ## Count the lines of code and the modules of each room of the Python package.
	@$(BIN)/python python/tools/house.py

tables: install  ## Write what the dbt package repeats of the columns of the lineage tables.
	$(BIN)/python python/tools/lineage_tables.py

# The script and style sheet of the explorer's page, by the machine's Node, or by the one of a wheel.
$(BUNDLE): $(wildcard python/explorer/src/*) python/explorer/package-lock.json python/explorer/build.mjs | $(VENV)/.installed
	@$(BIN)/python python/explorer/bundle.py --if-stale || echo "the explorer's page was not made: make explorer" >&2

explorer: $(VENV)/.installed  ## Build the script and style sheet of the explorer's page.
	$(BIN)/python python/explorer/bundle.py

explorer-check: install  ## Build the explorer's script and styles twice, and compare them with the built ones.
	$(BIN)/python python/explorer/bundle.py --check

lock: install  ## Compile python/constraints.txt, with hashes, from pyproject.toml.
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes $(PYPROJECT) --all-extras --group $(PYPROJECT):dev --universal --python-version 3.11 \
	  --no-annotate --no-header --no-emit-index-url --no-emit-find-links -o $(CONSTRAINTS)

clean:  ## Remove everything that the other targets made.
	rm -rf $(VENV) .cache target dist integration_tests/target integration_tests/logs integration_tests/dbt_packages
