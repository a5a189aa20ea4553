# Every target sets itself up: the environment, then what it needs installed there.
# Installation follows pip's own configuration; constraints.txt decides the versions.

# 3.11 first: constraints.txt is tested with it. A name alone proves nothing (pyenv shims), so each is run.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
PYTEST_ARGS ?= -n auto --dist worksteal

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable

.DEFAULT_GOAL := help
.SECONDARY:  # tables of drawn networks stay
.PHONY: help demo bench-engine bench-search checkpoint counts test notebooks services check format-check lint types format

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/installed  ## a small search, written to demo/
	$(BIN)/python -m studies.demo --out demo

bench-engine: $(VENV)/installed  ## texts learned and predicted a second, beside regress-lm
	$(BIN)/python -m benchmarks.engine $(BENCH_ARGS)

bench-search: $(VENV)/installed  ## real evaluations that searches need, with the RLM and without
	$(BIN)/python -m benchmarks.search $(BENCH_ARGS)

checkpoint: runs/released/checkpoint/README.md  ## the released checkpoint, after that of counts; goes on after a stop

counts: runs/counts/checkpoint/README.md  ## studies/recipes/checkpoints/counts anew, from random weights

# What it learns beside the published tables: labels that a process and trees expect, and counts.
DATA := ../shared/data
COUNTED := nds_nasnet nds_amoebanet nds_pnas nds_enas nds_darts hiaml inception two_path ofa_proxylessnas ofa_resnet50
TAUGHT := runs/taught/nasbench201.parquet $(addprefix runs/taught_like/,nasbench101.parquet fbnet.parquet \
	mnasnet.parquet darts.parquet darts_epochs.parquet)

runs/released/checkpoint/README.md: runs/adapted/checkpoint/README.md
	$(BIN)/nasrlm refine --checkpoint runs/adapted/checkpoint --table $(DATA)/nasbench201.parquet --table $(DATA)/fbnet.parquet \
		--table $(DATA)/ofa_mobilenetv3.parquet --table $(DATA)/mnasnet.parquet --out runs/released/checkpoint

runs/adapted/checkpoint/README.md: runs/encoders/checkpoint/README.md
	$(BIN)/nasrlm adapt --checkpoint runs/encoders/checkpoint --table $(DATA)/darts.parquet --space darts \
		--objectives short_accuracy@cifar10 --samples all --like-table --out runs/adapted/checkpoint

runs/encoders/checkpoint/README.md: studies/recipes/encoders.yaml runs/labels/checkpoint/README.md | $(VENV)/installed
	$(BIN)/nasrlm train --config $<

runs/labels/checkpoint/README.md: studies/recipes/labels.yaml $(TAUGHT) runs/label_free/counted.parquet | $(VENV)/installed
	$(BIN)/nasrlm train --config $<

runs/taught_like/mnasnet.parquet: TEACH := -n 20000 --objectives proxy_accuracy@imagenet
runs/taught_like/darts.parquet: TEACH := -n 30000 --objectives short_accuracy@cifar10
runs/taught_like/nasbench101.parquet: TEACH := -n 48000 --labels 8000 \
	--objectives valid_accuracy@cifar10,valid_accuracy_12ep@cifar10
runs/taught_like/fbnet.parquet: TEACH := -n 24000
runs/taught/nasbench201.parquet: TEACH := -n 8000 --labels 8000 \
	--objectives accuracy@cifar10,accuracy@cifar100,accuracy@imagenet16-120,valid_accuracy@cifar10,$\
	valid_accuracy@cifar100,valid_accuracy@imagenet16-120,valid_accuracy_12ep@cifar10
runs/taught/%.parquet: | $(VENV)/installed
	$(BIN)/nasrlm teach --table $(DATA)/$*.parquet --space $* $(TEACH) --out $@

runs/taught_like/darts_epochs.parquet: | $(VENV)/installed
	$(BIN)/nasrlm teach --table $(DATA)/darts.parquet --space darts --like-table -n 15000 \
		--objectives accuracy_50ep@cifar10,accuracy_10ep@cifar10 --out $@

runs/taught_like/%.parquet: | $(VENV)/installed
	$(BIN)/nasrlm teach --table $(DATA)/$*.parquet --space $* --like-table $(TEACH) --out $@

# A million networks of all spaces, counted with their texts: about an hour. Each once: of small spaces those among 150,000
# draws of NAS-Bench-101, 100,000 of HiAML, 30,000 of NAS-Bench-201 and 20,000 of NAS-Bench-Macro.
COUNTED_OF_ALL := $(shell sed -n 's|^  - \(runs/label_free/.*\)|\1|p' studies/recipes/counts.yaml)
DRAWS_darts := 40000
DRAWS_fbnet := 150000
DRAWS_hiaml := 35588
DRAWS_inception := 25000
DRAWS_mnasnet := 110000
DRAWS_nasbench101 := 20435
DRAWS_nasbench201 := 13294
DRAWS_nasbench_macro := 6219
DRAWS_ofa_mobilenetv3 := 90000
DRAWS_ofa_proxylessnas := 150000
DRAWS_ofa_resnet50 := 60000
DRAWS_two_path := 250000

runs/counts/checkpoint/README.md: studies/recipes/counts.yaml $(COUNTED_OF_ALL) | $(VENV)/installed
	$(BIN)/nasrlm train --config $<

runs/label_free/%.drawn.parquet: | $(VENV)/installed
	$(BIN)/nasrlm sample --space $* -n $(or $(DRAWS_$*),12000) --seed 1 --held-out 1 --out $@

runs/label_free/%.parquet: runs/label_free/%.drawn.parquet
	$(BIN)/nasrlm stats --table $< --texts --out $@ --resume

runs/label_free/drawn.parquet: | $(VENV)/installed
	$(BIN)/nasrlm sample $(COUNTED:%=--space %) -n 1000 --seed 0 --out $@

runs/label_free/counted.parquet: runs/label_free/drawn.parquet
	$(BIN)/nasrlm stats --table $< --out $@ --resume

check: format-check lint types test  ## format, lint, types, tests

test: $(VENV)/installed-dev  ## the default tests; more with PYTEST_ARGS='-m slow'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

notebooks: $(VENV)/installed-dev  ## run every notebook, with small settings
	$(BIN)/python -m pytest -n 0 -m notebook

services: $(VENV)/installed-dev  ## tests with PostgreSQL and a browser, where they are installed
	$(BIN)/python -m pytest -n 0 -m service -rs

format-check: $(VENV)/installed-dev
	$(BIN)/ruff format --check .

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: expected Python 3.11 or newer, got none on PATH." \
		"Install it, or name it: make PYTHON=/path/to/python3.11." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The stamps are newer than both files until one of them changes; only then pip runs again.
$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) .
	@touch $@

# dev holds everything the runtime needs, so it renews both stamps.
$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) ".[dev]"
	@touch $(VENV)/installed $@
