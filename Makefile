# Everything a user types. See README.md.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
FRIT := target/release/frit
DIST := target/dist/frit
# A target directory set from outside would hide the program from the line above.
unexport CARGO_TARGET_DIR

.PHONY: help toolchain clients wasm-target programs build dist demo test format lint deny pages docs plain results unit golden systems test-peers test-s3 objects-live explore damage bench stress trees conform clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

toolchain:
	@{ command -v $(CARGO) && $(CARGO) --version; } >/dev/null || { \
	  echo "frit needs Rust 1.95 or newer: install rustup from your distribution, then run 'rustup toolchain install 1.95.0' (rust-toolchain.toml)" >&2; exit 1; }
	@command -v cc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq gcc libc6-dev; \
	  else echo "frit needs a C compiler for zstd and xz: install gcc (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; fi; }

# Foreign clients that tests put to a served volume. A test without its program says that it is skipped.
CLIENTS := nbdinfo:libnbd-bin nbdsh:python3-libnbd qemu-io:qemu-utils fio:fio nbdkit:nbdkit fusermount3:fuse3 mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs

clients: ## what tests serve volumes to: installed as root on Debian, else named
	@missing=""; for c in $(CLIENTS); do command -v "$${c%%:*}" >/dev/null || missing="$$missing $${c##*:}"; done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    { timeout 120 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null 2>&1 \
	      || echo "could not install$$missing: tests that need them are skipped" >&2; \
	  else echo "tests that need$$missing are skipped: install them to run all" >&2; fi; fi

# The library of the Rust compiler for programs in WebAssembly. Without it, their tests are skipped.
wasm-target:
	@rustc --print target-libdir --target wasm32-unknown-unknown | xargs test -d \
	  || timeout 300 rustup target add wasm32-unknown-unknown >/dev/null 2>&1 \
	  || echo "could not install the target wasm32-unknown-unknown: tests of programs in Rust are skipped" >&2

programs: toolchain wasm-target ## the example programs for in-storage processing, out/programs (docs/guide/isp-programs.md)
	@mkdir -p out/programs
	for f in $(filter-out examples/isp/frit.rs,$(wildcard examples/isp/*.rs)); do rustc --edition 2024 --target wasm32-unknown-unknown -O \
	  -C panic=abort -C strip=symbols --crate-type cdylib -o out/programs/$$(basename $$f .rs).wasm $$f; done

build: toolchain ## the program with everything, target/release/frit
	$(CARGO) build --release --locked -p frit-cli $(BUILD_FLAGS)

dist: toolchain ## the program with fat LTO, target/dist/frit: slow to build, for publication and measurements
	$(CARGO) build --profile dist --locked -p frit-cli

# Without programs in WebAssembly, whose compiler takes a third of the time of a build from nothing. Where it has been
# built, the demo leaves the whole program in its place. `make build` always builds the whole program.
demo: FEATURES = $(if $(wildcard target/release/deps/libwasmtime-*.rlib),,--no-default-features)
demo: toolchain ## HFSL beside the same flash without PCM: a recording on which it loses, and small updates on which it wins
	@mkdir -p out
	$(CARGO) build --release --locked -p frit-cli $(FEATURES) $(BUILD_FLAGS)
	$(FRIT) run --stack stacks/demo-no-pcm.toml --stack stacks/demo-hfsl.toml --stack stacks/demo-hfsl-dimm.toml \
	  --trace traces/mail-60k.csv.zst --trace gen:zipf,count=200k,size=512,align=512,span=4M,read=0.2,theta=1.1 \
	  --compact --warm fill --qd 4 --html out/demo.html
	@echo
	@echo "The same with plots: out/demo.html"

# `unit` compiles everything for the tests, and lints it in the same pass. `plain` checks the crates once more, without
# code. `lint` and `docs` are for developers.
test: toolchain clients wasm-target format pages unit plain ## everything that must pass

# clippy-driver is the compiler, with lints. It takes its arguments as cargo-clippy passes them.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

format:
	$(CARGO) fmt --all --check
	python3 scripts/check_paths.py

lint: format ## formatting, and clippy of everything without warnings
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --no-default-features --locked -- -D warnings

# Not a part of `make test`: the list of advisories changes without a change of frit.
deny: toolchain ## licences, advisories and duplicates of dependencies (deny.toml), with cargo-deny and a network
	@command -v cargo-deny >/dev/null || { \
	  echo "frit needs cargo-deny for this: run 'cargo install --locked cargo-deny'" >&2; exit 1; }
	$(CARGO) deny check

pages:
	python3 scripts/check_links.py
	python3 scripts/check_names.py

docs: pages ## the pages, and documentation of the crates without warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

# What `make demo` builds: everything without programs in WebAssembly, whose compiler takes long to check.
plain:
	RUSTDOCFLAGS="-D warnings" $(LINTED) $(CARGO) doc --workspace --no-deps --no-default-features --locked --quiet
	$(LINTED) $(CARGO) check --workspace --bins --no-default-features --locked --quiet

results: build ## the output of frit reproduce in the pages of docs/results; PAGES=ntl selects pages; 35 minutes for all
	scripts/results.py $(PAGES)

unit:
	@grep -E '^[A-Z]+_.*SEED' .cargo/config.toml | sed 's/^/seed: /'
	$(LINTED) scripts/build_times.py gate -- $(CARGO) test --workspace --locked --no-run
	$(LINTED) scripts/run_tests.py $(CARGO) test --workspace --locked
# Benchmarks only have to compile: with what is there by now it takes less time than a check.
	$(LINTED) $(CARGO) test --workspace --locked --benches --no-run --quiet
	$(LINTED) $(CARGO) test --workspace --locked --doc --quiet
# The transports again, with requests through io_uring.
	$(LINTED) scripts/with_rings.sh $(CARGO) test --workspace --locked --test transports

systems: clients build ## suites against foreign systems, before an issue closes; as root, an hour; SUITES="peers s3" selects some
	CARGO="$(CARGO)" scripts/systems.sh $(SUITES)

test-peers: build ## hit counts of eviction policies beside libCacheSim's, from PyPI
	scripts/peers.sh test

test-s3: toolchain ## stores of objects on a real S3 server (versitygw, installed with Go into target/tools); skipped without Go
	CARGO="$(CARGO)" scripts/test-s3.sh

golden: toolchain ## reports of all built-in stacks as they were recorded; RECORD=1 records those of this program
	$(CARGO) test --workspace --locked --test all -- --ignored golden::all

explore: toolchain clients ## an hour of the tests with fresh seeds, each round in another order (docs/design/testing.md)
	scripts/explore.sh --minutes 60

# Seeds are fixed in `make test`; here each run has its own, which is printed.
damage: toolchain ## damage of closed and killed volumes and images through every way to their data; SEED=N EACH=N CASES=N
	@seed=$${SEED:-$$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}; echo "repeat with: make damage SEED=$$seed EACH=$${EACH:-8} CASES=$${CASES:-200}"; \
	SEED=$$seed EACH=$${EACH:-8} $(CARGO) test --locked -q -p frit-volume --test all damage:: -- --nocapture && \
	SEED=$$seed CASES=$${CASES:-200} $(CARGO) test --locked -q -p frit-torture --test all -- --nocapture fsdamage:: planted::fs_damage::

bench: export FRIT := $(DIST)
bench: dist ## speed and memory, each beside a baseline measured in the same run
	$(CARGO) bench --profile dist --locked -p frit-replay --bench frit
	$(CARGO) bench --profile dist --locked -p frit-layer --bench index
	scripts/peers.sh bench
	scripts/bench-nbd.sh
	scripts/bench-fs.sh
	scripts/bench_requests.py --frit $(DIST)
	scripts/bench_isp.py --frit $(DIST)
	scripts/bench_isp_kinds.py --frit $(DIST)
	scripts/bench_isp_mount.py --frit $(DIST)
	scripts/bench_isp_volume.py --frit $(DIST)
	scripts/bench_isp_users.py --frit $(DIST)

stress: build ## file systems and databases on volumes, servers killed under them; as root, half an hour
	scripts/stress-fs.sh
	scripts/kill-loop.sh --kills 100

TREES := halo-hfsl halo-mirror halo-thin halo-objects,log.size=1G,media.remote.objects=512,media.remote.url=objects \
  hfsl-two-nand four-layers

trees: KILLS ?= 20
trees: clients build ## kills of servers, ext4 and databases on trees and composers; as root; 40 minutes, KILLS=100 100 minutes
	scripts/live-trees.sh --kills $(KILLS)
	for stack in $(TREES); do \
	  scripts/kill-loop.sh --stack $$stack --size stack --kills $(KILLS) --load 1 --check-every 5 || exit; \
	done

objects-live: test-s3 ## a served volume over segments on an S3 server that is stopped and killed; needs Go, ten minutes
	$(CARGO) build --locked --release -p frit-cli --features s3 --target-dir target/s3
	scripts/objects-live.sh target/s3/release/frit target/tools/bin/versitygw-*

# Loads of Debian for a mounted file system; pjdfstest and fsx come from crates.io into target/tools.
conform: CLIENTS += stress-ng:stress-ng dbench:dbench postmark:postmark fs_mark:fsmark bonnie++:bonnie++ pg_lsclusters:postgresql git:git
conform: clients build ## POSIX, loads and databases on a mounted ISPFS, its daemon killed under it, in an image and in a pool; as root, 50 minutes
	scripts/fs-suite.sh
	scripts/fs-kill.sh --self-test
	scripts/fs-kill.sh --kills 100
	scripts/fs-kill.sh --kills 30 --dir /var/tmp --sync none
	scripts/fs-suite.sh --pool --quick
	scripts/fs-kill.sh --pool --kills 100

clean: ## what was built
	$(CARGO) clean
	rm -rf out
