# Two commands matter: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench-ready
DOCS_VENV := .venv-docs
RELEASE_VENV := .venv-release
PEERS_VENV := .venv-peers
SERVE_PEERS_VENV := .venv-serve-peers
ENGINES_VENV := .venv-engines

# Packages of the system are installed where that was asked for, and on CI. Elsewhere a line says what goes without them.
# $(call need,a test that they are there,the packages,what is skipped)
INSTALLS := $(filter true 1,$(CI) $(STOKER_INSTALL))
define need
	@if $(1); then :; \
	elif [ -n "$(INSTALLS)" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && \
	DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $(2) >/dev/null; then :; \
	else echo "Skipped: $(3). Install $(2), or run as root: make system-packages"; fi
endef

.PHONY: coverage news dist constraints demo demo-ledger demo-fit demo-software-gpu demo-recipe test test-slow retest system-packages test-fast memory-programs lint docs clean soak \
	soak-run soak-resume soak-store soak-cases soak-serve soak-package soak-engines soak-workers soak-bucket \
	soak-random soak-models soak-pipelines soak-faults soak-tables soak-bundles bench-examples screenshots browser postgresql engine-tools mlflow image-tools \
	bench bench-overhead bench-check bench-guard bench-software-gpu bench-memory bench-memory-changes bench-page bench-whatif bench-fit bench-many bench-checkpoint \
	bench-short-jobs bench-goodput bench-restart peers peers-serving serving-clients protos bench-data bench-tune soak-data bench-storage bench-store bench-serve \
	bench-loadgen bench-rollout bench-quantize bench-workers bench-recipes bench-keel recipe-figures fortunes

# Without the lines that TensorFlow prints about itself.
QUIETLY := $(BIN)/python tools/quietly.py

demo: demo-ledger demo-fit demo-software-gpu demo-recipe

# A stalled training program, its ledger, its repair.
demo-ledger: $(READY)
	@$(QUIETLY) $(BIN)/python examples/show_demo.py

# One line changed: the same training with Keras' fit and with stoker.fit.
demo-fit: $(READY)
	@$(QUIETLY) $(BIN)/python examples/one_line.py

# What one debug line does to a GPU, where a C++ compiler can build the device; elsewhere it says what to install.
demo-software-gpu: $(READY)
	@if $(BIN)/stoker software-gpu --build; then $(QUIETLY) $(BIN)/python examples/software_gpu/one_debug_line.py; \
	else echo "The software GPU example was left out: it needs a C++ compiler."; fi

# A table becomes a model that is asked over HTTP.
demo-recipe: $(READY)
	@$(QUIETLY) $(BIN)/python examples/show_recipe.py

# As many processes as the machine has room for.
PYTEST := $(BIN)/python -m pytest -n auto

# All tests but the slow ones: under a quarter of an hour on two idle cores, installation included.
# Compiled first, and compiled code is kept: the tests start hundreds of processes that import Stoker.
unexport PYTHONDONTWRITEBYTECODE
test: $(READY) browser postgresql
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint mlflow
	$(BIN)/python -m compileall -q src tests
	$(PYTEST) -m "not slow"

# The tests that run programs for many seconds: kills, jobs of several workers, lessons. CI runs them after `make test`.
test-slow: $(READY) browser postgresql mlflow
	$(PYTEST) -m slow

# What failed in the last run, once more and one after another. Fails if nothing had: then it was not a test that failed.
retest: $(READY)
	@echo "Running once more what failed. What passes now is flaky: mend it."
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

# What needs no TensorFlow: two to three minutes on two cores.
test-fast: $(READY)
	$(PYTEST) -m fast

# The memory books of ten programs on the software GPU; `make test-slow` runs two of them.
memory-programs: $(READY)
	STOKER_MEMORY_PROGRAMS=all $(BIN)/python -m pytest tests/doctor/memory/test_programs.py

# What the tests and benchmarks need of Debian or Ubuntu; as root.
system-packages:
	@$(MAKE) --no-print-directory STOKER_INSTALL=1 browser postgresql fortunes engine-tools

# Headless Chromium for the tests of the page.
browser:
	$(call need,command -v chromium >/dev/null && command -v chromedriver >/dev/null,chromium chromium-driver,the browser tests)

# PostgreSQL's programs for the tests of the store.
postgresql:
	$(call need,command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1,postgresql,the tests on PostgreSQL)

# Two schedulers of jobs.
engine-tools:
	$(call need,command -v slurmd >/dev/null && command -v sshd >/dev/null,openssh-server slurm-wlm munge,jobs by ssh and on SLURM)

# A real MLflow for the tests of import and export, in an environment of its own; without it they are skipped.
mlflow:
	@if $(PEERS_VENV)/bin/python -c 'import mlflow' 2>/dev/null; then :; \
	elif $(PYTHON) -m venv $(PEERS_VENV) && $(PEERS_VENV)/bin/python -m pip install --quiet mlflow; then :; \
	else echo "The tests with MLflow are skipped: it could not be installed."; fi

# The pictures in docs/images, from a real run of the demo.
screenshots: $(READY) browser
	PYTHONPATH=. $(BIN)/python tools/make_screenshots.py $(ONLY)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# Which lines the tests run; programs that the tests start are not counted. For CI: the tests take longer.
coverage: $(READY) browser postgresql
	$(BIN)/python -m pip install --quiet pytest-cov
	$(PYTEST) --cov=stoker --cov-report=xml --cov-report=term:skip-covered

# What the next version's section of the changelog will say; `towncrier build` writes it (CONTRIBUTING.md, Releases).
news: $(RELEASE_VENV)/.ready
	$(RELEASE_VENV)/bin/towncrier build --draft --version next

# The wheel and the source archive, checked.
dist: $(RELEASE_VENV)/.ready
	rm -rf dist
	$(RELEASE_VENV)/bin/python -m build
	$(RELEASE_VENV)/bin/twine check --strict dist/*

# The versions that CI is pinned to, from this machine's .venv (Python 3.11).
constraints: $(READY) $(RELEASE_VENV)/.ready
	@{ echo '# The versions CI tests with on Python 3.11: made by `make constraints`.'; \
	{ $(BIN)/python -m pip freeze --exclude-editable; \
	$(RELEASE_VENV)/bin/python -m pip freeze | grep -iE '^(build|towncrier|twine)=='; } | sort -fu; } > ci/constraints.txt

# The documentation site, into site/. It reads the code without importing it, so TensorFlow is not needed.
docs: $(DOCS_VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

bench: bench-overhead bench-check bench-guard bench-software-gpu bench-page bench-whatif bench-fit bench-checkpoint bench-data \
	bench-tune bench-store bench-serve bench-workers

bench-overhead: $(BENCH_READY)
	$(BIN)/python benchmarks/overhead.py

bench-software-gpu: $(READY)
	$(BIN)/python benchmarks/software_gpu.py

# What `stoker memory` predicts, against what the software GPU counts. Over an hour of one core; MODELS="ResNet50 VGG16"
# runs some. A second call goes on where the first was stopped.
bench-memory: $(READY)
	$(BIN)/python benchmarks/memory.py $(if $(MODELS),--models $(MODELS))

# What it says that mixed precision, other optimizers and accumulation would need, against what they need. A quarter of an hour.
bench-memory-changes: $(READY)
	$(BIN)/python benchmarks/memory_changes.py $(if $(MODELS),--models $(MODELS))

# Against ruff, flake8 and pylint over the installed sources of Keras and TensorFlow.
bench-check: $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[bench-check]'
	$(BIN)/python benchmarks/check.py

# A page of a run of 100,000 steps and 500 findings: its size, and how long Chromium takes to open it.
bench-page: $(READY) browser
	PYTHONPATH=. $(BIN)/python benchmarks/page.py

# The prices of examples and of whole programs, predicted and measured. Needs the software GPU's C++ compiler for its last rows.
bench-whatif: $(BENCH_READY)
	$(BIN)/python benchmarks/whatif.py --order --plot benchmarks/whatif.svg
	$(BIN)/python benchmarks/whatif.py --programs all

bench-guard: $(READY)
	$(BIN)/python benchmarks/guard.py

# Against Keras' fit, predict and evaluate, hand-written loops, and the limit.
bench-fit: $(READY)
	$(BIN)/python benchmarks/fit.py

# Many small models at once, against one after another.
bench-many: $(READY)
	$(BIN)/python benchmarks/many.py

# Jobs that are over in seconds: the whole first call, tracing and all, against Keras.
bench-short-jobs: $(READY)
	$(BIN)/python benchmarks/short_jobs.py
	$(BIN)/python benchmarks/kept_compilations.py

# From SIGKILL to the next step of a job, with spares that have imported TensorFlow and without.
bench-restart: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/restart.py

# In an environment of its own: ml-goodput-measurement brings the clients of Google Cloud.
bench-goodput: $(READY)
	test -x .venv-goodput/bin/python || $(BIN)/python -m venv .venv-goodput
	.venv-goodput/bin/python -m pip install --quiet --editable '.[bench-goodput]'
	.venv-goodput/bin/python benchmarks/goodput.py

# Programs in the shape of published Keras examples, through Keras and through Stoker.
bench-examples: $(READY)
	$(BIN)/python benchmarks/keras_examples.py

# The tests of Keras, as they are and through stoker.fit; `make peers SUITES="trainer_test models"` runs some of them.
# With CHECKOUTS="keras_hub=DIR keras_rs=DIR keras_tuner=DIR scikeras=DIR" theirs, too, by a Python that has what they import.
PEERS_PYTHON ?= $(BIN)/python
peers: $(READY)
	$(PEERS_PYTHON) benchmarks/keras_suites.py $(SUITES) $(addprefix --checkout=,$(CHECKOUTS))

# The tests of other servers on ours, from checkouts of them: SERVING, KSERVE and MLSERVER; any of the three. TensorFlow
# Serving's are of its binary; of KServe and MLServer, whose environments are their own, those of the endpoints.
peers-serving: $(READY) $(if $(KSERVE),.venv-kserve/.ready) $(if $(MLSERVER),.venv-mlserver/.ready)
	$(if $(SERVING),$(BIN)/python -m pip install --quiet portpicker six)
	$(if $(SERVING),$(BIN)/python benchmarks/serving_suites.py $(SERVING) $(TESTS))
	$(if $(KSERVE)$(MLSERVER),$(BIN)/python benchmarks/endpoint_suites.py \
		$(if $(KSERVE),--kserve $(KSERVE) --kserve-python .venv-kserve/bin/python) \
		$(if $(MLSERVER),--mlserver $(MLSERVER) --mlserver-python .venv-mlserver/bin/python))

.venv-kserve/.ready:
	$(PYTHON) -m venv .venv-kserve
	.venv-kserve/bin/python -m pip install --quiet 'kserve[ray]' pytest pytest-asyncio cloudevents avro pandas grpcio-testing httpx
	@touch $@

# Older versions of what its tests are written for.
.venv-mlserver/.ready:
	$(PYTHON) -m venv .venv-mlserver
	.venv-mlserver/bin/python -m pip install --quiet mlserver 'pytest<9' 'pytest-asyncio<1.3' pytest-cases 'fastapi<0.125' httpx \
		httpx-sse filelock pyyaml aiohttp aiohttp-retry
	@touch $@

# KServe's client, in an environment of its own, for its tests; without it they are skipped.
serving-clients: .venv-clients/.ready

.venv-clients/.ready:
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet kserve
	@touch $@

# The messages of the gRPC services, from their .proto files.
protos: $(READY)
	$(BIN)/python tools/make_protos.py

soak: soak-run soak-resume soak-store soak-cases soak-serve soak-engines soak-workers soak-bucket

# A million steps: the record stays small and the process does not grow.
soak-run: $(READY)
	$(BIN)/python benchmarks/soak.py

# Killed fifty times at random moments, training ends with the bits of a run that was left alone.
soak-resume: $(READY)
	$(BIN)/python benchmarks/soak_resume.py

# All cases of the tests that `make test` and `make test-slow` run for some: every example and its twin, every repair, large networks, more random ones.
soak-cases: $(READY)
	STOKER_ALL_CASES=1 $(PYTEST) tests/test_examples.py tests/doctor/fix/test_repaired_examples.py tests/doctor/software_gpu/test_parity.py \
		tests/train/workers tests/train/test_random_models.py tests/data/tuning/test_random_pipelines.py \
		tests/recipes/test_text_and_image.py tests/recipes/test_killed.py tests/test_learn.py

# Workers of a job killed at random moments, stopped, told to leave: it ends with the bits of one that was left alone.
soak-workers: $(READY)
	$(BIN)/python benchmarks/soak_workers.py
	PYTHONPATH=. $(BIN)/python benchmarks/soak_launch.py

# Two workers with their checkpoints in a bucket, killed fifty times.
soak-bucket: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/soak_bucket.py

# Models, pipelines, faults, tables and bundles drawn at random, against Keras, TensorFlow, pandas and polars, or against
# a run that was left alone. `make soak-random COUNT=20` runs a few of each; SEED=n draws others.
soak-random: soak-models soak-pipelines soak-faults soak-tables soak-bundles

DRAWN = --count $(or $(COUNT),$(1)) --seed $(or $(SEED),0)

soak-models: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/soak_models.py $(call DRAWN,2000)

soak-pipelines: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/soak_pipelines.py $(call DRAWN,1000)

soak-faults: $(READY) engine-tools
	PYTHONPATH=. $(BIN)/python benchmarks/soak_faults.py $(call DRAWN,200)

soak-tables: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/soak_tables.py $(call DRAWN,5000)

soak-bundles: $(READY)
	PYTHONPATH=. $(BIN)/python benchmarks/soak_bundles.py $(call DRAWN,1000)

# Killed fifty times while it logs, a program leaves a store that has every value once.
soak-store: $(READY) postgresql
	PYTHONPATH=. $(BIN)/python benchmarks/soak_store.py

# 100,000 requests, right and wrong: no 500, and no memory that grows. As many again over all four protocols, each answer checked, while
# workers are killed and versions replaced.
soak-serve: $(READY)
	$(BIN)/python benchmarks/soak_serve.py
	PYTHONPATH=. $(BIN)/python benchmarks/soak_protocols.py $(if $(COUNT),--requests $(COUNT))

# An image of a bundle, built and run: the recorded answers over REST. Needs root, and about 4 GB of disk.
soak-package: $(READY) image-tools
	$(BIN)/python benchmarks/soak_package.py

image-tools:
	@if command -v buildah >/dev/null && command -v mmdebstrap >/dev/null; then :; \
	else apt-get -qq update && \
	DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends buildah mmdebstrap >/dev/null; fi
# Jobs by ssh, on SLURM and on Ray, all of this machine; what cannot be had is skipped. Ray has an environment of its own.
soak-engines: $(ENGINES_VENV)/.ready engine-tools
	$(ENGINES_VENV)/bin/python -m pytest tests/launch

# The store against MLflow, W&B offline and Aim, which get an environment of their own.
bench-store: $(READY) $(PEERS_VENV)/.ready postgresql
	PYTHONPATH=. $(BIN)/python benchmarks/store.py

# The exported model of a table against scikit-learn's, LightGBM's and, where pytabkit is installed, RealMLP.
bench-keel: $(BENCH_READY)
	$(BIN)/python benchmarks/keel.py

# Recipes against pandas or Keras' loaders with model.fit; and every real data set through them, for docs/recipes.md.
bench-recipes: $(READY) fortunes
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,bench-recipes]'
	$(BIN)/python benchmarks/recipes.py

recipe-figures: $(READY) fortunes
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,bench-recipes]'
	$(BIN)/python benchmarks/recipe_figures.py

# Texts by topic and by language.
fortunes:
	$(call need,[ -d /usr/share/games/fortunes/de ],fortunes fortunes-de fortunes-es fortunes-it fortunes-pl fortunes-cs,texts by topic and by language)

# The readers of stoker.data against the usual ways.
bench-data: $(READY)
	$(BIN)/python benchmarks/data.py

# Rows from a bucket against rows on this disk, and against plain parallel downloads.
bench-storage: $(READY)
	$(BIN)/python benchmarks/storage.py

# Step times of jobs of one, two and three workers, by bytes; one sum a step or four.
bench-workers: $(READY)
	$(BIN)/python benchmarks/workers.py

# Pipelines before and after stoker.tune, and its predictions.
bench-tune: $(READY)
	$(BIN)/python benchmarks/tune.py

# A bundle's answers: one row, a million rows, requests over HTTP. The peers have an environment of their own.
# `make bench-serve ONLY=loads` runs a part.
bench-serve: $(READY) $(SERVE_PEERS_VENV)/.ready
	$(BIN)/python benchmarks/serve.py --peers $(SERVE_PEERS_VENV)/bin/python $(if $(ONLY),--only $(ONLY)) $(OPTIONS)

# MLPerf LoadGen asks stoker serve and Mosec; and it finds out what --shadow and --canary cost clients.
bench-loadgen: $(READY) $(SERVE_PEERS_VENV)/.ready
	$(BIN)/python benchmarks/loadgen.py --peers $(SERVE_PEERS_VENV)/bin/python $(OPTIONS)

bench-rollout: $(READY) $(SERVE_PEERS_VENV)/.ready
	$(BIN)/python benchmarks/rollout.py --peers $(SERVE_PEERS_VENV)/bin/python $(OPTIONS)

# What 8 and 16 bits save, by model, and how far off the answers are.
bench-quantize: $(READY)
	$(BIN)/python benchmarks/quantize.py

$(SERVE_PEERS_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SERVE_PEERS_VENV)
	$(SERVE_PEERS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(SERVE_PEERS_VENV)/bin/python -m pip install --quiet --editable '.[cpu,serve]' litserve mosec mlcommons-loadgen
	@touch $@

# A 2 GB CSV file is trained on; how far the process grows.
soak-data: $(READY)
	$(BIN)/python benchmarks/soak_data.py

# How long a checkpoint holds training up.
bench-checkpoint: $(READY)
	$(BIN)/python benchmarks/checkpoint.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev]'
	# The client that the gRPC service is tested with. What it depends on would be a second TensorFlow.
	$(BIN)/python -m pip install --quiet --no-deps tensorflow-serving-api
	# Triton's client and protoc, without the versions of protobuf that they ask for.
	$(BIN)/python -m pip install --quiet python-rapidjson geventhttpclient && \
	$(BIN)/python -m pip install --quiet --no-deps tritonclient grpcio-tools || \
	echo "Skipped: the tests with Triton's client, which could not be installed."
	# Models that the tests train and refuse, likewise; without them those tests are skipped.
	$(BIN)/python -m pip install --quiet regex kagglehub tokenizers && \
	$(BIN)/python -m pip install --quiet --no-deps keras-hub tensorflow-text tf_keras || \
	echo "Skipped: the tests with keras_hub and tf_keras, which could not be installed."
	@touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[cpu,dev,bench]'
	@touch $@

# What the benchmark of the store is measured against, and MLflow for its tests.
$(PEERS_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS_VENV)
	$(PEERS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS_VENV)/bin/python -m pip install --quiet mlflow wandb aim
	@touch $@

$(ENGINES_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(ENGINES_VENV)
	$(ENGINES_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(ENGINES_VENV)/bin/python -m pip install --quiet --editable '.[cpu,dev,ray]'
	@touch $@

$(RELEASE_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(RELEASE_VENV)/bin/python -m pip install --quiet build towncrier twine
	@touch $@

$(DOCS_VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS_VENV)/bin/python -m pip install --quiet --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv-clients .venv-kserve .venv-mlserver $(VENV) $(DOCS_VENV) $(RELEASE_VENV) $(PEERS_VENV) $(SERVE_PEERS_VENV) site .stoker build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache $(ENGINES_VENV)
