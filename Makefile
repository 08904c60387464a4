# All commands of the project. Only python3 (3.11 or newer) and make are needed.
#
#   make demo    explain ten digits, from a fresh clone        make test    everything that CI runs
#   make check   lint, types, tests of the rooms that changed: under a minute, while you work
#   make lint    ruff, format, import directions               make types   mypy --strict
#   make bench   the benchmarks; QUICK=1: in minutes           make docs    the site, strict, into site/
#   make lock    recompile requirements/*.txt                  make clean   remove built files
#   make fuzz    20,000 calls with random arguments            make chaos   1,700 kills: methods, tasks, commands
#   make hosts   a Dask cluster of hosts whose links go down (needs root and iproute2)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

VENV := .venv
PY := $(VENV)/bin/python
BASE := $(VENV)/.installed-base
FULL := $(VENV)/.installed-test
KSERVE := .venv-kserve/.installed

# pip reads the environment: keep mirrors and certificates, drop settings that would install elsewhere.
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_NO_DEPS PIP_CONSTRAINT PIP_REQUIREMENT PIP_DRY_RUN PIP_REQUIRE_HASHES
unexport PIP_NO_BUILD_ISOLATION PIP_IGNORE_INSTALLED PIP_PYTHON PIP_EDITABLE PIP_PRE PIP_NO_BINARY PIP_UPGRADE
unexport PYTHONPATH PYTHONHOME PYTHONWARNINGS VIRTUAL_ENV
# Without stored bytecode each of the many processes of the tests would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
export PIP_USER := 0
export PIP_ROOT_USER_ACTION := ignore
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP := $(PY) -m pip install -qq

# One more than the cores: many tests wait for a child process.
WORKERS ?= 3

# What `make check` compares with.
SINCE ?= main

.PHONY: help demo test check lint types unit bench fuzz chaos hosts docs lock clean

help:
	@sed -n '3,9s/^# *//p' Makefile

demo: $(BASE)
	@$(PY) examples/demo.py

# mypy runs beside the tests; its output is shown at the end.
test: lint
	@said=$$(mktemp); $(MAKE) types >"$$said" 2>&1 & types=$$!; \
	$(MAKE) unit && tested=0 || tested=$$?; \
	wait $$types && typed=0 || typed=$$?; \
	cat "$$said"; rm -f "$$said"; exit $$((tested || typed))

# The tests of what differs from SINCE, committed or not. All of mypy: with its cache it takes seconds. Left to
# `make test`: the model server, which has an environment of its own.
check: export OMP_NUM_THREADS := 1
check: lint types
	@tests=$$($(PY) -m tests.support.changed_rooms $(SINCE)); \
	if [ -z "$$tests" ]; then echo "no room differs from $(SINCE): no tests to run"; exit 0; fi; \
	echo "testing" $$tests; \
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --ignore=tests/classifiers/test_kserve.py \
	    --ignore=tests/serve/test_kserve_explainer.py $$tests

lint: $(FULL)
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(VENV)/bin/lint-imports

types: $(FULL)
	$(PY) -m mypy

# One thread per process: the pytest workers already use all cores.
unit: export OMP_NUM_THREADS := 1
unit: $(FULL) $(KSERVE)
	@$(PY) -m tests.support.chromium
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --cov --cov-report=
	$(PY) -m tests.support.coverage_rooms

bench: $(FULL)
	@for benchmark in benchmarks/[a-z]*.py; do \
	    quick=; if [ -n "$(QUICK)" ] && grep -q -e --quick "$$benchmark"; then quick=--quick; fi; \
	    echo "== $$benchmark $$quick"; $(PY) "$$benchmark" $$quick; done
	@$(if $(QUICK),,$(PY) benchmarks/kit/page.py)

fuzz: $(FULL)
	ZOMIRROR_FUZZ=10000 $(PY) -m pytest -q tests/project/test_fuzz.py tests/project/test_fuzz_objects.py --timeout=3600

chaos: $(FULL)
	$(PY) benchmarks/chaos.py

# The link of a worker's host is down for 60 s, that of the scheduler's for 10 s. Skipped, with the reason, where network
# namespaces are refused.
hosts: $(FULL)
	ZOMIRROR_HOSTS=60,10 $(PY) -m pytest -q -rs tests/parallel/test_hosts.py --timeout=1200

docs: $(FULL)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

# --- installation: one stamp per lock file, so that only a changed lock installs again ----------------------

# Use the interpreter named by PYTHON, else the first one that is new enough.
define FIND_PYTHON
for python in $${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do \
    if command -v "$$python" >/dev/null && "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; \
    then found="$$python"; break; fi; \
done; \
if [ -z "$${found:-}" ]; then \
    echo "zomirror needs Python 3.11 or newer, and python3 here is $$(python3 --version 2>/dev/null || echo missing)." \
         "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; \
fi
endef

$(PY):
	@$(FIND_PYTHON); \
	echo "building $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV) || { rm -rf $(VENV); \
	    echo "python3 cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv" >&2; exit 1; }

# If building the environment was interrupted, it has no pip.
WITH_PIP := $(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip >/dev/null

# A lock names every package, so pip does not resolve dependencies (--no-deps): an old pip would add an extra that the
# lock leaves out (coverage[toml]) at its newest version, which has no hash. `pip check` verifies the result.
LOCKED := --no-deps --require-hashes -r

# Files that make the package be installed (and compiled) again when they change.
BUILT := pyproject.toml hatch_build.py src/zomirror/numerics/_kernels.c

$(BASE): requirements/base.txt $(BUILT) | $(PY)
	@echo "installing requirements/base.txt"
	@$(WITH_PIP)
	@$(PIP) $(LOCKED) requirements/base.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(FULL): requirements/test.txt requirements/torch.in $(BUILT) | $(PY)
	@echo "installing requirements/test.txt and requirements/torch.in: takes minutes, once"
	@$(WITH_PIP)
	@$(PIP) $(LOCKED) requirements/test.txt
	@$(PIP) --requirement requirements/torch.in
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(PY) -m pip check
	@touch $(BASE) $@

# KServe, a real model server for the tests, and this tree beside it for `zomirror serve`. Its pins conflict with those
# of our tests, so it has its own environment; it needs a Python before 3.14.
$(KSERVE): requirements/kserve.txt
	@for python in $${PYTHON:-} python3 python3.13 python3.12 python3.11; do \
	    if command -v "$$python" >/dev/null && "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))'; \
	    then found="$$python"; break; fi; \
	done; \
	[ -n "$${found:-}" ] || { echo "the model server of the tests needs Python 3.11, 3.12 or 3.13:" \
	    "install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	echo "installing requirements/kserve.txt into .venv-kserve: a minute or two, once"; \
	"$$found" -m venv --clear .venv-kserve
	@.venv-kserve/bin/python -m pip install -qq $(LOCKED) requirements/kserve.txt
	@.venv-kserve/bin/python -m pip check
	@echo '$(CURDIR)/src' > "$$(.venv-kserve/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zomirror.pth"
	@touch $@

# --- lock files: hashes of every file of the public index, and no address of a mirror -------------------------

# Ignore local wheel folders and extra indexes, so that the hashes hold on every machine.
COMPILE := env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND='make lock' \
    $(PY) -m piptools compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

lock: $(FULL)
	$(COMPILE) --build-deps-for=editable --output-file=requirements/base.txt pyproject.toml
	$(COMPILE) --extra=dev --extra=sklearn --extra=tables --extra=images --extra=dask --extra=studio --extra=docs --constraint=requirements/base.txt \
	    --output-file=requirements/test.txt pyproject.toml requirements/torch-needs.in requirements/frames.in
	$(COMPILE) --output-file=requirements/kserve.txt requirements/kserve.in

clean:
	rm -rf build dist site out .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
