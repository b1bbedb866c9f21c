# `make run` and `make test` are all a fresh machine needs. `make help` lists the other targets.

# The first Python that is new enough and can make a virtual environment. A distribution's own
# build is often faster than one compiled by hand, so it is tried first.
PYTHON ?= $(shell for p in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, ensurepip; assert sys.version_info >= (3, 11)' 2>/dev/null && echo $$p && break; done)
PEERS ?= ../shared/peers
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Builds with what BUILD_TOOLS has installed, and compiles nothing.
INSTALL := BARNABAS_COMPILE= $(PIP) install --no-build-isolation --use-pep517 --editable

# What `make run` serves on, and where its data is.
PORT ?= 9092
DATA ?= data
REGISTRY_PORT ?=
METRICS_PORT ?=

# What is compiled. Only pipelines load the modules of `columns`: `make run` does without them.
COMPILED := $(shell grep -rl --include='_*.py' '^\# cython:' src)
RUNTIME := $(filter-out src/barnabas/columns/%,$(COMPILED))
SHARED := src/barnabas/_cyutility.*.so
DECLARATIONS := $(shell find src -name '_*.pxd')
DEV := .venv/.dev .venv/.compiled

.PHONY: help run test explore spark demo java chaos chaos-spark simulate check format conformance bench wheel clean

run: .venv/.runtime-compiled  ## a broker and a schema registry, until Ctrl-C
	$(BIN)/barnabas up --port $(PORT) --dir $(DATA) $(REGISTRY_PORT:%=--registry-port %) $(METRICS_PORT:%=--metrics-port %)

test: java $(DEV)  ## the whole test suite
	$(BIN)/python -m pytest -m "not peer" --numprocesses 2 --dist loadfile

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/    make \1 \t\2/p' $(MAKEFILE_LIST) | expand -t 24

# The laws with other examples every time, where `make test` always takes the same.
explore: $(DEV)  ## the test suite with other random examples every time
	$(BIN)/python -m pytest -m "not peer" --hypothesis-profile exploring --numprocesses 2 --dist loadfile

spark: java .venv/.spark .venv/.compiled  ## install Spark, and compile what pipelines load

# Orders, Avro, Spark: a whole pipeline, live in the terminal for a minute.
demo: java $(DEV)  ## a complete pipeline on Spark
	$(BIN)/python -m examples.orders

java:
	@test -x "$$JAVA_HOME/bin/java" || command -v java >/dev/null || { echo "Pipelines on Spark, and their tests, need Java 17 or later (on Debian: apt-get install openjdk-17-jre-headless)."; exit 1; }

# Three nodes under faults for minutes; the seed decides what happens. With SECURE=1, all listeners
# have SASL_SSL, and ACLs allow each client only what it needs.
SEED ?= 1
MINUTES ?= 10
CLIENTS ?= confluent-kafka
SECURE ?=
chaos: $(DEV)  ## kill, pause and isolate three nodes under load, for MINUTES
	$(BIN)/python -m tests.cluster.chaos --seed $(SEED) --minutes $(MINUTES) --clients $(CLIENTS) $(SECURE:%=--secure)

# Pipelines and Connect workers whose processes are killed, for half of the minutes each; each row
# must be there once.
HALF = $(shell $(BIN)/python -c 'print($(MINUTES) / 2)')
chaos-spark: $(DEV)  ## kill the processes of pipelines and connectors on Spark, for MINUTES
	$(BIN)/python -m tests.spark.exactly_once --seed $(SEED) --minutes $(HALF)
	$(BIN)/python -m tests.connect.chaos --seed $(SEED) --minutes $(HALF)

# A whole cluster in one process, on a simulated clock, network and disk. A seed is one run of it;
# with BUG=NAME, that planted bug must be found.
SIMULATION ?= cluster
SEEDS ?= 1000
FIRST ?= 1
BUG ?=
simulate: $(DEV)  ## run SEEDS seeds of a simulated cluster with faults, on all cores
	$(BIN)/python -m tests.simulation $(SIMULATION) --seeds $(SEEDS) --first $(FIRST) $(BUG:%=--bug %)

check: .venv/.dev  ## format, lint, types, imports
	$(BIN)/ruff format --check src tests bench setup.py
	$(BIN)/ruff check src tests bench setup.py
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev  ## format the code
	$(BIN)/ruff format src tests bench setup.py
	$(BIN)/ruff check --fix src tests bench setup.py

conformance: $(DEV) peers  ## Kafka's tools with this broker, Kafka's files in this log
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m pytest -m peer tests

bench: $(DEV) peers  ## side by side with Kafka, as ratios
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench.libraries
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench.spark
	$(BIN)/python -m bench.columns

.PHONY: peers
peers:
	@test -x $(PEERS)/kafka || { echo "The real Kafka is run through $(PEERS)/kafka, which is not there: set PEERS=DIR."; exit 1; }
	@command -v java >/dev/null || { echo "The real Kafka needs Java 17 or later on the PATH."; exit 1; }
	@$(PEERS)/kafka install >/dev/null

# What a release publishes. `auditwheel` names the oldest Linux that it runs on.
DIST ?= dist
wheel: .venv/.release .venv/.compiled  ## a wheel in DIST, which installs without a compiler
	@ls $(SHARED) >/dev/null 2>&1 || { echo "A wheel needs a C compiler, and the headers of Python."; exit 1; }
	@echo "Building a wheel with $(words $(COMPILED)) compiled modules: about 10 s."
	@rm -rf build/wheel && find build/lib.* -type f ! -name '*.so' -delete  # left by the last one
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir build/wheel .
	@PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir $(DIST) build/wheel/barnabas-*.whl 2>build/auditwheel.log || { cat build/auditwheel.log; exit 1; }
	@ls $(DIST)/barnabas-*.whl

# What setup.py needs to compile.
BUILD_TOOLS = $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')

# The broker, its clients, the registry and their commands.
.venv/.runtime: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Barnabas needs Python 3.11 or later with venv (on Debian: apt-get install python3-venv)."; exit 1; }
	@echo "Installing the broker, the schema registry and their commands into .venv: once, 30 MB of downloads, about 20 s."
	@set -e; started=$$(date +%s); \
	test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv; \
	$(PIP) install $(BUILD_TOOLS); \
	$(INSTALL) '.[registry]'; \
	$(BIN)/python -m compileall -q src; \
	echo "Installed in $$(($$(date +%s) - started)) s."
	@touch $@

# Spark, for pipelines.
.venv/.spark: pyproject.toml | .venv/.runtime
	@echo "Installing Spark into .venv: once, 400 MB of downloads, a minute or more."
	@set -e; started=$$(date +%s); \
	$(INSTALL) '.[spark]'; \
	echo "Installed in $$(($$(date +%s) - started)) s."
	@touch $@

# Spark, other clients, and the tools for tests and checks.
.venv/.dev: pyproject.toml | .venv/.runtime
	@echo "Installing Spark and the tools for tests into .venv: once, 400 MB of downloads, a minute or more."
	@set -e; started=$$(date +%s); \
	$(INSTALL) '.[dev]'; \
	echo "Installed in $$(($$(date +%s) - started)) s."
	@touch $@

# The tools for a wheel.
.venv/.release: pyproject.toml | .venv/.runtime
	@$(INSTALL) '.[release]'
	@touch $@

# Only what changed is compiled. Without a compiler there is no stamp: the next run tries again.
COMPILE = $(BIN)/python setup.py --quiet build_ext --inplace && { ! ls $(SHARED) >/dev/null 2>&1 || touch $@; }

.venv/.runtime-compiled: setup.py $(RUNTIME) $(DECLARATIONS) | .venv/.runtime
	@BARNABAS_COMPILE="$(RUNTIME)" $(COMPILE)

.venv/.compiled: setup.py $(COMPILED) $(DECLARATIONS) | .venv/.runtime
	@$(COMPILE)

clean:  ## remove what was installed, compiled and built, and ./data
	rm -rf .venv build dist data
	find src -name '_*.so' -delete
