# A thin front door: meson.build describes the build, tools/ does the work, `make help` lists what there is.
# make CC=clang builds in build-clang: another compiler, or BUILD=NAME, gets a folder and a package of its own.
PYTHON3 ?= python3
ifeq ($(origin CC),default)
  CC := gcc
endif
ifeq ($(origin CC)$(filter gcc cc,$(notdir $(lastword $(CC)))),command line)
  BUILD ?= build-$(notdir $(lastword $(CC)))
endif
BUILD ?= build
CCACHE := $(if $(findstring ccache,$(CC)),,$(shell command -v ccache))
MESON_CC := $(strip $(notdir $(CCACHE)) $(CC))
VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
MESON := $(VENV)/bin/meson
NINJA := $(VENV)/bin/ninja
ARGS ?=

# The ordinary build is placed in python/ember; any other in a package of its own, which PYTHONPATH then names.
ifeq ($(BUILD),build)
  PACKAGE := $(CURDIR)/python
  SETUP :=
else
  PACKAGE := $(CURDIR)/$(BUILD)/python
  SETUP := -Dpackage_dir=$(PACKAGE)
endif
export PYTHONPATH := $(PACKAGE)
export PATH := $(VENV)/bin:$(PATH)
# Checkouts share ccache's results: the folder is part of debug information only.
export CCACHE_NOHASHDIR := 1
export EMBER_BUILD := $(CURDIR)/$(BUILD)

.PHONY: all venv test demo bench bench-overhead bench-pointwise bench-c same-run coverage docs-ops proofs parity lint format asan tsan fault fuzz fuzz-asan fuzz-files gen-diff new-op wheel sdist abi portability clean help

all: $(BUILD)/build.ninja  ## build (sets .venv up once)
	@$(NINJA) -C $(BUILD)

$(BUILD)/build.ninja: | $(VENV)/.ember-dev
	CC="$(MESON_CC)" $(MESON) setup $(BUILD) $(SETUP) $(MESONFLAGS)

# .venv may be a symlink to a ready environment; then nothing is installed into it.
$(VENV)/.ember-dev: requirements-dev.txt
	@if [ -L $(VENV) ]; then [ -x $(MESON) ] || { echo "$(VENV) has no meson"; exit 1; }; \
	else \
	    [ -x $(PY) ] || $(PYTHON3) -m venv $(VENV); \
	    $(VENV)/bin/pip install -q --disable-pip-version-check -r requirements-dev.txt && \
	    echo "$(CURDIR)/python" > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ember.pth" && \
	    touch $@; \
	fi

$(VENV)/.ember-demo: requirements-demo.txt | $(VENV)/.ember-dev
	@if [ ! -L $(VENV) ]; then \
	    $(VENV)/bin/pip install -q --disable-pip-version-check -r requirements-demo.txt && touch $@; \
	fi

venv: $(VENV)/.ember-dev

test: all $(VENV)/.ember-demo  ## every test; last line `N passed, N failed, N skipped` (ARGS="--fast", ARGS="-k name")
	@$(PY) tools/run_tests.py --build $(BUILD) $(ARGS)

demo: all $(VENV)/.ember-demo  ## train a network on handwritten digits
	@$(PY) -m ember examples/python/train_digits.py $(ARGS)

bench: all  ## speed of whole operators, beside PyTorch (EMBER_ORACLE: a Python that has it)
	@$(PY) bench/bench_torchlike.py $(ARGS)

bench-pointwise: all  ## speed of loops and products, and what importing costs
	@$(PY) bench/bench_pointwise.py $(ARGS)
	@$(PY) bench/bench_start.py

bench-overhead: all  ## fixed cost of a call, beside PyTorch (EMBER_ORACLE: a Python that has it)
	@$(PY) bench/bench_overhead.py $(ARGS)

bench-c: all $(VENV)/.ember-demo  ## C programs beside Python's: the same training, the cost of a call
	@$(PY) bench/bench_c.py $(ARGS)

same-run: all $(VENV)/.ember-demo  ## the examples on PyTorch and on Ember: losses compared step by step
	@$(PY) tools/same_run.py $(ARGS)

docs-ops: venv  ## the reference of operators, from the rows into docs/ops (not under version control)
	@$(PY) tools/docs_ops.py $(ARGS)

coverage: all  ## PyTorch's public names by namespace and tier: which exist, which are tested
	@$(PY) tools/coverage.py $(ARGS)

parity: all  ## the same calls in real PyTorch and in Ember; writes docs/parity.md
	@$(PY) tests/parity/run_samples.py $(ARGS)

proofs: all $(VENV)/.ember-demo  ## five programs that show how the machine works
	@for proof in proofs/*.py; do echo "== $$proof"; $(PY) $$proof || exit 1; done

lint: | $(VENV)/.ember-dev  ## include arrows, sizes, headers that stand alone, names that exist
	@$(PY) tools/lint.py $(ARGS)

format:  ## wrap lines of C longer than 140 columns, touch no other (needs clang-format)
	@python3 tools/wrap.py $(ARGS)

asan:  ## C tests and a part of the Python tests under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory all BUILD=build-asan \
	    MESONFLAGS="-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1"
	@$(MAKE) --no-print-directory test BUILD=build-asan ARGS="--asan $(ARGS)"

# The library and its C tests alone: Python is not instrumented. Suppressions, and why: tests/c/tsan.txt.
tsan: | $(VENV)/.ember-dev  ## C tests under the thread sanitizer
	@[ -f build-tsan/build.ninja ] || CC="$(MESON_CC)" $(MESON) setup build-tsan -Dpackage_dir=$(CURDIR)/build-tsan/python \
	    -Db_sanitize=thread -Db_lundef=false -Doptimization=1
	@TSAN_OPTIONS="suppressions=$(CURDIR)/tests/c/tsan.txt halt_on_error=1" $(MESON) test -C build-tsan --suite c --print-errorlogs $(ARGS)

fault: all  ## every allocation of every operator fails once
	@EMBER_TEST_FULL=1 $(PY) tools/run_tests.py --build $(BUILD) --only fault $(ARGS)

fuzz: all  ## random calls, until stopped or for ARGS="--seconds N"; ARGS=--operators: hostile calls; ARGS=--files: damaged files
	@$(PY) tests/fuzz/run.py $(ARGS)

fuzz-asan:  ## hostile calls of every operator under the sanitizers, until stopped or for ARGS="--seconds N"
	@$(MAKE) --no-print-directory all BUILD=build-asan \
	    MESONFLAGS="-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1"
	@LD_PRELOAD=$$(realpath $$(gcc -print-file-name=libasan.so)) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	    PYTHONPATH=$(CURDIR)/build-asan/python $(PY) tests/fuzz/run.py --operators $(ARGS)

fuzz-files: | $(VENV)/.ember-dev  ## damaged files through the readers of C, under clang's libFuzzer, until stopped or ARGS="-max_total_time=N"
	@[ -f build-fuzz/build.ninja ] || CC="$(notdir $(CCACHE)) clang" $(MESON) setup build-fuzz -Dfuzz=true -Doptimization=1 \
	    -Dpackage_dir=$(CURDIR)/build-fuzz/python -Db_sanitize=address,undefined -Db_lundef=false
	@$(NINJA) -C build-fuzz tests/fuzz/fuzz_files_libfuzzer
	@mkdir -p build-fuzz/corpus
	@cd build-fuzz && ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1 ./tests/fuzz/fuzz_files_libfuzzer \
	    -max_len=65536 -timeout=10 -rss_limit_mb=2048 $(ARGS) corpus ../tests/data

gen-diff: | $(VENV)/.ember-dev  ## what a change of rows or generator does to the generated code (ARGS="--base main")
	@$(PY) tools/gen_diff.py $(ARGS)

new-op: | $(VENV)/.ember-dev  ## skeletons for a new operator: make new-op ARGS='pointwise "f(Tensor self) -> Tensor"'
	@$(PY) tools/new_op.py $(ARGS)

# Compiled as the ordinary build compiles (ccache then has most of it), with the tools of .venv; MESON_ARGS adds options.
DIST ?= dist
wheel: | $(VENV)/.ember-dev  ## a wheel in dist/ (DIST=FOLDER)
	@env -u PYTHONPATH CC="$(MESON_CC)" $(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
	    --config-settings=setup-args=-Dwerror=true -w $(DIST) . && \
	    for wheel in $(DIST)/ember-*-linux_*.whl; do $(PY) tools/tag_wheel.py $$wheel || exit 1; done && ls -l $(DIST)/ember-*.whl

sdist: | $(VENV)/.ember-dev  ## a source distribution of what is committed, in dist/ (DIST=FOLDER)
	@env -u PYTHONPATH CC="$(MESON_CC)" $(PY) tools/make_sdist.py $(DIST)

abi: all  ## the stable face of libember.so: writes docs/abi.txt
	@$(PY) tools/abi.py list --build $(BUILD) --write

portability: | $(VENV)/.ember-dev  ## the oldest x86-64 and aarch64, under qemu (minutes; needs qemu-user, gcc-aarch64-linux-gnu)
	@tools/portability.sh $(ARGS)

clean:  ## remove build folders (.venv stays)
	rm -rf build build-* python/ember/_C.*.so python/ember/libember.so* dist

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1 -/p' Makefile
