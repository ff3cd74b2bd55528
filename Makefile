# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need
# in .venv, from git, make and Python >= 3.11 with venv.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
TESTS ?= tests

.PHONY: help demo test test-ordinary-user escape check format bench clean

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 22

$(VENV)/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "toolcell needs Python 3.11 or later; install it, or name" \
		"one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module;" \
		"on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed  ## Run a batch of calls that a model might make, hostile ones too
	@rm -rf $(DEMO) && mkdir -p $(dir $(DEMO)) && cp -R examples/demo/project $(DEMO)
	@TOOLCELL_STATE_DIR=build/state $(BIN)/toolcell batch examples/demo/calls.jsonl --table \
		--policy examples/demo/policy.toml --workspace $(DEMO) || test $$? -eq 1

# The tests that need no cell go while an ordinary user attacks cells: they do not disturb each other.
test: $(VENV)/installed-dev  ## Run the tests; as root, the isolation tests as an ordinary user too
	@if [ "$$(id -u)" != 0 ]; then exec $(BIN)/python -m pytest $(TESTS); fi; mkdir -p build; \
	$(BIN)/python -m pytest $(TESTS) -m isolation; code=$$?; \
	$(BIN)/python tests/as_ordinary_user.py > build/ordinary-user.txt 2>&1 & other=$$!; \
	trap 'kill $$other' INT TERM; $(BIN)/python -m pytest $(TESTS) -m 'not isolation' || code=1; \
	wait $$other || code=1; cat build/ordinary-user.txt; exit $$code

test-ordinary-user: $(VENV)/installed-dev  ## As root: run the isolation tests as an ordinary user
	$(BIN)/python tests/as_ordinary_user.py

# The options are in the environment because the tests that are run again, as another user,
# are chosen by another make.
escape: export TOOLCELL_MUST_ISOLATE := 1
escape: export PYTEST_ADDOPTS := -p tests.escape.report --attacks $(PYTEST_ADDOPTS)
escape: $(VENV)/installed-dev  ## Attack the cell on each rung and count what held; as root, twice
	$(BIN)/python -m pytest -q $(TESTS); code=$$?; \
	if [ "$$(id -u)" = 0 ]; then $(BIN)/python tests/as_ordinary_user.py || code=1; fi; exit $$code

check: $(VENV)/installed-dev  ## Lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## Rewrite the code in its one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-dev  ## Measure, beside a bare subprocess, in one run
	$(BIN)/python -m benchmarks.calls

clean:  ## Remove what the other targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
