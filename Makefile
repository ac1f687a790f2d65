# The verbs of the project. `make` lists them.
#
# run, test, lint and bench first bring .venv up to requirements.lock, when it changed,
# and need nothing but make and a Python of at least 3.11.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/locked
STAMP := $(VENV)/current
# PYTHON may name an interpreter; otherwise the first that is new enough is taken.
PYTHON ?=
ROOT ?=

# A caller's settings must not redirect the installation or shadow our packages.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV PIP_NO_DEPS
unexport PIP_CONSTRAINT PIP_BUILD_CONSTRAINT PIP_REQUIREMENT PIP_EDITABLE PIP_PRE
unexport PIP_NO_BINARY PIP_ONLY_BINARY PIP_PYTHON PIP_DRY_RUN PIP_IGNORE_INSTALLED

.PHONY: help run test lint format bench clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="..." goes to run, test and bench; ROOT=FOLDER is the store of run;'
	@echo '  PYTHON=PATH is the interpreter that .venv is made with'

run: $(STAMP) ## qualify the built-in system; a second time reuses what has not changed
	@$(BIN)/harness run $(if $(ROOT),--root "$(ROOT)") $(ARGS)

test: $(STAMP) ## run the tests, in three processes
	@$(BIN)/python -m pytest -n 3 $(ARGS)

lint: $(STAMP) ## format check, lint, types, import contracts, SQL
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint warehouse/views

format: $(STAMP) ## rewrite Python and SQL in the project's form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/sqlfluff fix warehouse/views

bench: $(STAMP) ## measure cost of the workflow, reuse, review and memory
	@$(BIN)/python -m tests.bench $(ARGS)

clean: ## remove .venv and caches; the evidence stays
	rm -rf $(VENV) .cache build *.egg-info .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# An interrupted installation leaves no stamp, so the next call starts again.
$(LOCKED): requirements.lock
	@python=''; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	      2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "make: no Python of at least 3.11 was found (looked for python3," \
	    "python3.11 to python3.13); install one or name it: make run PYTHON=/path" >&2; \
	  exit 2; \
	fi; \
	echo "make: creating $(VENV) from requirements.lock (once)" >&2; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input \
	  --require-hashes -r requirements.lock
	@touch $@

$(STAMP): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input \
	  --no-deps --no-build-isolation --editable .
	@touch $@
