# Two ways in: `make demo` tunes a real network, `make test` checks everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
# The suite starts hundreds of interpreters; compiling every module again in each of them costs a tenth of its time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: package install-test lock docs compose-check demo test check suite unit integration acceptance browser torch-tests busy-test schema-test emulated-board format clean setup

setup: $(STAMP)

# What running needs, with ONNX Runtime to compare with; what testing needs comes on top.
$(RUNS): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[onnxruntime]'
	touch $(RUNS)

# LOCKED=yes installs exactly the versions and files of the lock, as CI does; otherwise what is newest now.
$(STAMP): $(RUNS)
ifdef LOCKED
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
else
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
endif
	touch $(STAMP)

demo: $(RUNS)
	$(BIN)/tuneloom demo

# No test depends on a time, so several processes share the tests of all tiers; a file's tests stay together.
# Tests wait for other processes a quarter of their time, hence one process more than cores; with two more the
# suite took longer (13:10 against 11:30 on two ARM cores).
# Matrices in tests are small: threads of linear algebra would only get in each other's way.
PROCESSES ?= 3
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n $(PROCESSES)

test: $(STAMP)
	$(MAKE) --no-print-directory -j2 check suite

suite: $(STAMP) browser
	$(PYTEST) tests accelerators

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks examples accelerators docs
	$(BIN)/ruff check src tests benchmarks examples accelerators docs
	$(BIN)/mypy

unit: $(STAMP)
	$(PYTEST) tests/unit accelerators

integration: $(STAMP)
	$(PYTEST) tests/integration

acceptance: $(STAMP) browser
	$(PYTEST) tests/acceptance

# The same with somebody else at work on both cores: no test may depend on a time or on what is faster.
busy-test: $(STAMP) browser
	@for core in 1 2; do $(BIN)/python -c "while True: pass" & loops="$$loops $$!"; done; \
	  trap "kill $$loops" EXIT; $(PYTEST) tests accelerators

# The whole API against its description, with many requests for every operation: hours matter less than holes.
schema-test: $(STAMP)
	TUNELOOM_SCHEMA_EXAMPLES=200 $(BIN)/pytest -q tests/unit/server/test_schema.py

# Torch makes every import of TVM slower, so its tests have an environment of their own.
TORCH = $(VENV)-torch
torch-tests:
	$(MAKE) --no-print-directory VENV=$(TORCH) $(TORCH)/.torch
	$(TORCH)/bin/pytest -q tests/integration/tvm_models/test_torch.py tests/integration/app/test_session.py tests/integration/pytorch

$(VENV)/.torch: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,torch]'
	touch $(VENV)/.torch

# The report page is tested in a real browser; where none can be installed those tests say so and are skipped.
APT := DEBIAN_FRONTEND=noninteractive $(if $(filter 0,$(shell id -u)),,sudo -n )apt-get -qq
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { $(APT) update && $(APT) install -y --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 \
	  || echo "no Chromium could be installed; the tests of the report page are skipped"

# What would be published: both archives, with a description that indexes can show.
package: $(RUNS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[release]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# The wheel with each extra, downloaded into clean environments as by users; needs a package index and minutes.
install-test: $(STAMP)
	TUNELOOM_INSTALL=pip $(BIN)/pytest -q tests/acceptance/test_package.py

# The documentation site, in site/; warnings, such as links that lead nowhere, are errors.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Compose's own schema says whether its file is right; needs a package index.
compose-check: $(RUNS)
	$(BIN)/pip install --quiet --disable-pip-version-check check-jsonschema
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec containers/compose.yaml

# Versions and hashes of everything that tests and images install; needs uv and a package index.
lock:
	tools/lock.sh

# A board of the other architecture, emulated; nothing is installed on the system.
emulated-board: $(STAMP)
	PYTHON=$(abspath $(BIN)/python) tools/emulated_board.sh setup

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks examples accelerators docs
	$(BIN)/ruff check --fix src tests benchmarks examples accelerators docs

clean:
	rm -rf $(VENV) $(TORCH) demo-bundle demo-bundle.html build dist site src/*.egg-info
