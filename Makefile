# SPDX-License-Identifier: Apache-2.0
# make              build/otrn, build/libotrn.a, build/libotrn.so (also the plugin for JAX): a C compiler is enough
# make check        fast tests, offline, parallel, and a minute of fuzzing; T=pass/cse runs those whose name has it;
#                   bless T=… rewrites goldens
# make asan         the same tests under the address and undefined-behaviour sanitizers
# make tsan         the plugin's and the runtime's threaded tests under the thread sanitizer
# make levels       the tests of every host level (AVX-512, AMX …) over a model of the instructions; T=matmul_test one of them
# make conformance  StableHLO test programs on evaluator and chip, from ../shared/conformance or DIR=path
# make bench        measurements; also those beside JAX when .venv is there (./dev makes it)
# make fuzz         random damage to the inputs of every reader: SECONDS_EACH=10 or RUNS=10000000, SEED=1
# make composition  predicted steps put together of layers, against programs compiled whole, in every layout
# make sides        one step predicted from a configuration, from Transformers' module and from plain JAX; T=trn2,bert: some rows
# make sane         what must hold of any prediction, of nine families of models in pairs of layouts (tests/python/test_sane.py)
# make accuracy     published kernels and whole training steps rebuilt and priced, with the error of each
# make diff         random programs, chip against evaluator and against JAX's CPU: MINUTES=60 each, SEED=1, PYTHON=.venv/bin/python
# make table        what training steps cost on trn1.32xlarge and trn2.48xlarge, told alike by otrn, C and Python
# make models       whole training steps beside JAX's CPU: losses, parameters, time, memory; half an hour, 20 GB
# make zoo          72 training steps of many kinds priced for three chips; SINCE=commit: beside that release; T=gpt, CHIPS=trn1, JSON=file
# make same         do two compilers make the same instructions of the tests' programs and the zoo's: SINCE=commit, T=conv
# make namespaces   training over four hosts in network namespaces: the bits of one process, failures named, slow hosts found; needs root
# make ranks        PyTorch over 2 and 4 processes: DDP, FSDP2, TP, TP x FSDP, pipelines, checkpoints; CPU, neuron, neuron without graphs; needs torch
# make launchers    programs under torchrun, Slurm, Open MPI 4 and 5 (OMPI5=folder) and sshd, on such hosts; what is not installed is skipped
# make fleet        13 kinds of parallel program over layouts of processes: the same bits, and bytes on the wire beside XLA's; T=tp,moe
# make jax-processes JAX=folder   JAX's own tests of several processes, on 2 and 4, beside its CPU backend
# make opinfo             PyTorch operator samples on the device `neuron` (ROAD=graph: captured); needs ./dev test-torch once
# make device-tests TORCH=folder   PyTorch's own tests for any device (NAMES="test_torch test_view_ops"), the share that passes and what fails
# make eager              host time of small eager operators on it beside the CPU
# make wheel-check  the Python package as a stranger gets it: sdist, wheel, fresh environments; needs a network
# make abi HEADER=pjrt_c_api.h    our PJRT declarations against the official ones
# make kill-train   training runs killed at random moments and resumed, 1 and 4 processes: RUNS=150 each, SEED=1
# make power-cut    power lost at random moments of a training run, and what was not flushed with it: RUNS=200, SEED=1
# make s3           checkpoints on a real S3 server, Ceph's radosgw, which is killed, full and refuses; skipped where it is not installed; PyTorch's and Orbax' too
# make recipes      what README, ARCHITECTURE and docs tell to run, and the numbers they show: UPDATE=1 writes those printed into the pages
# make install PREFIX=/usr/local  and uninstall; DESTDIR= is honoured; other targets: format, arm64, clean
BUILD   ?= build
# One spelling of the folder, from here where it lies here: dependency files name objects by it.
override BUILD := $(subst $(CURDIR)/,,$(abspath $(BUILD)))
PREFIX  ?= /usr/local
CC      ?= cc
WERROR  ?= -Werror
OPT     ?= -O2 -g
VERSION := $(shell sed -n 's/^.define OTRN_RELEASE "\(.*\)"/\1/p' include/otrn.h)
SONAME  := libotrn.so.$(basename $(VERSION))# until 1.0 the second number may change the interface
FLAGS   := -std=gnu11 -Wall -Wextra $(WERROR) -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -pthread \
           -Iinclude -Isrc -I. -DOTRN_SOURCE_DIR='"."' $(SAN)
LIBS    := -pthread -lm -ldl
SHARED  := -shared $(if $(SAN),,-Wl,-z,defs)

# Folders, each before those that include it (tests/tools/tidy.sh holds them to it): the machine and its clock stand before the
# compiler, which asks them for prices. All is one library, and the program one call of it.
STOPS   := base net coll hlo read write isa mach artifact clock pass spmd tile chip/core chip/host chip/gpsimd rt pjrt train tools
MAIN    := src/tools/otrn.c
SRC     := $(filter-out $(MAIN),$(foreach s,$(STOPS),$(sort $(wildcard src/$s/*.c))))
UNIT    := $(sort $(wildcard tests/unit/*_test.c))
FUZZ_RUN := tests/fuzz/run_fuzz.c tests/fuzz/plan_fuzz.c tests/fuzz/plugin_fuzz.c
FUZZ    := $(filter-out $(FUZZ_RUN),$(sort $(wildcard tests/fuzz/*_fuzz.c)))
FUZZING := tests/fuzz/driver.c tests/fuzz/mutate.c
EXAMPLE := $(sort $(wildcard examples/c/*.c))
BENCH   := $(sort $(wildcard bench/*.c))
obj      = $(patsubst %.c,$(BUILD)/obj/%.o,$1)
bin      = $(patsubst %.c,$(BUILD)/%,$1)
CONFORM := $(BUILD)/tests/conformance/conformance
TESTS   := $(call bin,$(UNIT) $(EXAMPLE)) $(CONFORM)

all: $(BUILD)/otrn $(BUILD)/libotrn.so

$(BUILD)/obj/src/chip/%.o $(BUILD)/obj/src/tile/sched%.o: OPT := $(subst -O2,-O3,$(OPT))
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(OPT) $(FLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$(call obj,src/mach/chips.c): $(wildcard chips/*.chip) chips/instances.table chips/accelerators.table chips/errors.csv
$(call obj,src/train/data.c): ARCHITECTURE.md HACKING.md spec/isa.md spec/artifact.md

$(BUILD)/libotrn.a: $(call obj,$(SRC))
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/libreaders.a: $(call obj,$(filter-out $(addprefix src/,tile/% chip/% rt/% pjrt/% tools/%),$(SRC)))
	@rm -f $@
	ar rcs $@ $^
$(BUILD)/libotrn.so: $(call obj,$(SRC))
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $(SHARED) -Wl,-soname,$(SONAME) $^ $(LIBS) -o $@
	@ln -sf libotrn.so $(BUILD)/$(SONAME)
$(BUILD)/otrn: $(call obj,$(MAIN)) $(BUILD)/libotrn.a
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
$(call bin,$(UNIT) $(EXAMPLE) $(BENCH)): $(BUILD)/%: $(BUILD)/obj/%.o $(BUILD)/libotrn.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
$(call bin,$(FUZZ)): $(BUILD)/%: $(BUILD)/obj/%.o $(call obj,$(FUZZING)) $(BUILD)/libreaders.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
$(call bin,$(FUZZ_RUN)): $(BUILD)/%: $(BUILD)/obj/%.o $(call obj,$(FUZZING)) $(BUILD)/libotrn.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
$(CONFORM): $(call obj,$(wildcard tests/conformance/*.c)) $(BUILD)/libotrn.a
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
$(BUILD)/tests/runner: $(BUILD)/obj/tests/runner.o
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $^ -o $@

# The fuzz targets run as tests of a few seconds each, sanitized; T leaves them out unless it names them.
SMOKE   := $(if $(T),$(findstring fuzz,$(T)),fuzz)
SMOKES  := $(if $(SMOKE),$(patsubst %.c,$(BUILD)$(if $(SAN),,/asan)/%,$(FUZZ)))
check bless: all $(BUILD)/tests/runner $(TESTS) $(call bin,$(BENCH)) $(if $(SMOKE),fuzz-build)
	@$(BUILD)/tests/runner -b $(BUILD) $(if $(T),-T '$(T)') $(if $(filter bless,$@),-u) $(TESTS) $(SMOKES)

DIR ?= ../shared/conformance
conformance: $(CONFORM)
	@if [ -d $(DIR) ]; then $(CONFORM) $(DIR); else echo "skipped: no folder $(DIR) (DIR=path names another)"; fi

# gcc warns about what only the sanitizers' own code does, so warnings are off here.
SANITIZED = $(MAKE) BUILD=$(BUILD)/asan OPT='-O1 -g' WERROR=-w SAN='-fsanitize=address,undefined -fno-sanitize-recover=all \
    -fno-omit-frame-pointer'
asan:
	+@$(SANITIZED) check
# Threads: the plugin's queue, events and locks, the cache's claims, cores that meet in collectives.
THREADED = root_test net_test net_fail_test stop_test pjrt_test pjrt_threads_test pool_test coll_test threads_test
tsan:
	+@$(MAKE) BUILD=$(BUILD)/tsan OPT='-O1 -g' WERROR=-w SAN='-fsanitize=thread' all $(THREADED:%=$(BUILD)/tsan/tests/unit/%)
	@for t in $(THREADED); do echo "tsan $$t"; TSAN_OPTIONS='halt_on_error=0 exitcode=66' $(BUILD)/tsan/tests/unit/$$t \
	    > $(BUILD)/tsan/$$t.log 2>&1 || { tail -60 $(BUILD)/tsan/$$t.log; exit 1; }; done; echo "no races found"
# Every host level on any x86 host with AVX2: a model of the instructions it lacks stands in their place (tests/model). The
# chip's objects come before the library's, whose own are left there.
LEVELS := host_test matmul_test dma_test effect_test engine_test elem_test gp_test gp_kern_test plan_test
MODEL  := -mavx2 -mf16c -Wno-psabi -D_GNU_SOURCE= -include tests/model/avx512.h
MODELS := $(patsubst %.c,$(BUILD)/levels/obj/%.o,src/base/host.c src/base/probe.c $(filter src/chip/%,$(SRC)))
$(BUILD)/levels/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(OPT) $(FLAGS) $(CFLAGS) $(MODEL) -MMD -MP -c $< -o $@
$(LEVELS:%=$(BUILD)/levels/%): $(BUILD)/levels/%: $(BUILD)/levels/obj/tests/unit/%.o $(MODELS) $(BUILD)/libotrn.a
	$(CC) $(FLAGS) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@
levels: $(LEVELS:%=$(BUILD)/levels/%)
	@for t in $(if $(T),$(filter $(T),$(LEVELS)),$(LEVELS)); do echo "levels $$t"; $(BUILD)/levels/$$t > $(BUILD)/levels/$$t.log 2>&1 || \
	    { grep -v '^ok' $(BUILD)/levels/$$t.log | tail -20; exit 1; }; done; echo "all levels agree"
fuzz:
	+@$(SANITIZED) fuzz-run
ifdef SAN
fuzz-build: $(call bin,$(FUZZ))
else
fuzz-build:
	+@$(SANITIZED) fuzz-build
endif
fuzz-run: $(call bin,$(FUZZ) $(FUZZ_RUN))
	@for f in $(if $(T),$(foreach f,$^,$(if $(findstring $(T),$f),$f)),$^); do \
	    $$f $(if $(RUNS),runs=$(RUNS),seconds=$(or $(SECONDS_EACH),10)) seed=$(or $(SEED),1) || exit 1; done

# What differs is reduced by itself; the files stay here.
PYTHON ?= .venv/bin/python
diff: $(BUILD)/otrn $(BUILD)/tests/unit/random_test
	$(BUILD)/tests/unit/random_test minutes=$(or $(MINUTES),60) $(or $(SEED),1)
	@if [ -x $(PYTHON) ]; then BUILD=$(abspath $(BUILD)) $(PYTHON) tests/random/diff_jax.py --minutes $(or $(MINUTES),60) $(or $(SEED),1); \
	else echo "skipped JAX: no $(PYTHON) (./dev setup makes it)"; fi

# The clock against published kernels and whole training steps: error per row, per family, over all.
sane: all
	ALL_SANE=1 $(PYTHON) -m pytest -q -p no:cacheprovider tests/python/test_sane.py

composition: all
	$(PYTHON) accuracy/composition.py $(if $(T),--only='$(T)')

sides: all
	$(PYTHON) accuracy/sides.py $(if $(T),--only='$(T)')

accuracy: all
	python3 accuracy/accuracy.py $(BUILD)/otrn
	python3 accuracy/gpus.py
	@if [ -x $(PYTHON) ]; then $(PYTHON) accuracy/steps.py && $(PYTHON) accuracy/roofs.py; \
	else echo "skipped whole steps: no $(PYTHON) (./dev setup makes it)"; fi

table: all $(call bin,examples/c/price_program.c)
	$(PYTHON) scripts/table.py --otrn=$(BUILD)/otrn --folder=$(BUILD)/table $(if $(T),--only='$(T)')
gpt-same: all
	$(PYTHON) scripts/gpt_same.py --otrn=$(BUILD)/otrn

models: all
	$(PYTHON) scripts/models.py --otrn=$(BUILD)/otrn --folder=$(BUILD)/models $(if $(T),--only='$(T)')

zoo: all
	$(PYTHON) scripts/zoo/zoo.py --otrn=$(BUILD)/otrn --build=$(BUILD) $(if $(SINCE),--since='$(SINCE)') $(if $(T),--only='$(T)') \
	    $(if $(CHIPS),--chips=$(CHIPS)) $(if $(JSON),--json='$(JSON)')

# For changes of shape that must change no program.
same: all
	$(PYTHON) scripts/same.py --build=$(BUILD) --since='$(or $(SINCE),HEAD)' $(if $(T),--only='$(T)')

# How near matrix products come to the tensor engine's peak, modelled.
products: all
	python3 scripts/products.py --otrn=$(BUILD)/otrn --folder=$(BUILD)/products $(if $(T),--only='$(T)')

# Attention and its gradients, modelled, beside a published kernel.
attention: all
	$(PYTHON) scripts/attention.py --otrn=$(BUILD)/otrn --folder=$(BUILD)/attention $(if $(T),--only='$(T)')

bench: all $(call bin,$(BENCH))
	@bad=; for b in $(call bin,$(BENCH)); do $$b || { echo "$$b: status $$?"; bad="$$bad $$b"; }; done; \
	    ./dev bench || bad="$$bad ./dev bench"; [ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

namespaces: all
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) tests/namespaces/hosts.py $(BUILD)/otrn

# Programs over several devices, as one process and as several: ../shared/fleet (skipped where that is absent).
fleet: all
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) scripts/fleet.py --wire $(if $(T),--only=$(T))
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) scripts/fleet.py $(if $(T),--only=$(T))

# JAX's tests/multiprocess; JAX: the folder of its sources.
jax-processes: all
	@[ -n "$(JAX)" ] || { echo "usage: make jax-processes JAX=path/to/jax"; exit 2; }
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) scripts/jax_processes.py $(JAX) $(T)

launchers: all
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) tests/namespaces/launchers.py $(BUILD)/otrn $(T)

ranks: all
	ALL_RANKS=1 OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=$(CURDIR)/python $(PYTHON) -m pytest -q -p no:cacheprovider \
	    tests/torch/test_processes.py -k "every_way$(if $(T), and $(T))"

# Scripts that say nothing of opentrn, on the device `neuron` beside the CPU.
unedited: all
	@OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=python$(if $(PYTHONPATH),:$(PYTHONPATH)) .venv/bin/python scripts/unedited.py $(if $(T),--only='$(T)')

opinfo: all
	@OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=python .venv/bin/python tests/torch/opinfo.py $(if $(ROAD),--road=$(ROAD)) $(T)

# PyTorch's tests for any device; TORCH: its sources, NAMES: files of TORCH/test.
device-tests: all
	@[ -n "$(TORCH)" ] || { echo "usage: make device-tests TORCH=path/to/pytorch [NAMES=test_torch] [T=name]"; exit 2; }
	@OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=python .venv/bin/python -W ignore scripts/device_tests.py $(TORCH) $(NAMES) $(if $(T),--only='$(T)')

eager: all
	@OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) PYTHONPATH=python .venv/bin/python bench/eager_bench.py $(if $(T),--only='$(T)')

wheel-check:
	python3 scripts/wheel_check.py $(if $(JAX),--jax=$(JAX))

abi:
	@[ -n "$(HEADER)" ] || { echo "usage: make abi HEADER=path/to/pjrt_c_api.h"; exit 2; }
	@scripts/abi_check.sh "$(HEADER)"

kill-train: all
	sh scripts/kill_train.sh $(BUILD)/otrn $(or $(RUNS),150) $(or $(SEED),1) 1
	sh scripts/kill_train.sh $(BUILD)/otrn $(or $(RUNS),150) $(or $(SEED),1) 1 40 4

# Writes recorded, cut off, and what was not flushed lost at random.
$(BUILD)/power_record.so: scripts/power_record.c
	$(CC) -O1 -fPIC -shared -Wall -Wextra $(WERROR) $< -o $@ -ldl -pthread
power-cut: all $(BUILD)/power_record.so
	python3 scripts/power_cut.py $(BUILD)/otrn $(BUILD)/power_record.so $(or $(RUNS),200) $(or $(SEED),1)
	python3 scripts/power_cut.py $(BUILD)/otrn $(BUILD)/power_record.so $(or $(RUNS),200) $(or $(SEED),1) 4

# SERVER= runs the checks against the server that AWS_ENDPOINT_URL names.
SERVER  ?= sh scripts/s3_server.sh
s3: all
	$(SERVER) python3 scripts/s3_check.py $(BUILD)/otrn
	OTRN_PJRT_LIBRARY=$(abspath $(BUILD)/libotrn.so) JAX_PLATFORMS=opentrn OPENTRN_DEVICES=4 $(SERVER) $(PYTHON) scripts/s3_python.py

recipes: all
	$(PYTHON) scripts/recipes.py $(if $(UPDATE),--update) $(T)

# What install puts where, one list for it and for uninstall; pages and completions come from the program's own tables.
AT      := $(DESTDIR)$(PREFIX)
COMMANDS = $(shell $(BUILD)/otrn info commands | cut -d' ' -f1)
PAGES    = otrn.1 $(COMMANDS:%=otrn-%.1)
SHELLS   = bash=bash-completion/completions/otrn zsh=zsh/site-functions/_otrn fish=fish/vendor_completions.d/otrn.fish
FILES    = bin/otrn lib/libotrn.a lib/libotrn.so lib/$(SONAME) lib/libotrn.so.$(VERSION) lib/pkgconfig/otrn.pc include/otrn.h \
    $(PAGES:%=share/man/man1/%) $(foreach s,$(SHELLS),share/$(lastword $(subst =, ,$s)))
install: all
	install -d $(sort $(dir $(FILES:%=$(AT)/%))) $(AT)/share/opentrn/chips
	install -m 755 $(BUILD)/otrn $(AT)/bin
	install -m 644 $(BUILD)/libotrn.a $(AT)/lib
	install -m 755 $(BUILD)/libotrn.so $(AT)/lib/libotrn.so.$(VERSION)
	ln -sf libotrn.so.$(VERSION) $(AT)/lib/$(SONAME) && ln -sf $(SONAME) $(AT)/lib/libotrn.so
	install -m 644 include/otrn.h $(AT)/include
	install -m 644 $(wildcard chips/*.chip) chips/instances.table chips/accelerators.table chips/errors.csv chips/software.csv $(AT)/share/opentrn/chips
	for c in '' $(COMMANDS); do $(BUILD)/otrn info man $$c > $(AT)/share/man/man1/otrn$${c:+-$$c}.1 || exit 1; done
	for s in $(SHELLS); do $(BUILD)/otrn info $${s%%=*} > $(AT)/share/$${s#*=} || exit 1; done
	printf 'Name: otrn\nDescription: an open Trainium\nVersion: %s\nLibs: -L%s/lib -lotrn\nLibs.private: %s\nCflags: -I%s/include\n' \
	    '$(VERSION)' '$(PREFIX)' '$(LIBS)' '$(PREFIX)' > $(AT)/lib/pkgconfig/otrn.pc
uninstall: all
	rm -f $(FILES:%=$(AT)/%)
	rm -rf $(AT)/share/opentrn

format:
	clang-format -i $(wildcard src/*/*.[ch] include/*.h tests/*.c tests/*/*.c examples/c/*.c bench/*.c)
arm64: # a compile check of the portable paths
	$(MAKE) BUILD=$(BUILD)/arm64 CC=aarch64-linux-gnu-gcc all
clean:
	rm -rf $(BUILD)

.PHONY: gpt-same s3 power-cut kill-train all check bless conformance asan tsan fuzz fuzz-build fuzz-run diff models table products attention zoo same bench namespaces launchers fleet jax-processes ranks opinfo device-tests eager unedited wheel-check recipes abi install uninstall format arm64 clean levels composition sides sane
.SECONDARY:
-include $(shell find $(BUILD)/obj $(BUILD)/levels/obj -name '*.d' 2>/dev/null)
