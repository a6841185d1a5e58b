#!/usr/bin/env python3
"""Checks the links of all Markdown pages, and the names of pages in other files.

  scripts/check_links.py

A relative link must lead to a file or a folder of the project, and an anchor to a heading of its page. A name such
as docs/README.md, in a comment, a message or a script, must be that of a page. Prints file and line of each one
that is broken, and exits with 1 if there are any. Links to other hosts are not followed.
"""

import os
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", "__pycache__", "artifacts", "corpus", "out", "target"}
TEXTS = {".js", ".md", ".py", ".rs", ".sh", ".toml", ".txt"}
FENCE = re.compile(r"^ *(```+|~~~+)(.*)$")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.S)
LINK = re.compile(
    r"\]\(\s*<?([^)>\s]*)>?(?:\s+\"[^\"]*\")?\s*\)"  # [text](target "title")
    r"|^ {0,3}\[[^\]]+\]:\s+(\S+)"  # [name]: target
    r"|\b(?:href|src)=\"([^\"]*)\"",
    re.M,
)
PAGE_NAME = re.compile(r"(?<![\w./-])docs/[\w./-]+\.md\b")


def files():
    """Yields the text files of the project, without what a build leaves."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in TEXTS or name == "Makefile":
                yield path


def blank(text):
    """Returns a text of the same lines with spaces for all other characters."""
    return re.sub(r"[^\n]", " ", text)


def without_blocks(text):
    """Returns a page with blank lines for its fenced blocks of code."""
    lines, open_fence = [], None
    for line in text.splitlines(keepends=True):
        match = FENCE.match(line.rstrip("\n"))
        if open_fence is None and match:
            open_fence = match[1]
            lines.append(blank(line))
        elif open_fence is not None:
            if match and match[1].startswith(open_fence) and not match[2].strip():
                open_fence = None
            lines.append(blank(line))
        else:
            lines.append(line)
    return "".join(lines)


def anchors(text):
    """Returns the anchors that GitHub gives to the headings of a page, and those that its HTML names."""
    found, counts = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)), {}
    for line in without_blocks(text).splitlines():
        match = re.match(r" {0,3}#{1,6} +(.*?)(?: +#+)? *$", line)
        if not match:
            continue
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        shown = re.sub(r"(?<!\w)_(.+?)_(?!\w)", r"\1", shown)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        number = counts.get(anchor, 0)
        counts[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found


def links(text):
    """Yields line and target of each link of a page."""
    plain = CODE_SPAN.sub(lambda m: blank(m[0]), without_blocks(text))
    for match in LINK.finditer(plain):
        target = match[1] or match[2] or match[3] or ""
        at = max(match.start(group) for group in (1, 2, 3))
        yield plain.count("\n", 0, max(at, match.start())) + 1, target


def problem(page, target, known):
    """Returns the reason why a link of a page is broken, or `None`."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.I):
        return None
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    if not path and not anchor:
        return "a link without a target"
    start = ROOT if path.startswith("/") else page.parent
    goal = pathlib.Path(os.path.normpath(start / path.lstrip("/"))) if path else page
    if ROOT not in (goal, *goal.parents):
        return f"{target} leads out of the project"
    if not goal.exists():
        return f"{target}: there is no such file"
    if anchor and goal.suffix == ".md":
        if goal not in known:
            known[goal] = anchors(goal.read_text())
        if anchor not in known[goal]:
            return f"{target}: the page has no heading of this anchor"
    return None


def main():
    broken, known, counts = [], {}, {"pages": 0, "links": 0, "names": 0}
    for path in files():
        text = path.read_text(errors="replace")
        shown = path.relative_to(ROOT)
        for number, line in enumerate(text.splitlines(), 1):
            for match in PAGE_NAME.finditer(line):
                counts["names"] += 1
                if not (ROOT / match[0]).is_file():
                    broken.append((shown, number, f"{match[0]}: there is no such page"))
        if path.suffix != ".md":
            continue
        counts["pages"] += 1
        for number, target in links(text):
            counts["links"] += 1
            if reason := problem(path, target, known):
                broken.append((shown, number, reason))
    for shown, number, reason in sorted(set(broken)):
        print(f"{shown}:{number}: {reason}")
    if broken:
        sys.exit(1)
    print(f"links: {counts['pages']} pages, {counts['links']} links, {counts['names']} names of pages: none is broken")


if __name__ == "__main__":
    main()
