# Every target makes the environment first if it is missing or older than the lock.
.DEFAULT_GOAL := help
.PHONY: help setup lab test bench run refresh check format new badge lock clean
PYTHON ?= python3
BIN := .venv/bin
NB ?=

help:  ## list what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

# PYTHON=... on the command line asks for that interpreter even where an environment stands.
NAMED := $(filter command,$(origin PYTHON))
.PHONY: .again
.again:

.venv/.ready: requirements.txt pyproject.toml $(if $(NAMED),.again)
	@command -v $(PYTHON) >/dev/null || { echo "Set-up stopped. There is no $(PYTHON) here: install Python 3.11, 3.12 or 3.13."; exit 1; }
	@$(PYTHON) helpers/bootstrap.py $(if $(NAMED),$(PYTHON))

setup: .venv/.ready  ## make .venv from the lock

lab: setup  ## open the course in JupyterLab
	@$(BIN)/python -m helpers.lab

test: setup  ## run every check there is
	@$(BIN)/python -m pytest tests

bench: setup  ## measure how fast a cluster starts, and what a worker holds
	@$(BIN)/python tests/benchmarks/cluster_start.py

run: setup  ## execute every notebook with papermill (NB=20: those that match)
	@$(BIN)/python -m helpers.run $(NB)

refresh: setup  ## execute again and store the outputs (NB=20: those that match)
	@$(BIN)/python -m helpers.notebooks refresh $(NB)

check: setup  ## lint modules and notebooks, quickly
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/python -m helpers.notebooks check

format: setup  ## put modules and notebooks in their normal form
	@$(BIN)/ruff check --fix && $(BIN)/ruff format && $(BIN)/python -m helpers.notebooks normalise

new: setup  ## start a lesson from the template (NB=35_my_concept)
	@$(BIN)/python -m helpers.notebooks new $(NB)

badge: setup  ## write the README's Binder badge for the address in pyproject.toml
	@$(BIN)/python -m helpers.address

lock: setup  ## compile requirements.txt anew from pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@mkdir -p build
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --no-header --no-annotate \
	    pyproject.toml >build/pins.txt
	@{ head -2 requirements.txt; cat build/pins.txt; echo "-e ."; } >build/requirements.txt
	@mv build/requirements.txt requirements.txt

clean:  ## remove the environment and everything that was built
	rm -rf .venv build *.egg-info
