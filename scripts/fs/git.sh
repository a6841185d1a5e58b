#!/bin/bash
# git.sh REPOSITORY CLONE: a clone that copies every object, its check, old and new trees, a branch, a commit, gc.
set -eu -o pipefail
from=$(git -C "$1" rev-parse --path-format=absolute --git-common-dir)
head=$(git -C "$1" rev-parse HEAD)
git clone --quiet --no-hardlinks --no-checkout "$from" "$2"
cd "$2"
git fsck --full --no-progress
git -c advice.detachedHead=false checkout --quiet "$head"
git checkout --quiet "$(git rev-list --max-count=1 --skip=20 HEAD)"
git checkout --quiet "$head"
[ -z "$(git status --porcelain)" ]
git checkout --quiet -b suite
date >>README.md
git -c user.name=suite -c user.email=suite@localhost -c commit.gpgsign=false commit --quiet --all --message 'Change a line'
git gc --quiet --prune=now
git fsck --full --strict --no-progress
git checkout --quiet "$head"
[ -z "$(git status --porcelain)" ]
git ls-files | wc -l
