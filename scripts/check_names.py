#!/usr/bin/env python3
"""Checks the names of Rust items and source files on the pages: README.md, ARCHITECTURE.md and docs/.

  scripts/check_names.py

A block of Rust code behind the path of a file and a colon must be that file, or lines of it if the block is not
compiled (`rust,ignore`).

A code span that is a path (`Type::item`, `module::item`) or a name in CamelCase, and a path or the fields of a value
in a block of Rust code, must name an item of crates/. A member of a type must be in a block of that type, and an item
of a module in a file of that module. A path of a source file, with or without `crates/`, must exist. Prints file and
line of each name that is not found, and exits with 1 if there are any. rustfmt formats the sources, so a block ends
at the first line that closes it at its own indentation.
"""

import collections
import re
import sys
import textwrap

# A run leaves no files in the tree.
sys.dont_write_bytecode = True

from check_links import CODE_SPAN, ROOT, without_blocks

# Names that are not items of frit.
EXCEPTIONS = {
    "Arc": "standard library",
    "Cargo": "the file Cargo.toml",
    "ShmemPmdMapped": "a line of /proc/PID/smaps",
    "std": "standard library",
    "u32": "standard library",
    "u64": "standard library",
}
# Members without a text of their own in the sources.
DERIVED = {"default": "derived"}

NAME = r"[A-Za-z_]\w*"
PATH = re.compile(rf"(?<![\w:.])({NAME}(?:::{NAME})+…?)")
# A span that is an item: a path or a name, with parameters, arguments, fields, an index or a field behind it.
ITEM = re.compile(rf"(?:(?:impl|enum|struct|trait) )?({NAME})(?:<.*>|\(.*\)|\[.*| \{{.*\}}|\.{NAME})*")
CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
FILE = re.compile(r"(?:crates/)?([\w-]+/(?:src|tests|benches|examples|hosts|profiles)/[\w./{},*-]*)")
RUST_BLOCK = re.compile(r"^ *```rust\n(.*?)^ *```", re.S | re.M)
COPY = re.compile(r"`(crates/[\w/]+\.rs)`:\n\n```rust(,ignore)?\n(.*?)^```", re.S | re.M)
VALUE = re.compile(rf"\b(?<!struct )(?<!enum )({NAME}) \{{ ([^{{}}\n]*)\}}")
NOT_CODE = re.compile(r'//[^\n]*|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.S)
DEFINED = re.compile(rf"\b(?:struct|enum|trait|type|mod|union|fn|const|static|macro_rules!) +(?!fn\b|unsafe\b)({NAME})")
# A field or a variant.
MEMBER = re.compile(rf"^ +(?:pub(?:\([^)]*\))? )?({NAME})(?: =|[:,({{]| \{{|$)", re.M)
BLOCK = re.compile(
    r"^( *)((?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:impl|struct|enum|trait|union)\b[^;{]*)\{\n(.*?)^\1\}", re.S | re.M
)
# An enum of names that strum derives from another enum.
NAMES_OF = re.compile(rf"\bname\(({NAME})\)[^;{{]*?\benum ({NAME})")


def blank(match):
    """Returns the lines of a match without their characters."""
    return re.sub(r"[^\n]", " ", match[0])


class Sources:
    """Items of the sources, by the type or the module that has them."""

    def __init__(self):
        self.items = set()
        self.members = collections.defaultdict(set)
        self.modules = collections.defaultdict(set)
        derived = []
        for path in sorted((ROOT / "crates").rglob("*.rs")):
            text = NOT_CODE.sub(blank, path.read_text())
            defined = set(DEFINED.findall(text)) | set(MEMBER.findall(text))
            crate, *parts = path.relative_to(ROOT / "crates").with_suffix("").parts
            modules = [crate, "frit_" + crate.replace("-", "_"), *parts[1:]]
            for at, module in enumerate(modules):
                self.modules[module] |= defined | set(modules[at + 1 :])
            for _, head, body in BLOCK.findall(text):
                inside = set(DEFINED.findall(body)) | set(MEMBER.findall(body))
                for name in re.findall(NAME, head):
                    self.members[name] |= inside
            self.items |= defined
            derived += NAMES_OF.findall(text)
        for name, of in derived:
            self.items.add(name)
            self.modules = {m: has | {name} if of in has else has for m, has in self.modules.items()}
            self.members[name] |= self.members[of]

    def problem(self, path):
        """Returns the reason why a path names no item, or `None`."""
        parts = path.split("::")
        while parts[0] in ("crate", "self", "super"):
            parts = parts[1:]
        if parts[0] in EXCEPTIONS:
            return None
        if len(parts) == 1:
            return None if parts[0] in self.items else f"{path}: there is no such item"
        for owner, item in zip(parts, parts[1:]):
            known = self.members if CAMEL.fullmatch(owner) else self.modules
            if owner not in known:
                return f"{path}: there is no {owner}"
            # A name with an ellipsis is the beginning of several.
            begins = item.endswith("…") and any(name.startswith(item[:-1]) for name in known[owner])
            if item not in known[owner] and item not in DERIVED and not begins:
                return f"{path}: {owner} has no {item}"
        return None


def file_problem(path):
    """Returns the reason why the path of a source file is wrong, or `None`. Braces name several files."""
    if braces := re.search(r"\{([^{}]*)\}", path):
        each = [path[: braces.start()] + name + path[braces.end() :] for name in braces[1].split(",")]
        return next(filter(None, map(file_problem, each)), None)
    bare = path.rstrip("/")
    if any(any((ROOT / "crates").glob(bare + end)) for end in ("", ".rs")) or f"crates/{bare}" in EXCEPTIONS:
        return None
    return f"crates/{bare}: there is no such file"


def names(text):
    """Yields line and path of each name of an item or a source file on a page."""
    for span in CODE_SPAN.finditer(without_blocks(text)):
        line = text.count("\n", 0, span.start()) + 1
        if file := FILE.fullmatch(span[2].strip()):
            yield line, file[1]
        item = ITEM.fullmatch(span[2].strip())
        if item and CAMEL.fullmatch(item[1]):
            yield line, item[1]
        for path in PATH.findall(span[2]):
            yield line, path
    for block in RUST_BLOCK.finditer(text):
        for path in PATH.finditer(block[1]):
            yield text.count("\n", 0, block.start(1) + path.start()) + 1, path[1]
        for value in VALUE.finditer(block[1]):
            for field in re.findall(rf"({NAME}): ", value[2]):
                yield text.count("\n", 0, block.start(1) + value.start()) + 1, f"{value[1]}::{field}"


def copy_problems(text):
    """Yields line and reason of each block that differs from the file that is named before it."""
    for block in COPY.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        if not (ROOT / block[1]).exists():
            yield line, f"{block[1]}: there is no such file"
            continue
        file = (ROOT / block[1]).read_text()
        if file != block[3] if not block[2] else textwrap.indent(block[3], "    ") not in file:
            yield line, f"{block[1]} is not as the page shows it"


def main():
    sources, missing, count, copies = Sources(), set(), 0, 0
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for line, path in names(page.read_text()):
            count += 1
            if reason := file_problem(path) if "/" in path else sources.problem(path):
                missing.add((page.relative_to(ROOT), line, reason))
        copies += len(COPY.findall(page.read_text()))
        missing.update((page.relative_to(ROOT), line, reason) for line, reason in copy_problems(page.read_text()))
    for page, line, reason in sorted(missing):
        print(f"{page}:{line}: {reason}")
    if not copies:
        print("extending.md shows no source any more, or in another form than this program finds")
    if missing or not copies:
        sys.exit(1)
    print(f"names: {len(pages)} pages, {count} names of items and files: all exist; {copies} copies of sources")


if __name__ == "__main__":
    main()
