#!/bin/sh
# postmark.sh DIRECTORY TRANSACTIONS: PostMark (small files of a mail server) with a quarter as many files.
set -eu
postmark <<COMMANDS
set location $1
set number $(($2 / 4))
set subdirectories 20
set transactions $2
set size 500 20000
set seed 7
run
quit
COMMANDS
