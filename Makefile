# attnbench: `make help` lists what this file does. There is no configure step.
#
# What can be set on the command line:
#   CC=clang                      the compiler (gcc 11 or newer, clang 14 or newer), for another machine too, with a BUILD of
#                                 its own: CC=aarch64-linux-gnu-gcc BUILD=build/aarch64
#   BUILD=folder                  where everything that is built goes
#   SANITIZE=address,undefined    or SANITIZE=thread: an instrumented build in a folder of its own
#   TRAP=yes                      undefined behaviour ends an instrumented program, and is not told in words
#   QUICK=1                       kernels that are built in a third of the time, and slower
#   SINCE=1a2b3c4                 what `make lint` looks at: sources that have changed since that commit, or a header of theirs (all)
#   EMULATED_FROM=build           the emulated device is taken from that folder, where `make emulated` has built it
#   WERROR=1                      warnings are errors
#   SETUP=no                      install nothing; say what is missing
#   PYTHON=python3.12             which Python runs the tests of bindings/python
#   V=1                           show the commands as they run
#   PREFIX=/usr/local DESTDIR=    where `make install` puts what it installs, and what stands in front of that
#   ARGS="--variant fused"        more arguments for `make bench`, `verify`, `gate`, `peers` and `mutants`

ifeq ($(origin CC),default)
  CC := gcc
endif
ifeq ($(SANITIZE),)
  BUILD ?= build
else ifeq ($(SANITIZE),thread)
  BUILD ?= build-tsan
else
  BUILD ?= build-asan
endif
RESULTS ?= results
PREFIX ?= /usr/local
PYTHON ?= python3

PROGRAM := $(BUILD)/attnbench
VARIANTS := $(BUILD)/attnbench_variants.so

# ---- What this machine has ------------------------------------------------------------------------

# $(call has_header,name,flags): "yes" when the compiler finds the header.
has_header = $(shell $(CC) $(2) -include $(1) -E -x c /dev/null >/dev/null 2>&1 && echo yes)
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null)
ARCHITECTURE := $(firstword $(subst -, ,$(TARGET)))
# What pkg-config knows, and what lies in /usr/include itself, is of this machine: nothing for another one.
NATIVE := $(filter $(ARCHITECTURE),$(shell uname -m))
HAVE_JANSSON := $(call has_header,jansson.h)
HAVE_GNUPLOT := $(shell command -v gnuplot 2>/dev/null)

# OpenBLAS is called from our own threads and told to start none itself. Of Debian's three builds only the
# one with pthreads is safe so: the serial one has no locks, the OpenMP one brings gcc's runtime to clang.
# Naming its folder at run time too keeps the others, where they are installed, away.
PTHREAD := /usr/lib/$(ARCHITECTURE)-linux-gnu/openblas-pthread
ifneq ($(wildcard $(PTHREAD)/libopenblas.so),)
  BLAS_CFLAGS := -I$(subst /usr/lib,/usr/include,$(PTHREAD))
  BLAS_LIBS := -L$(PTHREAD) -Wl,-rpath,$(PTHREAD) -lopenblas
else ifneq ($(NATIVE),)
  BLAS_CFLAGS := $(shell pkg-config --cflags openblas 2>/dev/null)
  BLAS_LIBS := $(shell pkg-config --libs openblas 2>/dev/null)
endif
ifneq ($(BLAS_LIBS),)
  HAVE_OPENBLAS := $(call has_header,cblas.h,$(BLAS_CFLAGS))
endif

# ---- What is built, from which files --------------------------------------------------------------

# $(call sources,folder): every C file below it, in whichever folder.
sources = $(sort $(shell find $(1) -name '*.c' 2>/dev/null))
HARNESS_SOURCES := $(call sources,harness)
REFERENCE_SOURCES := $(call sources,reference)
# What links MPI is an object of its own.
TEAM_SOURCES := $(filter variants/team/%,$(call sources,variants))
VARIANT_SOURCES := $(filter-out $(TEAM_SOURCES),$(call sources,variants))
TEAM_PLUGIN_SOURCES := $(call sources,tests/plugins/team tests/adversary/team)
ADVERSARY_SOURCES := $(filter-out $(TEAM_PLUGIN_SOURCES),$(call sources,tests/adversary))
TEST_PLUGIN_SOURCES := $(filter-out $(TEAM_PLUGIN_SOURCES),$(call sources,tests/plugins)) $(if $(SANITIZE),,$(ADVERSARY_SOURCES))
TEST_SOURCES := $(filter %.c,$(shell find tests -name 'test_*.c' 2>/dev/null | sort))
# What instrumented builds leave out: these run scripts and compilers, and nothing of theirs is instrumented, or what is
# has run in test_plugins; and accuracy, bounds and which bits a batch has are a matter of the numbers, which are the same: their
# kernels and checks run in test_variants, test_properties and test_verify. Nor are the kernels of the emulated device instrumented;
# what is around a device runs in test_device and test_failing_device.
UNINSTRUMENTED_TESTS := $(patsubst %,tests/scripts/test_%.c,adversary ci_plan decode gate_script scale install mutants python rooms readme_example \
  run_tests walks_of_readers) tests/verify/test_hints.c tests/gate/test_gate_alone.c tests/walks/test_ci_owner.c \
  tests/variants/test_accuracy.c tests/variants/test_batch_invariance.c tests/variants/test_cuda.c tests/verify/test_bound.c \
  tests/verify/test_narrow.c tests/measure/test_cluster.c
ifeq ($(SANITIZE),thread)
  # Nor those that start no thread, in which ThreadSanitizer can see nothing.
  UNINSTRUMENTED_TESTS += $(filter tests/base/% tests/gate/% tests/reference/% tests/report/% tests/test_option%,$(TEST_SOURCES)) \
    tests/measure/test_complexity.c tests/measure/test_crossover.c \
    $(patsubst %,tests/variants/test_%.c,emulation pattern_visibility position visibility)
  # Nor those that run the program and read what it says: they start no other threads than test_verify and test_bench.
  UNINSTRUMENTED_TESTS += tests/test_cli.c tests/verify/test_fuzz.c tests/verify/test_fitting.c
endif
TEST_SUPPORT_SOURCES := $(filter-out $(TEST_SOURCES) $(TEST_PLUGIN_SOURCES) $(TEAM_PLUGIN_SOURCES) $(ADVERSARY_SOURCES),$(call sources,tests))

ifeq ($(HAVE_OPENBLAS),)
  VARIANT_SOURCES := $(filter-out variants/blas.c variants/layer.c,$(VARIANT_SOURCES))
  BLAS_CFLAGS :=
  BLAS_LIBS :=
else
  DEFINES += -DATTN_HAVE_OPENBLAS
endif

# Files named for an instruction set exist only where that does, and get the flags for it further down.
ELSEWHERE := %avx2.c %avx512.c %avx512_bf16.c %avx512_amx.c %neon.c %neon_bf16.c
TILE_SETS := $(ELSEWHERE) %portable.c %emulated_bf16.c %emulated_amx.c
ifeq ($(ARCHITECTURE),x86_64)
  DEFINES += -DATTN_X86_64
  QUADMATH := -lquadmath
  ELSEWHERE := $(filter-out %avx2.c %avx512.c %avx512_bf16.c %avx512_amx.c,$(ELSEWHERE))
endif
ifeq ($(ARCHITECTURE),aarch64)
  DEFINES += -DATTN_AARCH64
  ELSEWHERE := $(filter-out %neon.c %neon_bf16.c,$(ELSEWHERE))
endif
HARNESS_SOURCES := $(filter-out $(ELSEWHERE),$(HARNESS_SOURCES))
VARIANT_SOURCES := $(filter-out $(ELSEWHERE),$(VARIANT_SOURCES))

ifneq ($(and $(NATIVE),$(call has_header,valgrind/memcheck.h)),)
  DEFINES += -DATTN_HAVE_MEMCHECK
endif

object = $(patsubst %.c,$(BUILD)/%.o,$(1))
COMMON_OBJECTS := $(call object,$(filter-out harness/main.c,$(HARNESS_SOURCES)) $(REFERENCE_SOURCES))
PROGRAM_OBJECTS := $(COMMON_OBJECTS) $(call object,harness/main.c)
VARIANT_OBJECTS := $(call object,$(VARIANT_SOURCES))
RELINKS := $(patsubst %,$(BUILD)/relinks/%.so,1 2 3 4)
# A test may look into any room, so it is linked with an archive of everything but main.c, which gives it what it looks into.
TEST_LINKED_OBJECTS := $(sort $(COMMON_OBJECTS) $(VARIANT_OBJECTS) $(call object,$(TEST_SUPPORT_SOURCES) variants/team/block.c))
TESTS := $(patsubst %.c,$(BUILD)/%,$(filter-out $(if $(SANITIZE),$(UNINSTRUMENTED_TESTS)),$(TEST_SOURCES)))
# What `make test` leaves to `make test-full` and CI, for people wait for it: each takes more than ten seconds of a processor, and
# says again at length what a shorter test or another command (make lint, make adversary, a property) holds as well.
LONG_TESTS := tests/scripts/test_adversary.c tests/scripts/test_ci_plan.c tests/scripts/test_rooms.c tests/gate/test_gate_alone.c \
  tests/variants/test_accuracy.c tests/variants/test_batch_invariance.c tests/walks/test_ci_owner.c tests/scripts/test_walks_of_readers.c
# What meets a few problems in `make test`, and many with ATTN_TEST_FULL.
DRAWING_TESTS := tests/scripts/test_readme_example.c tests/verify/test_narrow.c tests/verify/test_properties.c \
  tests/variants/test_tile.c tests/variants/test_variants.c tests/variants/test_cuda.c tests/run/test_team.c
TEST_PLUGINS := $(TEST_PLUGIN_SOURCES:%.c=$(BUILD)/%.so)
DEVICE_PLUGINS := $(patsubst %.cu,$(BUILD)/%.so,$(wildcard tests/plugins/*.cu))

# Variants whose work is spread over processes (variants/team): by mpicc, where it is installed, of whichever MPI.
HAVE_MPI := $(and $(NATIVE),$(if $(SANITIZE),,yes),$(shell command -v mpicc))
MPICC := OMPI_CC="$(CC)" MPICH_CC="$(CC)" mpicc
TEAM := $(if $(and $(HAVE_MPI),$(TEAM_SOURCES)),$(BUILD)/attnbench_mpi.so)
TEAM_RUNTIME := $(BUILD)/team/runtime.o
TEAM_PLUGINS := $(if $(TEAM),$(TEAM_PLUGIN_SOURCES:%.c=$(BUILD)/%.so))
ADVERSARIES := $(ADVERSARY_SOURCES:%.c=$(BUILD)/%.so) $(filter $(BUILD)/tests/adversary/%,$(TEAM_PLUGINS))

# Of scripts/scale, by SimGrid's compiler: the same sources of variants, whose loops over elements are simulated (model.c).
SCALE := $(BUILD)/scale/rates $(BUILD)/scale/simulate
SCALE_MODELLED := attend join finish rows_clear

# What scripts/kernels measures beside attnbench.
KERNEL_TOOLS := $(patsubst %,$(BUILD)/scripts/kernels/%,tile_steps decode_reads additive_share mask_share $(if $(HAVE_OPENBLAS),two_sgemm))

# What reads what scripts/layer.sh measures.
CROSSOVER := $(BUILD)/scripts/layer/crossover

# What prints the tables of docs/method.md.
RATES := $(BUILD)/scripts/method/rates
# The problems that verify poses, for scripts/adversary.sh.
LIST_PROBLEMS := $(BUILD)/scripts/list_problems/list_problems
# Of docs/power.md.
POWER := $(BUILD)/scripts/power/power

# Kernels for GPUs: by nvcc where it is installed, and by a C++ compiler for an emulated device.
CUDA_SOURCES := $(sort $(wildcard variants/cuda/*.cu))
CXX := $(patsubst %gcc,%g++,$(subst clang,clang++,$(CC)))
HAVE_CXX := $(shell $(CXX) -std=gnu++17 -include cmath -E -x c++ /dev/null >/dev/null 2>&1 && echo yes)
# Where nvcc is and no GPU, only `make cuda` builds for one.
NVCC := $(shell command -v nvcc >/dev/null && echo nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
# Of the same toolkit; named at run time too, for it lies where no loader looks.
CUBLAS := $(firstword $(wildcard $(addsuffix /libcublas.so,$(if $(NVCC),$(patsubst %/bin/nvcc,%/lib64,$(realpath $(shell command -v $(NVCC))))) \
  /usr/lib/$(ARCHITECTURE)-linux-gnu)))
CUBLAS_LIBS := $(if $(CUBLAS),-L$(dir $(CUBLAS)) -Xlinker -rpath -Xlinker $(dir $(CUBLAS)) -lcublas)
EMULATION := $(BUILD)/emulated/device.o
EMULATED := $(if $(and $(HAVE_CXX),$(CUDA_SOURCES)),$(BUILD)/attnbench_emu.so)
CUDA := $(BUILD)/attnbench_cuda.so
HAVE_GPU := $(and $(NATIVE),$(NVCC),$(wildcard /dev/nvidiactl))

# Of a repository whose root this is: sources unpacked inside another one are of no commit (COMMIT=1a2b3c4). Who only installs,
# as root, may not ask git.
COMMIT := $(or $(shell if git rev-parse --git-dir >/dev/null 2>&1; then test -z "$$(git rev-parse --show-prefix 2>&1)" && \
  git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null; elif [ -e .git ]; then cat $(BUILD)/commit 2>/dev/null; fi),unknown)

HEADERS := $(shell find harness reference variants -name '*.h' 2>/dev/null)

# For other languages (bindings/python): rooms up to verify/ as a library, and a plugin whose variants are functions of Python.
# No Python loads what is instrumented.
PYTHON_PARTS := $(if $(SANITIZE),,$(BUILD)/libattnbench.so $(BUILD)/attnbench_python.so)
LIBRARY_SOURCES := bindings/python/native/library.c bindings/python/native/timed.c $(REFERENCE_SOURCES) \
  $(filter harness/base/% harness/problem/% harness/run/% harness/verify/%,$(HARNESS_SOURCES))

# ---- Flags ----------------------------------------------------------------------------------------

# DWARF 4, for valgrind 3.19 cannot read the DWARF 5 that clang writes. Where variables are in which instruction of a kernel
# takes gcc a third of all its time to say, and has not been asked yet.
CFLAGS ?= -gdwarf-4 -fno-var-tracking
# `report *report` is fine: only a variable that hides another one is not. clang's -Wshadow means that.
SHADOW := $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),-Wshadow,-Wshadow=local)
WARNINGS := -Wall -Wextra -Wpedantic $(SHADOW) -Wconversion -Wno-sign-conversion $(if $(WERROR),-Werror)
ifneq ($(SANITIZE),)
  SANITIZE_FLAGS := -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
  ifneq ($(findstring undefined,$(SANITIZE)),)
    SANITIZE_FLAGS += $(if $(TRAP),-fsanitize-undefined-trap-on-error,-fno-sanitize-recover=undefined)
  endif
endif
# GNU ld takes three times as long for what instrumentation adds, and there are a hundred tests to link; and for kernels twice as long,
# of which each planted fault links all.
ifneq ($(SANITIZE)$(QUICK),)
  LDFLAGS += $(firstword $(foreach linker,lld gold,$(if $(shell command -v ld.$(linker)),-fuse-ld=$(linker))))
endif
# Rooms are named in includes: "base/text.h" is harness/base/text.h.
ALL_FLAGS := -std=gnu17 $(WARNINGS) -fopenmp $(SANITIZE_FLAGS) $(DEFINES) $(BLAS_CFLAGS) -I. -Iharness

# The instrument and the reference round the same way everywhere, so products and sums are not fused.
# Kernels may fuse them, and start at aligned addresses so that a change elsewhere does not move them.
# All of it may become a part of a library.
INSTRUMENT_FLAGS := -O2 -ffp-contract=off -fPIC -fno-semantic-interposition
# Instrumented for addresses at -O3, the tiles of one instruction set take gcc minutes; at -O1 30 s, at -O0 two, and what verifies all
# variants takes a third longer. For threads clang takes 4 s at -O1. And of planted faults it matters only whether they are caught.
KERNEL_LEVEL := $(if $(QUICK),-O0,$(if $(SANITIZE),-O1,-O3))
TILE_LEVEL := $(if $(filter-out thread,$(SANITIZE)),-O0)
KERNEL_FLAGS := $(KERNEL_LEVEL) -fPIC -fvisibility=hidden -falign-functions=64
AVX2_FLAGS := -mavx2 -mfma -mf16c
AVX512_FLAGS := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma
NEON_BF16_FLAGS := -march=armv8.2-a+bf16

ISA_FLAGS :=
FILE_FLAGS = $(INSTRUMENT_FLAGS)
$(BUILD)/variants/%.o $(BUILD)/variants/%.tidy: FILE_FLAGS = $(KERNEL_FLAGS) $(ISA_FLAGS)
$(call object,$(filter $(TILE_SETS),$(VARIANT_SOURCES))): FILE_FLAGS = $(KERNEL_FLAGS) $(ISA_FLAGS) $(TILE_LEVEL)
$(BUILD)/harness/%.o $(BUILD)/harness/%.tidy: FILE_FLAGS = $(INSTRUMENT_FLAGS) $(ROOM_FLAGS) $(ISA_FLAGS) $(PEAK_FLAGS) $(PLACE_FLAGS) \
  -DATTN_BUILD_FLAGS='"$(strip $(KERNEL_FLAGS) $(SANITIZE_FLAGS) $(CFLAGS))"'
# Of an instrumented build these rooms, and the tests, compute little: at -O1 gcc compiles them in half of the time.
BRIEFLY := $(if $(SANITIZE),-O1)
$(foreach room,base gate measure report,$(BUILD)/harness/$(room)/%.o): ROOM_FLAGS = $(BRIEFLY)
# Only this file knows the commit, and is compiled again when there is another.
$(BUILD)/harness/base/version.o: PLACE_FLAGS = -DATTN_COMMIT='"$(COMMIT)"'
$(BUILD)/harness/base/version.o: $(BUILD)/commit
# Where the program finds its scripts from the folder that it is built in.
$(BUILD)/harness/base/parts.o: PLACE_FLAGS = -DATTN_SCRIPTS='"$(shell realpath -m --relative-to=$(BUILD) scripts)"'
# A peak is of the machine, not of what watches it.
$(BUILD)/harness/machine/peak_%.o: PEAK_FLAGS = $(if $(SANITIZE),-fno-sanitize=all)
$(BUILD)/%avx2.o $(BUILD)/%avx2.tidy: ISA_FLAGS = $(AVX2_FLAGS)
$(BUILD)/%avx512.o $(BUILD)/%avx512.tidy: ISA_FLAGS = $(AVX512_FLAGS)
$(BUILD)/%avx512_bf16.o $(BUILD)/%avx512_bf16.tidy: ISA_FLAGS = $(AVX512_FLAGS) -mavx512bf16
# A loop of eight instructions that crosses a line of 64 bytes takes nearly half as long again on a Zen 4, and gcc puts it where it likes.
$(BUILD)/variants/naive.o $(BUILD)/variants/tile/score_rows.o: ISA_FLAGS = -falign-loops=32
# Nobody asks an emulation how fast it is, and no other file is handed its vectors, which may be wider than the processor's.
$(BUILD)/variants/tile/emulated_%.o $(BUILD)/variants/tile/emulated_%.tidy: ISA_FLAGS = $(if $(filter -O0,$(KERNEL_LEVEL)),,-O1) -Wno-psabi
$(BUILD)/%avx512_amx.o $(BUILD)/%avx512_amx.tidy: ISA_FLAGS = $(AVX512_FLAGS) -mavx512bf16 -mamx-tile -mamx-bf16
$(BUILD)/%neon_bf16.o $(BUILD)/%neon_bf16.tidy: ISA_FLAGS = $(NEON_BF16_FLAGS)
$(BUILD)/tests/%.o $(BUILD)/tests/%.tidy: FILE_FLAGS = $(INSTRUMENT_FLAGS) $(BRIEFLY) -DATTN_SOURCE_DIR='"$(CURDIR)"' \
  -DATTN_BUILD_DIR='"$(abspath $(BUILD))"' -DATTN_CC='"$(CC)"'
$(BUILD)/tests/variants/emulated_avx512.o $(BUILD)/tests/variants/emulated_avx512.tidy: FILE_FLAGS = -O0 -ffp-contract=off -Itests/variants/emulated
$(BUILD)/tests/plugins/%.tidy $(BUILD)/tests/adversary/%.tidy: FILE_FLAGS = -Ivariants

comma := ,
SHOW = $(if $(V),,@echo "  making $@";)
LIBS := -ljansson $(BLAS_LIBS) -ldl -lm

# ---- Targets --------------------------------------------------------------------------------------

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all cuda help test test-full test-aarch64 verify bench plots kernels crossover method power peers test-python gate gate-baseline gate-selftest scale \
  mutants adversary sanitize memcheck memcheck-cuda lint format format-check install uninstall clean tests emulated relinks ptx run-tests run-long-tests run-bench run-peers tidy \
  cppcheck needed force

all: $(PROGRAM) $(VARIANTS) $(PYTHON_PARTS) $(EMULATED) $(TEAM) $(if $(HAVE_GPU),$(CUDA)) ## build the program and its variants (plain `make`)
	@$(if $(HAVE_OPENBLAS),:,echo "OpenBLAS is not installed: the blas and layer variants and the sgemm peak are left out")
	@$(if $(HAVE_CXX),:,echo "$(CXX) is not installed: the emulated device is left out")

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' Makefile

# Setting up can change what the top of this file finds, so the work is done by a second make.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

test: ## set up, build, run the tests, all but a few long ones
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory $(PARALLEL) all tests
	@$(MAKE) --no-print-directory run-tests

test-full: ## the same with the long ones and the long sweeps
	@ATTN_TEST_FULL=1 $(MAKE) --no-print-directory test

# The tests of the numbers, and quick ones of what watches a run. Others start programs and compilers, which are not of that
# architecture, take minutes there, or count the emulator's own memory and instructions (test_footprint, test_instructions).
EMULATED_TESTS := $(filter tests/variants/test_%tile.c tests/variants/test_schedule.c tests/variants/test_visibility.c \
  tests/reference/% tests/verify/test_cases.c tests/run/test_heap_calls.c tests/run/test_runner.c \
  tests/run/test_side_effects.c,$(TEST_SOURCES))
EMULATED_PLUGINS := $(patsubst %,tests/plugins/%.c,calls_heap side_effects)
ACROSS := build/aarch64
test-aarch64: ## the tile tests and a short verification for aarch64: built by a cross compiler, run under qemu
	@scripts/setup.sh aarch64
	@$(MAKE) --no-print-directory $(PARALLEL) CC=aarch64-linux-gnu-gcc BUILD=$(ACROSS) SANITIZE= \
	  all $(EMULATED_TESTS:%.c=$(ACROSS)/%) $(EMULATED_PLUGINS:%.c=$(ACROSS)/%.so)
	@scripts/aarch64.sh $(ACROSS) $(EMULATED_TESTS:%.c=$(ACROSS)/%)

# A register that is spilled costs more than the instructions around it: none may be.
cuda: all ## build the CUDA variants for GPUs too, where nvcc is installed
	@$(if $(NVCC),$(MAKE) --no-print-directory $(PARALLEL) $(CUDA),echo "nvcc is not installed: the CUDA variants are built for the emulated device alone")
	@$(if $(NVCC),$(if $(CUBLAS),:,echo "cuBLAS is not installed: the cuda_cublas variant is left out"),:)
	@$(if $(NVCC),! grep -h -B 2 -E '[1-9][0-9]* bytes spill' $(BUILD)/cuda/*.ptxas,:)

verify: all ## hold every variant to the reference
	$(PROGRAM) verify $(ARGS)

bench: ## set up, build, verify, measure, plot; everything lands in results/latest
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@$(MAKE) --no-print-directory run-bench

plots: all ## draw the pictures of results/latest again (JSON=file: of that file, beside it)
	$(PROGRAM) plots $(or $(JSON),$(RESULTS)/latest/results.json)

peers: ## measure fused beside PyTorch, ONNX Runtime, oneDNN and OpenVINO, or a GPU's kernels beside PyTorch's (ARGS="--help": options)
	@if command -v python3 >/dev/null; then python3 scripts/peers/options.py $(ARGS); fi
ifeq ($(findstring --help,$(ARGS)),)
	@scripts/peers/setup.sh $(BUILD)/peers/venv $$(python3 scripts/peers/options.py --names $(ARGS))
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@$(MAKE) --no-print-directory run-peers
endif

test-python: all ## hold kernels of PyTorch, JAX, ONNX Runtime and Triton to the reference (ARGS="--help": options)
	@scripts/peers/setup.sh $(BUILD)/peers/venv torch onnxruntime jax triton
	@ATTNBENCH_HOME=$(CURDIR) $(BUILD)/peers/venv/bin/python bindings/python/real/run.py $(ARGS)

scale: ## simulate the variants of a team on 1024 nodes (SimGrid) and draw it; everything lands in results/scale
	@scripts/setup.sh scale
	@$(MAKE) --no-print-directory $(PARALLEL) all $(SCALE)
	@now=scale-$$(date -u +%Y-%m-%dT%H-%M-%SZ); scripts/scale/scale.sh $(BUILD) $(RESULTS)/$$now && ln -sfn $$now $(RESULTS)/scale

kernels: all $(KERNEL_TOOLS) ## show how close the fast kernels come to what the machine can do
	@scripts/kernels/table.sh $(BUILD)

crossover: ## show from where attention takes longer than the projections of a layer (results/layer: the picture)
	@scripts/setup.sh bench
	@$(MAKE) --no-print-directory $(PARALLEL) all $(CROSSOVER)
	@$(if $(HAVE_OPENBLAS),scripts/layer.sh $(BUILD) $(RESULTS)/layer $(ARGS),:)

method: $(RATES) ## draw sweeps of known truth and write docs/method.md's tables of how often what is said of them holds
	@scripts/tables.sh docs/method.md rates $(RATES) 2000

power: $(POWER) $(VARIANTS) ## run right and wrong kernels and write docs/power.md's tables of what each check sees (some minutes)
	@scripts/tables.sh docs/power.md power $(POWER) $(VARIANTS)

gate: ## did anything get slower, bigger or wrong? BASE=<git ref> (the merge base with main), ARGS="--budget 60"
	@scripts/setup.sh bench
	@scripts/gate.sh "$(BASE)" $(ARGS)

gate-baseline: ## renew tests/gate/baseline.json: what is compared where no base can be built
	@scripts/gate.sh --baseline

gate-selftest: ## false alarms, power and cost of the gate, short; FULL=1: 30 and 20 runs; TABLE=1: only print
	@scripts/gate_selftest.sh $(if $(TABLE),table,$(if $(FULL),full,short))

# Those of a team have a table of their own.
OF_TEAM = $(filter $(ARGS),$(shell sed -n 's/^name: //p' tests/mutants/team_faults.txt))
mutants: all ## plant faults into the variants, one at a time; each must be caught (ARGS=NAME: one)
	+@$(if $(OF_TEAM),,scripts/mutants.sh $(BUILD) $(ARGS))
	@$(if $(and $(filter-out --since=%,$(ARGS)),$(if $(OF_TEAM),,yes)),,scripts/team_mutants.sh $(BUILD) $(filter-out --since=%,$(ARGS)))

adversary: all $(ADVERSARIES) $(LIST_PROBLEMS) ## attack with wrong, misbehaving and right kernels (ARGS=NAME: one; FULL=1: longer; TABLE=1: write it)
	@scripts/adversary.sh $(BUILD) $(if $(FULL),--full) $(if $(TABLE),--readme) $(ARGS)

sanitize: ## run the tests under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
	@scripts/sanitize.sh

memcheck: all $(BUILD)/tests/plugins/planted.so ## run a small verification under valgrind's memcheck
	@scripts/memcheck.sh $(PROGRAM) $(BUILD)/tests/plugins/planted.so

memcheck-cuda: all ## run a short verification on cuda:0 under compute-sanitizer, where it, nvcc and a GPU are
	+@NVCC="$(NVCC)" scripts/memcheck_cuda.sh $(BUILD)

lint: ## look for mistakes in all sources with clang-tidy 14 and cppcheck
	@scripts/setup.sh lint
	@scripts/rooms.sh
	@$(MAKE) --no-print-directory $(PARALLEL) -k cppcheck tidy

format: ## lay out all sources with clang-format
	@clang-format -i $(FORMATTED)

format-check: ## fail when a source is not laid out so
	@clang-format --dry-run -Werror $(FORMATTED)

install: all ## install into PREFIX (/usr/local), below DESTDIR where packages are made
	@scripts/install.sh install $(BUILD) "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what `make install` put there
	@scripts/install.sh uninstall $(BUILD) "$(PREFIX)" "$(DESTDIR)"

clean: ## remove what was built (results stay)
	rm -rf build build-asan build-tsan $(BUILD)

FORMATTED = $(shell find variants reference harness tests scripts bindings -name '*.[ch]' -o -name '*.cc' -o -name '*.cu')

# Steps of the targets above.
tests: $(TESTS) $(TEST_PLUGINS) $(TEAM_PLUGINS) $(if $(EMULATED),$(DEVICE_PLUGINS)) $(KERNEL_TOOLS) $(RATES) $(POWER) $(LIST_PROBLEMS) $(CROSSOVER)

emulated: $(if $(EMULATED),$(EMULATED) $(DEVICE_PLUGINS))

relinks: $(RELINKS)

ptx: $(patsubst %.cu,$(BUILD)/ptx/%.ptx,$(notdir $(CUDA_SOURCES) $(wildcard variants/cuda/runtime/*.cu)))

# An instrumented build runs all, for nobody waits for it.
LEFT_OUT = $(if $(SANITIZE)$(ATTN_TEST_FULL),,$(patsubst %.c,$(BUILD)/%,$(LONG_TESTS)))
# The Python module's own tests are among them, where there is what they need.
run-tests:
	@$(PYTHON) -c 'import numpy, pytest' 2>/dev/null || echo "bindings/python is not tested: $(PYTHON) has no numpy or no pytest (PYTHON=...)"
	@$(if $(LEFT_OUT),echo "$(words $(LEFT_OUT)) long tests are left to make test-full: $(notdir $(LEFT_OUT))")
	@PYTHON="$(PYTHON)" scripts/run_tests.sh $(filter-out $(LEFT_OUT),$(TESTS))

# What test-full adds to `make test`, and that alone, but for the UNASKED; one that is not there is a failed test.
run-long-tests:
	@ATTN_TEST_FULL=alone PYTHON="$(PYTHON)" scripts/run_tests.sh $(patsubst %.c,$(BUILD)/%,$(filter-out $(UNASKED),$(LONG_TESTS) $(DRAWING_TESTS)))

SIMULATED := scripts/scale/model.c scripts/scale/simulate.c
LINTED := $(HARNESS_SOURCES) $(REFERENCE_SOURCES) $(VARIANT_SOURCES) $(TEST_SOURCES) $(TEST_SUPPORT_SOURCES) \
  $(TEST_PLUGIN_SOURCES) bindings/python/native/library.c bindings/python/native/timed.c bindings/python/native/bridge.c \
  $(patsubst $(BUILD)/%,%.c,$(KERNEL_TOOLS) $(RATES) $(POWER) $(LIST_PROBLEMS) $(CROSSOVER)) \
  $(if $(HAVE_MPI),$(TEAM_SOURCES) $(TEAM_PLUGIN_SOURCES) scripts/scale/rates.c) $(if $(shell command -v smpicc),$(SIMULATED))

# Of the same text the same tools say the same.
ifneq ($(SINCE),)
LINTED := $(shell scripts/changed.sh $(SINCE) $(BUILD) $(LINTED))
endif

# What variants/tile/.clang-tidy leaves out, and what including a source is for.
$(BUILD)/tests/variants/emulated_avx512.tidy: CHECKS = --checks=-bugprone-implicit-widening-of-multiplication-result,-bugprone-suspicious-include
# The linker makes the names of functions that take the place of others.
$(patsubst %.c,$(BUILD)/%.tidy,$(SIMULATED)): CHECKS = $(MPI_CHECKS),-bugprone-reserved-identifier
# $(call compiler_includes,mpicc): where its headers are, of which nothing is to be said here.
compiler_includes = $(patsubst -I%,-isystem%,$(filter -I%,$(shell $(1) -show 2>/dev/null)))
$(patsubst %.c,$(BUILD)/%.tidy,$(TEAM_SOURCES) $(TEAM_PLUGIN_SOURCES) scripts/scale/rates.c): MORE_FLAGS = $(call compiler_includes,mpicc)
# A communicator is a pointer in one MPI and a number in another, and an array of requests has as many as its count says.
$(patsubst %.c,$(BUILD)/%.tidy,$(TEAM_SOURCES) $(TEAM_PLUGIN_SOURCES) scripts/scale/rates.c): CHECKS = $(MPI_CHECKS)
MPI_CHECKS := --checks=-misc-misplaced-const,-clang-analyzer-optin.mpi.MPI-Checker
$(patsubst %.c,$(BUILD)/%.tidy,$(SIMULATED)): MORE_FLAGS = $(call compiler_includes,smpicc)

tidy: $(patsubst %.c,$(BUILD)/%.tidy,$(LINTED))

# How many states of a function the analyzer looks at: a third of its usual most, which few functions reach and which take
# it half of its time.
# Of tests a third of that, for all that they do is run under AddressSanitizer too; half of the time again.
NODES := 75000
$(patsubst %.c,$(BUILD)/%.tidy,$(TEST_SOURCES) $(TEST_SUPPORT_SOURCES)): NODES := 25000
ANALYZER_FLAGS = -Xclang -analyzer-config -Xclang max-nodes=$(NODES)
# Each file as it is compiled, by clang; nothing is written, so that a change of a header is never missed.
$(BUILD)/%.tidy: %.c force
	$(SHOW) said=$$(clang-tidy --quiet $(CHECKS) $< -- $(filter-out -W%,$(ALL_FLAGS)) $(FILE_FLAGS) $(MORE_FLAGS) $(ANALYZER_FLAGS) 2>&1) || \
	  { echo "$$said"; exit 1; }

cppcheck:
	$(SHOW) [ -z "$(LINTED)" ] || cppcheck --quiet --std=c11 --enable=warning,style,performance,portability --error-exitcode=1 \
	  --suppressions-list=.cppcheck-suppressions --inline-suppr -D__$(firstword $(subst -, ,$(TARGET)))__ \
	  $(DEFINES) $(LINTED)

# A run that is ended with Ctrl-C keeps what it measured, so the link is set then too.
# In a variable, for commas part the arguments of a function of make. Six repetitions of a point are made at
# least: of naive at T 8192 they would take 23 s or more.
BENCH_ARGS = --memory-only naive_backward,fused_backward \
  '--benchmark_filter=-^(block_sparse|naive_linear_backward|linear_backward|layer_naive|layer)/' \
  --point-budget 0.6 --point-limit 2
run-bench: $(PROGRAM) $(VARIANTS)
	@$(PROGRAM) verify --count 20 --every 12
	@trap : INT; now=$$(date -u +%Y-%m-%dT%H-%M-%SZ); \
	$(PROGRAM) bench --out $(RESULTS)/$$now $(or $(ARGS),$(BENCH_ARGS)); status=$$?; \
	$(if $(ARGS),,if [ $$status = 0 ]; then scripts/patterns.sh $(PROGRAM) $(RESULTS)/$$now/patterns --quiet >/dev/null; status=$$?; \
	  grep -A 8 '^Growth' $(RESULTS)/$$now/patterns/summary.txt; echo "Pictures of the patterns lie in $(RESULTS)/$$now/patterns"; fi;) \
	if [ -f $(RESULTS)/$$now/results.json ]; then ln -sfn $$now $(RESULTS)/latest; fi; \
	exit $$status

run-peers:
	@trap : INT; now=peers-$$(date -u +%Y-%m-%dT%H-%M-%SZ); \
	$(BUILD)/peers/venv/bin/python scripts/peers/peers.py --build $(BUILD) --out $(RESULTS)/$$now $(ARGS); \
	status=$$?; \
	if [ -f $(RESULTS)/$$now/results.json ]; then ln -sfn $$now $(RESULTS)/peers; fi; \
	exit $$status

# ---- Rules ----------------------------------------------------------------------------------------

$(PROGRAM): $(PROGRAM_OBJECTS) $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(PROGRAM_OBJECTS) $(LIBS)

$(VARIANTS): $(VARIANT_OBJECTS) $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ $(VARIANT_OBJECTS) $(BLAS_LIBS) -lm

# The work of a rank is that of the tiles, and block.c, which knows nothing of MPI, is tested without it; the runtime alone in one, for
# variants of one's own.
TEAM_OBJECTS := $(call object,$(TEAM_SOURCES))
$(TEAM_OBJECTS): $(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(if $(filter %/block.o,$@),$(CC),$(MPICC)) $(ALL_FLAGS) $(KERNEL_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(TEAM_RUNTIME): $(filter $(BUILD)/variants/team/runtime/%,$(TEAM_OBJECTS))
	@mkdir -p $(@D)
	$(SHOW) $(LD) -r -o $@ $^

$(BUILD)/attnbench_mpi.so: $(filter-out $(BUILD)/variants/team/runtime/%,$(TEAM_OBJECTS)) $(TEAM_RUNTIME) \
    $(filter $(BUILD)/variants/tile/%,$(VARIANT_OBJECTS)) $(BUILD)/sources
	$(SHOW) $(MPICC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) -lm

# As variants/team/README.md says that others do.
$(TEAM_PLUGINS): $(BUILD)/%.so: %.c $(TEAM_RUNTIME) $(wildcard variants/*.h) $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(MPICC) $(ALL_FLAGS) -O1 $(CFLAGS) -fPIC -shared -Ivariants -o $@ $< $(TEAM_RUNTIME) -lm

$(BUILD)/scale/rates: scripts/scale/rates.c $(BUILD)/variants/team/block.o $(filter $(BUILD)/variants/tile/%,$(VARIANT_OBJECTS)) $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(MPICC) $(ALL_FLAGS) -O2 $(CFLAGS) -o $@ $(filter %.c %.o,$^) -lm

# What is copied into a message is simulated too. That the simulated program is one of its own functions' user and not of SimGrid's, says the linker.
$(BUILD)/scale/%.o: variants/team/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) smpicc -std=gnu17 -O2 $(if $(filter %block.c,$<),,-Dmemcpy=model_copy -include scripts/scale/model.h) -I. -MMD -MP -c -o $@ $<

$(BUILD)/scale/%.o: scripts/scale/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) smpicc -std=gnu17 -O2 $(WARNINGS) -I. -MMD -MP -c -o $@ $<

$(BUILD)/scale/simulate: $(patsubst %,$(BUILD)/scale/%.o,simulate model ring ulysses tree_decode block)
	$(SHOW) smpicc -o $@ $^ -Wl,-Bsymbolic $(patsubst %,-Wl$(comma)--wrap=block_%,$(SCALE_MODELLED)) -lm

# Only what library.h declares is seen from outside.
$(BUILD)/libattnbench.so: $(call object,$(LIBRARY_SOURCES)) bindings/python/native/exports.map $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -shared -Wl,-z,defs -Wl,--version-script=bindings/python/native/exports.map \
	  -o $@ $(filter %.o,$^) -ljansson -ldl -lm

$(BUILD)/attnbench_python.so: bindings/python/native/bridge.c variants/attention.h variants/device.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(CC) $(ALL_FLAGS) $(INSTRUMENT_FLAGS) $(CFLAGS) $(LDFLAGS) -fvisibility=hidden -shared -o $@ $<

# What asks the device of each access to memory is the compiler's -fsanitize=thread; the emulation answers in its place.
EMULATED_FLAGS = -std=gnu++17 $(if $(QUICK),-O0,-O2 -g1) -fPIC -fvisibility=hidden $(WARNINGS) $(if $(findstring clang,$(CXX)),,-fno-tree-sra)
$(BUILD)/emulated/%.o: variants/cuda/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(CXX) $(EMULATED_FLAGS) -fsanitize=thread -MMD -MP -x c++ -c -o $@ $<

# All kernels run through these few files, by a fifth faster at -O3.
$(BUILD)/emulated/%.o: variants/cuda/emulation/%.cc $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(CXX) $(EMULATED_FLAGS) -O3 -MMD -MP -c -o $@ $<

# Both in one, for kernels of one's own.
$(EMULATION): $(patsubst variants/cuda/emulation/%.cc,$(BUILD)/emulated/%.o,$(wildcard variants/cuda/emulation/*.cc))
	$(SHOW) $(LD) -r -o $@ $^

ifneq ($(EMULATED_FROM),)
$(BUILD)/attnbench_emu.so $(DEVICE_PLUGINS): $(BUILD)/%.so: $(EMULATED_FROM)/%.so
	@mkdir -p $(@D)
	$(SHOW) cp $< $@
else
$(BUILD)/attnbench_emu.so: $(patsubst variants/cuda/%.cu,$(BUILD)/emulated/%.o,$(CUDA_SOURCES)) $(EMULATION) $(BUILD)/sources
	$(SHOW) $(CXX) -shared -Wl,-z,defs -o $@ $(filter %.o,$^) -ldl

$(DEVICE_PLUGINS): $(BUILD)/%.so: %.cu $(EMULATION)
	@mkdir -p $(@D)
	$(SHOW) $(CXX) $(EMULATED_FLAGS) -I. -fsanitize=thread -MMD -MP -x c++ -c -o $(@:.so=.o) $<
	$(SHOW) $(CXX) -shared -Wl,-z,defs -o $@ $(@:.so=.o) $(EMULATION) -ldl
endif

# For Ampere, Hopper and Blackwell: of which PTX the code for which GPU is made. Hopper's would be Ampere's but for the line that names it,
# and its code the same. What is named for Hopper is for that alone, and device.o has a kernel with instructions of Hopper's own.
CUDA_TARGETS = 80:80 80:90 120:120
$(BUILD)/cuda/%_hopper.o $(BUILD)/ptx/%_hopper.ptx $(BUILD)/ptx/%_hopper.ptxas: CUDA_TARGETS = 90a:90a
$(BUILD)/cuda/device.o $(BUILD)/ptx/device.ptx $(BUILD)/ptx/device.ptxas: CUDA_TARGETS = 80:80 90a:90a 120:120
first_of = $(firstword $(subst :, ,$(1)))
CODE = $(foreach pair,$(CUDA_TARGETS),-gencode arch=compute_$(call first_of,$(pair)),code=sm_$(lastword $(subst :, ,$(pair))))
PTX = $(foreach gpu,$(sort $(foreach pair,$(CUDA_TARGETS),$(call first_of,$(pair)))),-gencode arch=compute_$(gpu),code=compute_$(gpu))
CUDA_WARNINGS := $(if $(WERROR),-Werror all-warnings)
CUDA_FLAGS := -std=c++17 -O3 -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra $(if $(CUBLAS),-DATTN_HAVE_CUBLAS) $(CUDA_WARNINGS)

# What each kernel takes of registers is printed into a .ptxas file beside its object.
define compile_for_gpus
@mkdir -p $(@D)
$(SHOW) $(NVCC) $(CUDA_FLAGS) -lineinfo $(CODE) -Xptxas -v -MMD -MP -x cu -c -o $@ $< 2>$(@:.o=.ptxas) || { cat $(@:.o=.ptxas); exit 1; }
endef
$(BUILD)/cuda/%.o: variants/cuda/%.cu $(BUILD)/flags
	$(compile_for_gpus)
$(BUILD)/cuda/%.o: variants/cuda/runtime/%.cu $(BUILD)/flags
	$(compile_for_gpus)

$(CUDA): $(CUDA_SOURCES:variants/cuda/%.cu=$(BUILD)/cuda/%.o) $(BUILD)/cuda/device.o $(BUILD)/sources
	$(SHOW) $(NVCC) $(CODE) -shared -o $@ $(filter %.o,$^) $(CUBLAS_LIBS)

# The same in two steps, for the gate: ptxas, which has more than half of the work, makes equal code of equal PTX, and is not asked for that.
# To names in anonymous namespaces nvcc adds a hash of the path.
define make_ptx
@rm -rf $(@:.ptx=); mkdir -p $(@:.ptx=)/kept
$(SHOW) $(NVCC) $(CUDA_FLAGS) $(PTX) -MMD -MP -MT $@ -MF $(@:.ptx=.d) --keep --keep-dir $(@:.ptx=)/kept -x cu -c -o $(@:.ptx=)/kept/object.o $<
@cd $(@:.ptx=) && for ptx in kept/*.ptx; do mv $$ptx $$(sed -n 's/^[.]target sm_\([0-9a-z]*\).*/\1/p' $$ptx).ptx || exit; done && rm -r kept && \
  sed 's/_GLOBAL__N__[0-9a-f]*_/_GLOBAL__N__/g' *.ptx >../$(@F)
endef
$(BUILD)/ptx/%.ptx: variants/cuda/%.cu $(BUILD)/flags
	$(make_ptx)
$(BUILD)/ptx/%.ptx: variants/cuda/runtime/%.cu $(BUILD)/flags
	$(make_ptx)

# And the sections of each GPU's binary, which scripts/cuda_code.sh reads, into a .sections file.
$(BUILD)/ptx/%.ptxas: $(BUILD)/ptx/%.ptx
	$(SHOW) cd $(@:.ptxas=) && rm -f said sections && for pair in $(CUDA_TARGETS); do gpu=sm_$${pair#*:}; \
	  $(NVCC) $(CUDA_WARNINGS) -Xptxas -v -cubin -arch=$$gpu -o $$gpu.cubin $${pair%:*}.ptx 2>>said || { cat said; exit 1; }; \
	  echo "cubin $$gpu" >>sections; readelf -SW $$gpu.cubin >>sections 2>/dev/null; \
	done; mv sections ../$*.sections; mv said ../$(@F)

# The kernels with a mistake each, for scripts/memcheck_cuda.sh.
$(BUILD)/cuda/device_mistakes.so: tests/plugins/device_mistakes.cu $(BUILD)/cuda/device.o
	$(SHOW) $(NVCC) -std=c++17 -O3 -lineinfo -Xcompiler -fPIC -I. $(CODE) -x cu -c -o $(@:.so=.o) $<
	$(SHOW) $(NVCC) $(CODE) -shared -o $@ $(@:.so=.o) $(BUILD)/cuda/device.o

# The same objects in other orders, for the gate: where the linker puts a kernel changes its time too.
$(RELINKS): $(BUILD)/relinks/%.so: $(VARIANT_OBJECTS) $(BUILD)/sources
	@mkdir -p $(@D)
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ \
	  $$(printf '%s\n' $(VARIANT_OBJECTS) | awk 'BEGIN { srand($*) } { print rand(), $$0 }' | sort -n | cut -d ' ' -f 2) \
	  $(BLAS_LIBS) -lm

$(BUILD)/tests/rooms.a: $(TEST_LINKED_OBJECTS) $(BUILD)/sources
	@rm -f $@
	$(SHOW) $(if $(filter %gcc,$(CC)),$(CC:%gcc=%ar),ar) rcsT $@ $(filter %.o,$^)

$(TESTS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/tests/rooms.a
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS) $(QUADMATH)

# What some of them ask of the heap and leave on the stack is counted, and is to be what they say. Those that run on much are not to
# take long.
PLUGIN_FLAGS := -O1
$(BUILD)/tests/adversary/%.so $(BUILD)/tests/plugins/narrow.so: PLUGIN_FLAGS = -O2
$(BUILD)/tests/adversary/fast_math.so: PLUGIN_FLAGS = -Ofast -nostartfiles
$(BUILD)/tests/adversary/flushes_when_loaded.so: tests/adversary/fast_math.c
$(BUILD)/tests/adversary/wrong_functions.so: $(call object,$(patsubst %,variants/%.c,naive linear_recurrent naive_linear_backward layer_naive widen) \
  $(filter variants/tile/%,$(VARIANT_SOURCES))) $(BUILD)/sources
$(TEST_PLUGINS): $(BUILD)/%.so: %.c $(wildcard variants/*.h tests/adversary/*.h) $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(CC) $(ALL_FLAGS) $(PLUGIN_FLAGS) $(CFLAGS) -fPIC -shared -Ivariants -o $@ $< $(filter %.o,$^) -lm

$(KERNEL_TOOLS): %: %.o $(sort $(COMMON_OBJECTS) $(VARIANT_OBJECTS)) $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

$(RATES): %: %.o $(COMMON_OBJECTS) $(BUILD)/tests/measure/simulated_sweeps.o $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

$(POWER) $(LIST_PROBLEMS) $(CROSSOVER): %: %.o $(COMMON_OBJECTS) $(BUILD)/sources
	$(SHOW) $(CC) $(ALL_FLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(LIBS)

# -MMD writes beside each object which headers it was made from.
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(SHOW) $(CC) $(ALL_FLAGS) $(FILE_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(addprefix $(BUILD)/,emulated cuda ptx harness reference variants tests scripts bindings scale) -name '*.d' 2>/dev/null)

# The page's look and its script, which the assembler reads into the program.
$(BUILD)/harness/report/page_assets.o: harness/report/page.css harness/report/page.js

# Small files hold what the last build was made with (each make writes one of its own beside, for several may run at a time): everything is built again when the compiler or a
# flag has changed, everything is linked again when a source file was added or removed, version.c when the commit changed.
$(BUILD)/flags: force | needed
	$(call remember,$(CC) $(filter-out -Werror,$(ALL_FLAGS)) $(INSTRUMENT_FLAGS) $(KERNEL_FLAGS) $(filter-out -Werror,$(EMULATED_FLAGS)) $(CFLAGS) $(LDFLAGS))

$(BUILD)/sources: force
	$(call remember,$(HARNESS_SOURCES) $(REFERENCE_SOURCES) $(VARIANT_SOURCES) $(TEAM_SOURCES) $(CUDA_SOURCES) $(TEST_SUPPORT_SOURCES))

$(BUILD)/commit: force
	$(call remember,$(COMMIT))

define remember
@mkdir -p $(@D)
@echo '$(1)' > $@.$$$$; if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi
endef

needed:
	@$(if $(HAVE_JANSSON),:,SETUP=no scripts/setup.sh build)
