# `make run` and `make test` are all a fresh machine needs.

# The first Python that is new enough, can make a virtual environment and has its C headers;
# a distribution's own build is often faster than one compiled by hand, so it is tried first.
PYTHON ?= $(shell for p in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, ensurepip; assert sys.version_info >= (3, 11)' 2>/dev/null && echo $$p && break; done)
PEERS ?= ../shared/peers
BIN := .venv/bin
PORT ?= 9092
DATA ?= data
# What is compiled at install: a change in one of them installs anew.
COMPILED := $(shell grep -rl --include='_*.py' '^\# cython:' src)

.PHONY: run test explore demo java chaos chaos-spark check format conformance bench clean

run: .venv/.installed
	$(BIN)/barnabas up --port $(PORT) --dir $(DATA)

test: java .venv/.installed
	$(BIN)/python -m pytest -m "not peer" --numprocesses 2 --dist loadfile

# The laws with other examples every time, where `make test` always takes the same.
explore: .venv/.installed
	$(BIN)/python -m pytest -m "not peer" --hypothesis-profile exploring --numprocesses 2 --dist loadfile

# Orders, Avro, Spark: a whole pipeline, live in the terminal for a minute.
demo: java .venv/.installed
	$(BIN)/python -m examples.orders

java:
	@test -x "$$JAVA_HOME/bin/java" || command -v java >/dev/null || { echo "Pipelines on Spark, and their tests, need Java 17 or later (on Debian: apt-get install openjdk-17-jre-headless)."; exit 1; }

# Three nodes under faults for minutes; the seed decides what happens.
SEED ?= 1
MINUTES ?= 10
CLIENTS ?= confluent-kafka
chaos: .venv/.installed
	$(BIN)/python -m tests.cluster.chaos --seed $(SEED) --minutes $(MINUTES) --clients $(CLIENTS)

# A pipeline on Spark whose processes are killed for minutes; each row must be there once.
chaos-spark: .venv/.installed
	$(BIN)/python -m tests.spark.exactly_once --seed $(SEED) --minutes $(MINUTES)

check: .venv/.installed
	$(BIN)/ruff format --check src tests bench setup.py
	$(BIN)/ruff check src tests bench setup.py
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed
	$(BIN)/ruff format src tests bench setup.py
	$(BIN)/ruff check --fix src tests bench setup.py

conformance: .venv/.installed peers
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m pytest -m peer tests

bench: .venv/.installed peers
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench.libraries
	PEERS=$(abspath $(PEERS)) $(BIN)/python -m bench.spark
	$(BIN)/python -m bench.columns

.PHONY: peers
peers:
	@test -x $(PEERS)/kafka || { echo "The real Kafka is run through $(PEERS)/kafka, which is not there: set PEERS=DIR."; exit 1; }
	@command -v java >/dev/null || { echo "The real Kafka needs Java 17 or later on the PATH."; exit 1; }
	@$(PEERS)/kafka install >/dev/null

.venv/.installed: pyproject.toml setup.py $(COMPILED)
	@test -n "$(PYTHON)" || { echo "Barnabas needs Python 3.11 or later with venv (on Debian: apt-get install python3-venv)."; exit 1; }
	@command -v cc >/dev/null && test -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" || echo "No C compiler, or no headers of Python (on Debian: apt-get install gcc python3-dev): the loops over records will run as plain Python, more slowly."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m compileall -q src
	@touch $@

clean:
	rm -rf .venv build data
