# SPDX-License-Identifier: Apache-2.0
# Every verb sets up what it needs; a second run is quick. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := tools/constraints.txt
stage := @tools/stage.sh
# The JAX of `make oracle`, where that has been run.
jax_python = $(addprefix --jax-python ,$(wildcard .venv-oracle/bin/python))
list_cpp_files = find cpp playground tests/cpp tests/fuzz -name '*.h' -o -name '*.cpp'

# Two processes share the tests of a folder; ARGS="-n 0" for one, as a debugger needs it.
in_parallel := -n 2 --dist worksteal

# Of the Python tests, some of each area of cpp/bindings: all of them take long under the sanitizers.
sanitized_tests = $(foreach name,accelerators array construct borrowed_memory buffer_protocol cluster \
  collectives config derived_batch_size device_assignment device_list device_topology devices dlpack exchange heap_profile \
  async_copy memory_layout mesh_manager mesh_utils partition_spec pickle pictures plan_step planner prefetch programs recent \
  roofline sharding stored_layouts suggest transfer_guard tree_core uninitialized xla_client,\
  $(wildcard tests/python/*/test_$(name).py))

.PHONY: help setup demo test check constraints test-all test-cpp build-asan test-asan test-asan-python build-tsan test-tsan test-consumer \
  test-python test-free-threaded test-gpu test-quick test-torture torture-beside-jax test-simulated test-processes lint layers stubs \
  stubs-check format tidy fuzz soak soak-jax bench bench-gpu curves performance performance-page calibration instructions \
  notebooks playground docs docs-serve wheel wheel-oldest wheel-aarch64 release oracle clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

setup: ## system packages, .venv, the package built and installed editable
	@tools/setup.sh

demo: ## real images onto 8 CPU devices and back, and a network trained on them; ARGS="--file data.npz" for your own
	@tools/setup.sh --run
	@JAX_NUM_CPU_DEVICES=$${JAX_NUM_CPU_DEVICES:-8} python examples/digits_batches.py $(ARGS)
	@JAX_NUM_CPU_DEVICES=$${JAX_NUM_CPU_DEVICES:-8} python examples/digits_train.py

test: ## C++ and Python tests
	@rm -f build/stages.txt
	$(stage) "setup" tools/setup.sh
	@$(MAKE) --no-print-directory test-cpp test-python test-simulated
	@printf '\nAll passed:\n'; cat build/stages.txt

check: setup ## lint, types and stubs
	@$(MAKE) --no-print-directory lint stubs-check

test-all: setup ## the long suites: documentation, sanitizers, torture, soak, several processes, JAX, instructions, fuzzers
	@tools/clang.sh || echo "Left out: fuzzing needs clang 19, which cannot be installed here."
	@$(MAKE) --no-print-directory docs test-torture soak test-processes test-consumer test-asan test-asan-python test-tsan
	@$(MAKE) --no-print-directory oracle soak-jax
	@if command -v valgrind >/dev/null; then $(MAKE) --no-print-directory instructions; \
	  else echo "Left out: counting instructions needs valgrind (apt-get install valgrind)."; fi
	@if [ "$$(tools/clang.sh --or-c++)" != c++ ]; then $(MAKE) --no-print-directory fuzz SECONDS=$(or $(SECONDS),5); fi
	@printf '\nAll passed:\n'; cat build/stages.txt

test-cpp: setup ## C++ tests of the objects that the extension has
	$(stage) "C++ tests, build" cmake --build build/python
	$(stage) "C++ tests" ctest --test-dir build/python --output-on-failure --no-tests=error --progress -j 2

build-asan build-tsan: build-%: setup # clang takes two thirds of GCC's time for sanitized objects
	$(stage) "$*, build" bash -euo pipefail -c '\
	  CXX=$$(tools/clang.sh --or-c++) cmake --preset $*; cmake --build --preset $*'

test-asan: build-asan ## C++ tests under the address and undefined-behaviour sanitizers
	$(stage) "C++ tests, asan + ubsan" ctest --preset asan

test-asan-python: build-asan ## Python tests on a sanitized extension; ARGS=tests/python: all of them
	$(stage) "Python tests, asan + ubsan" tools/test_sanitized.sh $(in_parallel) $(or $(ARGS),$(sanitized_tests))

test-tsan: build-tsan ## C++ tests under the thread sanitizer
	$(stage) "C++ tests, tsan" ctest --preset tsan

test-consumer: setup ## a C++ program of somebody else against the installed package
	$(stage) "C++ consumer" bash -euo pipefail -c '\
	  cmake -S tests/cpp/consumer -B build/consumer -G Ninja --fresh -Wno-dev \
	    -Dartifex_devices_DIR="$$(python -m artifex_devices --cmake-dir)"; \
	  cmake --build build/consumer; build/consumer/consumer'

test-python: setup ## the Python tests; ARGS="-k mesh" to choose
	$(stage) "Python tests" python -m pytest $(in_parallel) $(ARGS)

test-free-threaded: setup ## the Python tests with the GIL off, and some in four threads at once; builds a Python 3.13t at first
	$(stage) "Python tests without the GIL" tools/test_free_threaded.sh $(in_parallel) $(ARGS)

test-gpu: setup ## the contract suite, and the tests of ownership, streams and CuPy, on the GPUs of this machine
	$(stage) "tests on GPUs" python tools/test_gpu.py $(ARGS)

test-quick: ## the tests of the changed rooms, within a minute; ROOMS="planner cluster" to choose
	@tools/test_quick.py $(ROOMS)

test-torture: setup ## what the library promises when things go wrong; ARGS="-k fork" to choose
	$(stage) "torture tests" python -m pytest $(in_parallel) -n 3 tests/torture $(ARGS) # 84 s; two at a time: 103 s

torture-beside-jax: setup ## the same faults here and in JAX, and docs/reliability.md from them; ARGS="--update" or "-k fork"
	@tools/make_oracle.sh
	@.venv-oracle/bin/python tests/torture/beside_jax/compare.py $(ARGS)

test-simulated: setup ## the tests of several processes that need no real ones, in simulated processes
	$(stage) "tests in simulated processes" python -m pytest $(in_parallel) tests/distributed --simulated $(ARGS)

test-processes: setup ## the tests in 2 to 4 real processes under mpiexec; ARGS="-k killed" to choose
	$(stage) "tests in several processes" python -m pytest $(in_parallel) tests/distributed $(ARGS)

layers: setup ## no room includes what it may not
	$(stage) "layers" python tools/check_layers.py

lint: layers ## order of the rooms, ruff, mypy and pyright strict, clang-format, codespell, plain English
	$(stage) "ruff check" ruff check .
	$(stage) "ruff format" ruff format --check --diff .
	$(stage) "mypy strict" mypy
	$(stage) "pyright strict" env PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright
	$(stage) "clang-format" bash -euo pipefail -c "$(list_cpp_files) | xargs clang-format --dry-run --Werror"
	$(stage) "codespell" codespell
	$(stage) "plain English" python tools/check_english.py

stubs-check: setup
	$(stage) "stubs up to date" python tools/make_stubs.py

stubs: setup ## rewrites the type stubs from the built extension
	@python tools/make_stubs.py --generate

notebooks: setup ## runs the notebooks of examples/ and rewrites their outputs
	@python tools/run_notebooks.py --write

playground: setup ## the page of the documentation that plans in the browser, with its tests in Chromium; needs Emscripten
	$(stage) "playground" tools/make_playground.sh
	$(stage) "playground, native answers" cmake --build build/python --target playground_answers
	$(stage) "playground in Chromium" python -m pytest -q tests/docs/test_playground.py

docs: setup ## builds the documentation site into build/docs; warnings are errors
	@python -m pip install -qq 'artifex_devices[docs]'
	@rm -rf build/docs
	@if tools/make_playground.sh; then cmake --build build/python --target playground_answers; else [ $$? = 3 ]; fi
	$(stage) "documentation" sphinx-build -E -W --keep-going -q -d build/doctrees docs build/docs
	$(stage) "the built site" python -m pytest -q tests/docs

docs-serve: docs ## shows the documentation site on http://localhost:8000; PORT=8001 for another port
	@python -m http.server --bind localhost --directory build/docs $(or $(PORT),8000)

constraints: setup ## pins the newest versions of all that the developers' environments install
	@python -m pip install -qq uv
	@uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --group dev --group fuzz --group tidy --group wheel \
	  --upgrade --no-annotate --custom-compile-command 'make constraints' --quiet -o tools/constraints.txt

format: setup ## formats C++ and Python in place
	@$(list_cpp_files) | xargs clang-format -i
	@ruff check --fix-only --quiet . && ruff format .

tidy: setup ## clang-tidy over the core, warnings are errors
	@python -m pip install -qq --group tidy
	$(stage) "clang-tidy" cmake --workflow --preset tidy

fuzz: setup ## parsers under libFuzzer (clang 19) and atheris, SECONDS=60 for each; ARGS="device_topology" to choose
	$(stage) "fuzz" env SECONDS_EACH=$(or $(SECONDS),60) tools/fuzz.sh $(ARGS)

soak: setup ## random programs against NumPy, SECONDS=30 SEED=1; Hypothesis prints the smallest program that fails
	$(stage) "soak" env PYTHONPATH=tests python -m soak --seconds $(or $(SECONDS),30) --seed $(or $(SEED),1) $(ARGS)

soak-jax: ## the same against JAX too, after `make oracle`, SECONDS=15 SEED=1
	$(stage) "soak against JAX" env PYTHONPATH=tests JAX_PLATFORMS=cpu .venv-oracle/bin/python -m soak --jax \
	  --seconds $(or $(SECONDS),15) --seed $(or $(SEED),1) $(ARGS)

bench: setup ## ours against the peers; ARGS="--against jax,numpy --family put,get"
	@python bench/run.py $(jax_python) $(ARGS)

bench-gpu: setup ## copies to, from and on a GPU against plain calls of the CUDA driver
	@python bench/gpu.py $(ARGS)

curves: setup ## only the curves of docs/performance_rows.md: time against bytes, shards, devices, leaves
	@python bench/curves.py $(jax_python) $(ARGS)
	@python bench/performance_page.py

performance: setup ## all numbers of the performance pages again, on a quiet machine, in 50 minutes; with JAX after `make oracle`
	@mkdir -p build
	@python bench/run.py --json build/table_1.json $(jax_python) $(ARGS)
	@python bench/curves.py $(jax_python) $(ARGS)
	@python bench/run.py --json build/table_2.json $(jax_python) $(ARGS)
	@python bench/report.py build/table_1.json build/table_2.json --json bench/table.json
	@python bench/performance_page.py

performance-page: setup ## the performance pages, their pictures and the table of README.md of the committed numbers
	@python bench/performance_page.py

calibration: setup ## calibrates this machine, checks it, and writes the tables of docs/how_to/calibrate.md; on a quiet machine
	@python bench/calibration.py --update $(ARGS)

instructions: setup ## instructions of the hot calls, by callgrind, against bench/instructions.json; ARGS=--update to record
	$(stage) "instructions of hot calls" python bench/instructions.py $(ARGS)

wheel: setup ## an sdist and a self-contained wheel for each Python found, each proved in an empty environment
	@python -m pip install -qq --group wheel
	@tools/make_wheels.sh

wheel-oldest: setup ## the README from a wheel on a bare Debian 11, whose interpreter is built there; as root
	$(stage) "README on Debian 11" tools/test_oldest.sh

wheel-aarch64: setup ## a wheel for aarch64, cross-compiled; its C++ tests and the README run under qemu
	@python -m pip install -qq --group wheel
	@TARGET=aarch64 tools/make_wheels.sh

release: setup ## checks versions, builds and checks sdist and wheels, and lists what is left to do by hand
	@python -m pip install -qq --group wheel
	@tools/release.py

oracle: setup ## the differential tests against real JAX, in an environment of their own
	@tools/make_oracle.sh
	$(stage) "tests against JAX" .venv-oracle/bin/python -m pytest $(in_parallel) tests/oracle $(ARGS)

clean: ## removes what was built; the environments stay
	@rm -rf build dist wheelhouse .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@rm -f .venv/stamp
