# Everything a user types. See README.md.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
FRIT := target/release/frit
# A target directory set from outside would hide the program from the line above.
unexport CARGO_TARGET_DIR

.PHONY: help toolchain build demo test lint docs unit guide bench clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

toolchain:
	@command -v $(CARGO) >/dev/null || { \
	  echo "frit needs Rust 1.95 or newer: install rustup from your distribution, then 'rustup toolchain install stable'" >&2; exit 1; }
	@command -v cc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq gcc libc6-dev; \
	  else echo "frit needs a C compiler for zstd and xz: install gcc (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; fi; }

build: toolchain ## the program, target/release/frit
	$(CARGO) build --release --locked -p frit-cli

demo: build ## HFSL beside the same flash without PCM, on a bundled recording
	@mkdir -p out
	$(FRIT) run --stack stacks/demo-no-pcm.toml --stack stacks/demo-hfsl.toml --stack stacks/demo-hfsl-dimm.toml \
	  --trace traces/mail-60k.csv.zst \
	  --compact --warm fill --html out/demo.html
	@echo
	@echo "The same with plots: out/demo.html"

test: toolchain lint docs unit guide ## everything that must pass

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet

unit:
	$(CARGO) test --workspace --locked

guide:
	scripts/extending.sh

bench: build ## speed and memory, each beside a baseline measured in the same run
	$(CARGO) bench --locked -p frit-replay --bench frit
	scripts/bench-nbd.sh

clean: ## what was built
	$(CARGO) clean
	rm -rf out
