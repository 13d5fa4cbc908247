# Everything a developer can run. `make run` and `make test` are all a newcomer needs.
.DEFAULT_GOAL := help
.PHONY: help setup setup-test run check types style units test together loaded long attacks faults gvisor containers policy agents bench lock screenshots reference format

SEATRIAL := .venv/bin/seatrial
PYTEST := .venv/bin/python -m pytest
# These measure how fast something is, and so want the machine for themselves.
ALONE := tests/browser/test_numbers.py tests/integration/live tests/faults/test_14_slow_uploads.py \
  tests/faults/test_neighbours.py tests/integration/network/test_speed.py tests/faults/test_neighbours_files.py
# `test` leaves out further cases on the second and third kind of sandbox, and three quarters of the random examples:
# tests/long_cases.py says which. `long` runs those cases, `attacks` every attack with all of its cases and examples.
TOGETHER := -n 4 --dist loadfile --no-loadscope-reorder
BRIEF := -m "not long" --hypothesis-profile=brief
# Faults 1 to 11, all cases in both configurations, and what is too long for `test`.
FAULTS := $(addprefix tests/faults/test_,workers.py 03_repeated_hints.py 03_05_hints.py 06_store_away.py store_crash.py engine_restart.py \
  09_between_two_steps.py disk_full.py 11_no_worker.py until_settled.py three_machines.py litter.py)
# Tests start Python hundreds of times: what it compiled is kept, whatever the shell wants elsewhere.
unexport PYTHONDONTWRITEBYTECODE

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

setup:  ## Make .venv with the `seatrial` command in it (1 min the first time)
	@sh scripts/setup.sh run

setup-test:
	@sh scripts/setup.sh test

run: setup  ## Set up, run the samples in the sandbox, show a first result (about 3 min the first time, seconds after)
	@sh scripts/first-run.sh

check: setup  ## The fast half of `test`: style, types, import contracts, unit tests (about a minute)
	@$(MAKE) --no-print-directory --output-sync=target -j 2 types style units

types:
	@.venv/bin/mypy

style:
	@.venv/bin/ruff format --check --quiet . || (echo "Run 'make format'."; exit 1)
	@.venv/bin/ruff check --quiet .
	@.venv/bin/lint-imports --no-cache >/dev/null || .venv/bin/lint-imports --no-cache
	@.venv/bin/python scripts/reference.py --check

units:
	@$(PYTEST) -q -n 4 tests/unit

test: setup-test check  ## Every rule, with real sandboxes, container engines, PostgreSQL and a browser (about 20 min)
	@$(MAKE) --no-print-directory together
	@$(PYTEST) -q $(BRIEF) $(ALONE)

together:
	@$(PYTEST) -q $(TOGETHER) $(BRIEF) tests --ignore=tests/unit --ignore=tests/agents $(ALONE:%=--ignore=%)

loaded: setup-test  ## `test` without ALONE on a busy machine: RUNS=3 runs in a row beside two processes of `stress`
	@sh scripts/system-packages.sh load
	@stress --quiet --cpu 2 & load=$$!; trap "kill $$load" EXIT; trap "exit 130" INT TERM; \
	  for run in $$(seq $(or $(RUNS),3)); do echo "Run $$run beside stress"; $(MAKE) --no-print-directory check together || exit 1; done

long: setup-test  ## The cases that `test` leaves out: more of the same on the second and third kind of sandbox
	@$(PYTEST) -q $(TOGETHER) -m long tests --ignore=tests/unit $(ALONE:%=--ignore=%)
	@$(PYTEST) -q -m long $(ALONE)

faults: setup-test  ## Every fault of workers, stores and brokers on SQLite and as a fleet, 300 trials on three machines, a random mix; SEED=n
	@$(PYTEST) -q $(FAULTS)
	@.venv/bin/python -m tests.faults.site --trials 300
	@.venv/bin/python -m tests.faults.site --trials 12 --capacity 2 --brief --sandboxes
	@for kind in local fleet; do \
	  .venv/bin/python -m tests.faults.mix --kind $$kind $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) || exit 1; \
	done

attacks: setup-test  ## Every attack of tests/attacks/README.md on each kind of sandbox (`test` has each attack, too)
	@$(PYTEST) -q $(TOGETHER) tests/unit/test_attack_catalogue.py \
	  $$(sed -nE 's/^\| `(tests\/[^`]+)`.*/\1/p' tests/attacks/README.md)

agents: setup-test  ## Real agent programs of npm and PyPI, each solves a sample through the gate; builds their kits the first time
	@$(PYTEST) -q -m "not long" tests/agents

gvisor: setup-test  ## All of the sandboxes' contract suite on gVisor (`test` runs a part of it)
	@SEATRIAL_TEST_GVISOR=all $(PYTEST) -q tests/contracts/sandbox tests/integration/oci/test_gvisor.py -k "oci:runsc or gvisor"

containers: setup-test  ## Build the images and run a job through compose.yaml, in a container engine of its own
	@$(PYTEST) -q -m "long or not long" tests/deploy/test_images.py tests/deploy/test_compose_up.py

policy: setup  ## Scan deploy/ and the Dockerfile with a policy scanner, in an environment of its own
	@sh scripts/policy.sh

bench: setup-test  ## The numbers of the README, as ratios from one run
	@.venv/bin/python -m benchmarks

lock:  ## Resolve dependencies again into requirements.lock
	@.venv/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
	  --no-header --group dev -o requirements.lock pyproject.toml

screenshots: setup-test  ## Make the README's pictures from a real run
	@.venv/bin/python scripts/screenshots.py

reference:  ## Write docs/reference from the code
	@.venv/bin/python scripts/reference.py

format:  ## Format the code
	@.venv/bin/ruff format --quiet .
	@.venv/bin/ruff check --fix --quiet .
