# Two ways in: `make demo` tunes a real network, `make test` checks everything.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed

.PHONY: demo test check unit integration acceptance browser format clean setup

setup: $(STAMP)

# What running needs; what testing needs comes on top.
$(RUNS): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $(RUNS)

$(STAMP): $(RUNS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: $(RUNS)
	$(BIN)/tuneloom tune zoo:squeezenet --trials 600 --out demo-bundle

# What needs one core each goes side by side; the rest measures, and gets the machine.
test: $(STAMP)
	$(MAKE) --no-print-directory -j3 --output-sync=target check unit browser
	$(MAKE) --no-print-directory integration acceptance

check: $(STAMP)
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy

# Matrices in tests are small: threads of linear algebra would only get in each other's way.
unit: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q tests/unit

integration: $(STAMP)
	$(BIN)/pytest -q tests/integration

acceptance: $(STAMP) browser
	$(BIN)/pytest -q tests/acceptance

# The report page is tested in a real browser; where none can be installed those tests say so and are skipped.
APT := DEBIAN_FRONTEND=noninteractive $(if $(filter 0,$(shell id -u)),,sudo -n )apt-get -qq
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { $(APT) update && $(APT) install -y --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 \
	  || echo "no Chromium could be installed; the tests of the report page are skipped"

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

clean:
	rm -rf $(VENV) demo-bundle build src/*.egg-info
