# Two commands: `make demo` and `make test`. Both set up .venv from nothing but Python 3.11+ and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test prove warm lint types check wheel-check docs fidelity clean

demo: $(VENV)/.package
	@mkdir -p out
	@$(BIN)/rarevote demo --report out/rail-report.html

# One worker a core, four at most; a file's tests stay together, so that what they share is made once.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile

test: warm
	$(PYTEST) -m "not prove"

# What takes long and rarely breaks: kills, whole benchmarks, gigabytes, the site.
prove: warm
	$(PYTEST) -m prove

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
	$(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/index.html"

# The wheel alone, in an empty environment outside the checkout, must run the demo.
wheel-check: $(VENV)/.development
	$(BIN)/python tests/wheel_check.py

$(VENV)/.package: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rarevote needs Python 3.11 or newer: make PYTHON=python3.12")'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --constraint constraints.txt
	@touch $@

$(VENV)/.development: $(VENV)/.package
	@$(BIN)/python -m pip install --quiet --editable . --group dev --constraint constraints.txt
	@touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
