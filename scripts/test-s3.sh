#!/usr/bin/env bash
# Tests the stores of objects against a real S3 server: versitygw over a temporary directory, on the loopback
# interface. Installs versitygw with the Go toolchain if it is missing. Without both, says that it is skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.8.0
tools=$PWD/target/tools/bin
program=$tools/versitygw-$version
if [ ! -x "$program" ]; then
  if ! command -v go > /dev/null; then
    echo "test-s3: skipped: versitygw is not installed, and there is no Go toolchain to install it" >&2
    exit 0
  fi
  mkdir -p "$tools"
  if ! GOBIN=$tools go install "github.com/versity/versitygw/cmd/versitygw@$version"; then
    echo "test-s3: skipped: versitygw $version cannot be installed" >&2
    exit 0
  fi
  mv "$tools/versitygw" "$program"
fi
cargo=${CARGO:-cargo}
$cargo clippy --locked -p frit-objects --all-targets --features s3,gs,az -- -D warnings
export FRIT_VERSITYGW=$program AWS_ACCESS_KEY_ID=frit AWS_SECRET_ACCESS_KEY=frit-secret
$cargo test --locked -p frit-objects --features s3 -- s3:: cloud::
