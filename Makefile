# `make help` lists what there is. Everything installs into .venv beside this file.

PYTHON ?= python3
VENV ?= .venv
TESTS ?= tests
# Arguments for pytest, run_sender and the benchmark: make test ARGS="-k gate"
ARGS ?=
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

bin := $(VENV)/bin
pip := $(bin)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
run := DEBUG=$${DEBUG:-true} $(bin)/python manage.py
pytest := $(bin)/python -m pytest

.PHONY: help
help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A stamp is newer than what it was installed from; an environment whose interpreter is gone is
# made anew, and its stamps with it.
.PHONY: $(VENV)/.python
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: Python 3.11 or newer is needed; PYTHON=... names one." >&2; exit 1; }
	@$(bin)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing into $(VENV) ..."
	@$(pip) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.python
	@echo "installing into $(VENV) ..."
	@$(pip) --editable '.[dev]'
	@touch $(VENV)/.demo $@

.PHONY: install
install: $(VENV)/.dev ## the environment for development

.PHONY: demo
demo: $(VENV)/.demo ## a campaign to 1,000 people, a sender killed on the way; DEMO_SERVE=0: end after it
	@$(run) demo $(ARGS)

.PHONY: run
run: $(VENV)/.demo ## the site on port 8000, for development
	@$(run) migrate --verbosity 0
	@$(run) runserver $(ARGS)

.PHONY: sender
sender: $(VENV)/.demo ## a sender, until it is stopped; ARGS="--drain --lanes 4"
	@$(run) migrate --verbosity 0
	@$(run) run_sender $(ARGS)

.PHONY: db-stop
db-stop: ## end the embedded PostgreSQL; the next command starts it again
	@if [ -d var/postgres ] && [ -x $(bin)/python ]; then $(bin)/python -m config.embedded stop; fi

# Four workers, since a quarter of the time is waiting for real processes and clocks. Byte code is
# kept, whatever the shell says: each worker would compile all the tests.
.PHONY: test
test: $(VENV)/.dev ## the tests, with this machine's python3
	PYTHONDONTWRITEBYTECODE= $(pytest) -n 4 --dist worksteal $(ARGS) $(TESTS)

.PHONY: test-all
test-all: ## the tests with every supported Python that runs here
	@.ci/pythons | { found=; while read -r version path; do \
		found=yes; \
		echo "== Python $$version ($$path)"; \
		$(MAKE) --no-print-directory test PYTHON="$$path" VENV=".venv-$$version" </dev/null; \
	done; test -n "$$found" || { echo "error: no supported Python runs here." >&2; exit 1; }; }

.PHONY: check
check: $(VENV)/.dev ## style, types, missing migrations
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(run) check --fail-level WARNING
	$(run) makemigrations --check --dry-run

.PHONY: soak
soak: $(VENV)/.dev ## the tests that run for long
	$(pytest) -m soak --timeout 0 $(ARGS) $(TESTS)

.PHONY: bench
bench: $(VENV)/.dev ## the benchmarks, with other senders beside us; ARGS=--quick: just to see them run
	$(bin)/python -m benchmarks $(ARGS)

.PHONY: format
format: $(VENV)/.dev ## put the code into shape
	$(bin)/ruff check --fix .
	$(bin)/ruff format .

.PHONY: clean
clean: db-stop ## remove the environments and all that commands made, the database too
	rm -rf .venv .venv-3.* var build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
