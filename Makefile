# `make demo` and `make test` need Python 3.11 or newer, and set up all else in a virtual environment of their own.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= $(firstword $(DATACOLLAB_DATA) $(wildcard ../shared/data))

# One worker more than processors for the tests, as some of them wait.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))

# One BLAS thread a process: the work is spread over processes, and results do not depend on the machine.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# Tests begin hundreds of processes, each of which would compile all that it loads.
unexport PYTHONDONTWRITEBYTECODE

# pip checks a hash wherever constraints.txt has one; that it has all is a test, as pip's own mode refuses what lies here.
# Python compiles what it loads: all that is installed would take pip as long as to install it.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --no-require-hashes --constraint constraints.txt --build-constraint constraints.txt

VERSIONS ?= 3.11 3.12 3.13

# What other versions of Python and of packages are tried with, but for tests that need oracles of which there are no old ones.
CORE := tests/linalg tests/sums tests/study tests/share tests/anchor tests/model tests/analyst tests/own tests/party tests/estimators \
	--ignore tests/analyst/test_oracles.py --ignore tests/study/test_effect.py --ignore tests/study/test_survival.py
FOR_CORE := --editable '.[umap,data,tables,shap,gpu,exchange,cli]'

.PHONY: demo test test-all test-nightly mutants check smoke results printed risks federated pays oneshot downstream adapters hub-faults hub-load oldest pythons constraints docs clean

demo: $(VENV)/.demo  ## What data collaboration buys on real data: prints two tables, writes figures and a page.
	$(BIN)/datacollab demo --output output/demo

# A file goes to one worker as a whole, since its tests share worlds.
TESTS ?= not slow

test: $(VENV)/.test  ## The tests, doctests and documents included, but for the slow quarter.
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "$(TESTS)"

test-all:  ## The slow ones too, in one go: whole commands on real data, kills.
	$(MAKE) test TESTS="not nightly"

mutants: $(VENV)/.test  ## Thirty faults, each planted alone into a copy of the package: tests must fail. Takes some minutes on two cores.
	$(BIN)/python tests/run_mutants.py

test-nightly: $(VENV)/.test  ## Simulations, the hub on PostgreSQL, 20,000 hostile changes of each kind of what crosses, 400 kills of each command.
	$(BIN)/python -m pytest -n auto --dist loadfile -m nightly
	DATACOLLAB_NIGHTLY=1 $(BIN)/python -m pytest -n auto tests/test_mutations.py tests/formats tests/bundle tests/table tests/agreement tests/folder tests/by_sums tests/by_rows tests/steps tests/remote \
		hub/tests/test_hub_demo.py hub/tests/test_hub_process.py hub/tests/benchmarks/test_hub_faults.py

check: $(VENV)/.test  ## Style, formatting, spelling, odd phrases and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src docs tests README.md
	$(BIN)/python tests/run_style.py
	$(BIN)/mypy

docs: $(VENV)/.docs  ## The documentation site, which opens from its folder: output/docs/index.html. Warnings are errors.
	$(BIN)/python -m sphinx -W --keep-going -q -j auto docs output/docs

smoke: $(VENV)/.experiments  ## All experiments of the paper, small and on scikit-learn's own data, and their report.
	$(BIN)/datacollab experiment run all --preset smoke --output output/smoke
	$(BIN)/datacollab experiment report output/smoke

results: $(VENV)/.experiments  ## What docs/results holds: the experiments at the preset quick. Takes an hour or two; goes on where it was.
	$(BIN)/datacollab experiment run all --preset quick $(if $(DATA),--data-dir $(DATA)) --output output/quick
	$(BIN)/datacollab experiment report output/quick
	mkdir -p docs/results/tables
	gzip -9nc output/quick/report/rows.csv > docs/results/rows.csv.gz
	cp output/quick/report/tables/*.md docs/results/tables/

PRINTED := rq1 rq2 rq3 rq4 regression $(patsubst %,experiments/src/datacollab_experiments/readings/%-width.toml,protocol latitude)
HOURS ?= 2

printed: $(VENV)/.experiments  ## What docs/results/printed holds: the paper as printed. Runs for HOURS, and goes on where the committed rows end.
	$(BIN)/datacollab experiment run $(PRINTED) --preset printed --hours $(HOURS) $(if $(DATA),--data-dir $(DATA)) --output output/printed \
		--done docs/results/printed/rows.csv.gz
	$(BIN)/python -m datacollab_experiments.readings.printed output/printed docs/results/printed/rows.csv.gz $(if $(DATA),--data-dir $(DATA)) \
		--to docs/results/printed

risks: $(VENV)/.experiments  ## What docs/results/risks holds: utility beside what attackers learn. Takes an hour and a half; goes on where it was.
	$(BIN)/datacollab experiment run rq4-risks rq4-risks-table --preset quick $(if $(DATA),--data-dir $(DATA)) --output output/risks
	$(BIN)/datacollab experiment report output/risks
	mkdir -p docs/results/risks
	cp output/risks/report/rows.csv output/risks/report/tables/rq4-risks*.md docs/results/risks/

federated: $(VENV)/.experiments  ## Federated averaging (Flower, in an environment of its own) beside data collaboration: one table.
	$(BIN)/python experiments/federated/compare.py $(if $(DATA),--data-dir $(DATA))

pays: $(VENV)/.pays  ## Does collaborating pay? What docs/results/pays holds. Takes two hours or more; goes on where it was.
	$(BIN)/python -m datacollab_experiments.pays --preset quick $(if $(DATA),--data-dir $(DATA)) --n-jobs 2 --output output/pays \
		--copy-to docs/results/pays

oneshot: $(VENV)/.pays  ## One-shot methods side by side, predicting and attacked: what docs/results/oneshot holds. Copies a whole run only; goes on where it was.
	$(BIN)/python -m datacollab_experiments.oneshot --preset quick --n-jobs 2 --output output/oneshot --copy-to docs/results/oneshot

downstream: $(VENV)/.test  ## Survival, effects, clusters: what docs/results/downstream holds, beside what should hold. Goes on where it was.
	$(BIN)/python -m datacollab_experiments.downstream --n-jobs 2 --output output/downstream --copy-to docs/results/downstream


# Smaller: make hub-load SECONDS=60 UPLOADS=100 TOTAL=10000, and make hub-faults TIMES=20.
hub-load: $(VENV)/.test  ## The hub under load, with PostgreSQL: what hub/docs/results/hub-load holds. Takes half an hour, and the machine for itself.
	$(MAKE) -C hub load VENV=$(abspath $(VENV))

hub-faults: $(VENV)/.test  ## Kills and other faults while shares cross a hub on PostgreSQL: what hub/docs/results/hub-faults holds. Goes on where it was.
	$(MAKE) -C hub faults VENV=$(abspath $(VENV))

adapters:  ## An exchange through Flower, and one through NVFlare, each in an environment of its own.
	PYTHON=$(PYTHON) sh adapters/test.sh flower
	PYTHON=$(PYTHON) sh adapters/test.sh nvflare


# matplotlib 3.9 calls names of pyparsing that its later versions warn of.
oldest:  ## The numerical core with the oldest versions that pyproject.toml allows, in an environment of its own.
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
		$(FOR_CORE) 'pytest>=8.4' 'pytest-xdist>=3.5' 'hypothesis>=6.130' 'polars>=1.0' 'array-api-strict>=2.2' 'statsmodels>=0.14.4' \
		'pyparsing>=3.2,<3.3'
	.venv-oldest/bin/python -m pytest -n auto -m "not slow" $(CORE)

pythons:  ## The numerical core with the newest versions, by each Python of VERSIONS, all of which must be there.
	@missing=; for version in $(VERSIONS); do python$$version -c '' 2>/dev/null || missing="$$missing python$$version"; done; \
	[ -z "$$missing" ] || { echo "Not found:$$missing. Install them, or name those to try, as in: make pythons VERSIONS=3.11"; exit 1; }
	for version in $(VERSIONS); do \
		python$$version -m venv .venv-$$version && \
		.venv-$$version/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager \
			$(FOR_CORE) pytest pytest-xdist hypothesis polars array-api-strict statsmodels && \
		.venv-$$version/bin/python -m pytest -n auto -m "not slow" $(CORE) || exit 1; \
	done

# Delete constraints.txt first for the newest versions. A numba without wheels for Intel Macs, rather than an old one for them alone.
constraints:  ## constraints.txt anew, with hashes for all systems: the versions in it, where they still fit.
	$(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/python -m pip install --quiet uv
	printf '%s\n' '-e .[test,gpu]' '-e ./hub[test]' '-e ./experiments[pays]' pip hatchling hatch-fancy-pypi-readme editables 'numba>=0.60' | \
		.venv-constraints/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
		--no-annotate --custom-compile-command 'make constraints' --no-emit-package datacollab --no-emit-package datacollab-hub \
		--no-emit-package datacollab-experiments --output-file constraints.txt -

clean:
	rm -rf $(VENV) .venv-* output build dist docs/api docs/commands docs/gallery

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt | $(BIN)/python -m pip install --quiet --requirement /dev/stdin

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[umap,data,exchange,cli]'
	@mkdir -p output && touch $@

$(VENV)/.experiments: $(VENV)/.demo experiments/pyproject.toml
	$(INSTALL) --editable . --editable experiments
	@touch $@

$(VENV)/.pays: $(VENV)/.experiments
	$(INSTALL) --editable . --editable 'experiments[pays]'
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml hub/pyproject.toml experiments/pyproject.toml constraints.txt
	$(INSTALL) --editable '.[docs]' --editable hub --editable experiments
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml hub/pyproject.toml experiments/pyproject.toml constraints.txt
	$(INSTALL) --editable '.[test]' --editable 'hub[test]' --editable experiments
	@touch $@ $(VENV)/.experiments $(VENV)/.demo $(VENV)/.docs
