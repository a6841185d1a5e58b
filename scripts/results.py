#!/usr/bin/env python3
"""Writes the output of frit into the pages of docs/results.

  scripts/results.py                     run every command, and write every block
  scripts/results.py ntl write-amp       only pages whose names contain one of these
  scripts/results.py --check hfsl        compare without writing; exit with 1 if a block differs
  scripts/results.py --list              the commands, by page

A block is the output of one command, between two markers that the page shows to no reader:

  <!-- output of: frit reproduce 'ntl.*' -->
  <!-- end of output -->

The text around blocks is written by hand and stays. In a page, headings of the output are one level deeper, and lines
of text are broken at 100 characters. The program
is target/release/frit, or FRIT; the recordings are in ../shared/traces, or TRACES. Simulated results are the same in
every run: only the line with the version and the commit changes. Results of this machine (ispfs) vary, so that --check
finds differences there. `make results` builds the program and runs the script.
"""

import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "results"
FRIT = os.environ.get("FRIT", str(ROOT / "target" / "release" / "frit"))
TRACES = os.environ.get("TRACES", str(ROOT / ".." / "shared" / "traces"))
BLOCK = re.compile(r"(<!-- output of: frit (?P<args>[^\n]*) -->\n)(?P<text>.*?)(<!-- end of output -->\n)", re.S)
WIDTH = 100
STAMP = re.compile(r"^Measured by frit .*$", re.M)


def run(arguments, plots):
    """Returns the standard output of a command. A recording that is missing is an error."""
    command = [FRIT, *arguments, "--quiet", "--traces", TRACES, "--plots", str(plots)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0 or "skipped" in done.stderr:
        sys.exit(f"frit {shlex.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def for_page(line):
    """Returns a line of the output as a page has it. Rows of tables and lines without spaces stay."""
    if line.startswith("#"):
        return "#" + line
    if len(line) <= WIDTH or line.startswith("|"):
        return line
    indent = re.match(r"\s*([-*] )?", line)[0]
    rest = {"initial_indent": indent, "subsequent_indent": " " * len(indent)}
    wrapped = textwrap.fill(line[len(indent) :], WIDTH, **rest, break_long_words=False, break_on_hyphens=False)
    # A broken line must not begin like an item of a list or like a heading.
    return re.sub(r"\n(\s*)([-*+#])(?= )", r"\n\1\\\2", wrapped)


def block(output):
    """Returns the text of a block, between empty lines."""
    lines = (for_page(line) for line in output.splitlines())
    return "\n" + "\n".join(lines).strip("\n") + "\n\n"


def without_stamp(text):
    """Returns the text of a block without the version and the commit of its program."""
    return STAMP.sub("", text)


def copy_plots(page, made, write):
    """Replaces the plots that a page shows, and returns the names of those that differ."""
    changed = []
    for plot in sorted(made.glob("*.svg")):
        stored = PAGES / f"{page.stem}-{plot.stem.rpartition('.')[2]}.svg"
        if stored.exists() and stored.read_bytes() != plot.read_bytes():
            changed.append(stored.name)
            if write:
                stored.write_bytes(plot.read_bytes())
    return changed


def update(page, write):
    """Runs the commands of a page, and returns the number of blocks and plots that differ."""
    differing = 0

    def replaced(found):
        nonlocal differing
        arguments = shlex.split(found["args"])
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as made:
            text = block(run(arguments, pathlib.Path(made)))
            plots = copy_plots(page, pathlib.Path(made), write)
        seconds = time.monotonic() - start
        same = without_stamp(text) == without_stamp(found["text"])
        print(f"{page.name}: frit {found['args']}: {'the same' if same else 'DIFFERS'}, {seconds:.0f} s", flush=True)
        for name in plots:
            print(f"{page.name}: {name} DIFFERS")
        differing += len(plots) + (not same)
        if not same and not write:
            old, new = found["text"].splitlines(), text.splitlines()
            print(*difflib.unified_diff(old, new, page.name, "this run", lineterm="", n=0), sep="\n")
        return found[1] + text + found[4]

    text = page.read_text()
    result = BLOCK.sub(replaced, text)
    if write:
        page.write_text(result)
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("pages", nargs="*", help="parts of the names of pages (default: all)")
    parser.add_argument("--check", action="store_true", help="compare without writing")
    parser.add_argument("--list", action="store_true", help="print the commands without running them")
    options = parser.parse_args()
    chosen = [
        page
        for page in sorted(PAGES.glob("*.md"))
        if BLOCK.search(page.read_text()) and (not options.pages or any(part in page.name for part in options.pages))
    ]
    if not chosen:
        sys.exit("no page of docs/results with a block has such a name")
    if options.list:
        for page in chosen:
            print(*(f"{page.name}: frit {found['args']}" for found in BLOCK.finditer(page.read_text())), sep="\n")
        return
    if not pathlib.Path(FRIT).is_file():
        sys.exit(f"{FRIT} does not exist: run `make build`")
    differing = sum(update(page, not options.check) for page in chosen)
    sys.exit(1 if options.check and differing else 0)


if __name__ == "__main__":
    main()
