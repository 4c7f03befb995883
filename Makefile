# Everything runs from a fresh clone: each target sets up .venv first, once.
#   make PYTHON=python3.12 …   chooses the interpreter the environment is made from

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install test test-fast lint format docs quickstart clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## set up .venv (the other targets do it themselves)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "enc needs Python 3.11 or newer, found: $$($(or $(PYTHON),python3) --version 2>&1 | head -n 1)."; \
		echo "Install one and say which: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)"; exit 1; } >&2
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: its modules venv and ensurepip are missing."; \
		echo "On Debian and Ubuntu: sudo apt install python3-venv; or say which other Python to use: make PYTHON=…"; \
		exit 1; } >&2
	@echo "Setting up $(VENV) (once; torch alone is a few hundred megabytes) …" >&2
	@test -x $(RUN)/pip || $(PYTHON) -m venv $(VENV)
	@$(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	@touch $@

test: $(STAMP) ## run all tests, a process for each core
	$(RUN)/python -m pytest --numprocesses logical --dist loadfile

test-fast: $(STAMP) ## run the tests that need no real model
	$(RUN)/python -m pytest --numprocesses logical --dist loadfile -m "not slow"

lint: $(STAMP) ## ruff, mypy and the import contracts
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports

format: $(STAMP) ## rewrite the sources as ruff formats them
	$(RUN)/ruff check --fix-only .
	$(RUN)/ruff format .

docs: $(STAMP) ## bring the lists of options in docs/ up to date
	$(RUN)/python -m commands.option_docs docs

quickstart: $(STAMP) ## a tour on real news articles: fine-tune, sweep, prune, distil, export; ends with a report
	$(RUN)/enc run quickstart --output runs/quickstart

clean: ## remove .venv, caches and built files (runs/ stays)
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
