# Two commands: `make demo` and `make test`. Both set up .venv from nothing but Python 3.11+ and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt

.PHONY: demo test test-lowest test-newest prove prove-all prove-mutants release-check prove-gp prove-live rivals warm lint types check wheel-check docs docs-blocks clean

demo: $(VENV)/.package
	@mkdir -p out
	@$(BIN)/rarevote demo --report out/rail-report.html

# What Python has compiled is kept, whatever the environment says: the tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

# One worker a core, four at most; a file's tests stay together, so that what they share is made once. The order is that
# of tests/conftest.py, which begins with what takes longest.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: warm
	$(PYTEST) -m "not prove"

# The same with the oldest versions of the libraries that pyproject.toml allows, and with whatever is newest today. Each
# has an environment of its own.
test-lowest:
	@mkdir -p .venv-lowest
	@$(PYTHON) tests/lowest.py > .venv-lowest/constraints.txt
	@$(MAKE) test VENV=.venv-lowest CONSTRAINTS=.venv-lowest/constraints.txt

test-newest:
	@$(MAKE) test VENV=.venv-newest CONSTRAINTS=/dev/null

# What takes long and rarely breaks: kills, whole benchmarks, gigabytes, the site.
prove: warm
	$(PYTEST) -m prove

# The battery of docs/robustness.md, hours long: fuzz, properties, faults, kills, workbench, plans, audits. It resumes what
# was stopped and skips what ran with today's code. MINUTES=60 starts no job after an hour, SCALE=0.1 tries a tenth.
prove-all: warm
	$(BIN)/python -m proofs --scale $(or $(SCALE),1) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only "$(ONLY)")

# A seeded sample of changed operators, numbers and conditions, each of which a test should notice; resumable.
prove-mutants: warm
	$(BIN)/python -m proofs.mutants --mutants $(or $(MUTANTS),400) $(if $(MINUTES),--minutes $(MINUTES))

# Before a release: no evidence of an unclean tree, none of the battery older than the code that it is about.
release-check: $(VENV)/.development
	$(BIN)/python -m proofs.release

# The rivals of `rarevote study features`, whose libraries (jax, cleanlab: 400 MB) nothing else needs.
prove-gp:
	@$(MAKE) --no-print-directory rivals VENV=.venv-gp

rivals: $(VENV)/.development
	@test -e $(VENV)/.rivals || $(BIN)/python -m pip install --quiet --group rivals --constraint $(CONSTRAINTS)
	@touch $(VENV)/.rivals
	RAREVOTE_REQUIRE_RIVALS=1 $(BIN)/python -m pytest tests/study/rivals

# A real Label Studio from the package index, in an environment of its own; at most 15 minutes, not part of .ci/run.
prove-live: $(VENV)/.development
	$(BIN)/python -m proofs.live

# Compiled once and kept on disk, instead of by each worker for itself.
warm: $(VENV)/.development
	@$(BIN)/python -m tests.warm

lint: $(VENV)/.development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.development
	$(BIN)/mypy

check: test prove lint types wheel-check

# The documentation as a site, in site/index.html.
docs: $(VENV)/.development
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is in site/index.html"

# What code writes in the pages: tables of figures, lists of methods, examples of errors (tests/docs/test_blocks.py).
docs-blocks: $(VENV)/.development
	$(BIN)/python -m cogapp -r $$(grep -rl '\[\[\[cog ' docs --include='*.md')

# The wheel alone, in an empty environment outside the checkout, must run the demo.
wheel-check: $(VENV)/.development
	$(BIN)/python tests/wheel_check.py

$(VENV)/.package: pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rarevote needs Python 3.11 or newer: make PYTHON=python3.12")'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --constraint $(CONSTRAINTS)
	@touch $@

$(VENV)/.development: $(VENV)/.package
	@$(BIN)/python -m pip install --quiet --editable . --group dev --constraint $(CONSTRAINTS)
	@touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-gp site dist build .pytest_cache .mypy_cache .ruff_cache
