#!/usr/bin/env python3
"""Prints measures of the tree: wording of documentation, names, circles between files, repetition, lengths.

  scripts/tree_metrics.py                 a table
  scripts/tree_metrics.py --json          the same for programs
  scripts/tree_metrics.py --list headless the places behind one measure: headless, long, types, circles, repeated,
                                          functions or files
  scripts/tree_metrics.py --under crates/fs --list headless

It reads text alone, and builds nothing. docs/guide/contributing.md says which values the project keeps.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADLESS = re.compile(r"(What|Whether|How|Where|Who|Whose)\b")
LINE_MAX = 120
FUNCTION_MAX = 70
REPEATED_LINES = 6


def sources(under):
    """Returns the Rust files below the given folders, in order."""
    found = {p for folder in under for p in (ROOT / folder).rglob("*.rs")}
    return sorted(p for p in found if "target" not in p.relative_to(ROOT).parts)


def pages(under):
    """Returns the Markdown files below the given folders, and those of the root."""
    found = {p for folder in under for p in (ROOT / folder).rglob("*.md")}
    if "docs" in under:
        found |= set(ROOT.glob("*.md"))
    return sorted(p for p in found if "target" not in p.relative_to(ROOT).parts)


def doc_paragraphs(path):
    """Yields line number and text of each paragraph of the doc comments of a file, without code blocks."""
    text, first, fenced = [], 0, False

    def flush():
        if text:
            yield first, " ".join(text)
        text.clear()

    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"\s*//[/!] ?(.*)$", line)
        if not match or match[1].startswith("/"):
            yield from flush()
            fenced = False
            continue
        content = match[1].strip()
        if content.startswith("```"):
            fenced = not fenced
            yield from flush()
            continue
        if fenced:
            continue
        if not content or content[0] in "#|" or re.match(r"[-*] |\d+\. ", content):
            yield from flush()
        content = re.sub(r"^([-*] |\d+\. )", "", content)
        if content and content[0] not in "#|":
            if not text:
                first = number
            text.append(content)
    yield from flush()


def headless(files):
    """Returns the doc paragraphs that open with an interrogative, and the number of all paragraphs."""
    found, total = [], 0
    for path in files:
        for number, text in doc_paragraphs(path):
            total += 1
            if HEADLESS.match(text):
                found.append((path, number, text[:100]))
    return found, total


def long_lines(files, texts):
    """Returns lines of documentation above the limit; rows of tables and lone links cannot be broken."""
    found = []
    for path in texts:
        fenced = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("```"):
                fenced = not fenced
            bare = line.strip()
            if len(line) > LINE_MAX and not fenced and not bare.startswith("|") and " " in bare:
                found.append((path, number, f"{len(line)} characters"))
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > LINE_MAX and re.match(r"\s*//", line) and "http" not in line:
                found.append((path, number, f"{len(line)} characters"))
    return found


def shared_types(files):
    """Returns names of types that several modules define, outside tests."""
    places = collections.defaultdict(list)
    for path in files:
        if "tests" in path.parts or path.name == "tests.rs" or "benches" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r"#\[cfg\(test\)\]", line):
                break
            match = re.match(r"(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (\w+)", line)
            if match:
                places[match[1]].append((path, number))
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def module_of(path, crate):
    """Returns the module path of a file, as a tuple."""
    parts = list(path.relative_to(crate / "src").with_suffix("").parts)
    if parts and parts[-1] in ("mod", "lib", "main"):
        parts.pop()
    return tuple(parts)


def uses(text, here):
    """Yields the module paths that the imports and paths of a file name, as tuples of names."""
    for match in re.finditer(r"\buse ((?:crate|super|self)\b[^;]*);", text):
        for name in expand(match[1]):
            yield resolve(name, here)
    for match in re.finditer(r"(?<![\w:])((?:crate|super)(?:::\w+)+)", text):
        yield resolve(match[1], here)


def expand(tree):
    """Yields the plain paths of an import with braces."""
    tree = re.sub(r"\s+", " ", tree).strip()
    brace = tree.find("{")
    if brace < 0:
        yield tree.split(" as ")[0].strip()
        return
    prefix, body, depth, part = tree[:brace], tree[brace + 1 : tree.rfind("}")], 0, ""
    for letter in body + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from expand(prefix + part.strip())
            part = ""
        else:
            part += letter


def resolve(path, here):
    """Returns the absolute module path of a relative one."""
    names, at = path.split("::"), list(here)
    if names[0] == "crate":
        at, names = [], names[1:]
    while names and names[0] in ("super", "self"):
        if names[0] == "super" and at:
            at.pop()
        names = names[1:]
    return tuple(at + names)


def circles(files):
    """Returns groups of files of a crate that import each other in a circle, outside tests.

    A file that declares modules (`mod.rs`, `lib.rs`) is not a node: importing a name that it exports again counts as
    importing the file that defines the name, which the text does not tell, so that it is left out.
    """
    groups = []
    for crate in sorted({ROOT / "crates" / p.relative_to(ROOT).parts[1] for p in files if "crates" in p.parts}):
        mine = [p for p in files if crate in p.parents and "src" in p.relative_to(crate).parts[:1]]
        mine = [p for p in mine if "tests" not in p.parts and p.name not in ("tests.rs", "testing.rs")]
        nodes = {module_of(p, crate): p for p in mine}
        edges = {}
        for module, path in nodes.items():
            text = re.split(r"\n#\[cfg\(test\)\]\nmod \w+ \{", path.read_text())[0]
            text = re.sub(r"//[^\n]*", "", text)
            targets = set()
            for target in uses(text, module):
                while target and target not in nodes:
                    target = target[:-1]
                if target and target != module and nodes[target].name not in ("mod.rs", "lib.rs"):
                    targets.add(target)
            edges[module] = targets
        groups += [[nodes[m] for m in sorted(g)] for g in components(edges) if len(g) > 1]
    return groups


def components(edges):
    """Returns the strongly connected components of a graph (Tarjan 1972)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for target in edges.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = []
            while True:
                last = stack.pop()
                on.discard(last)
                group.append(last)
                if last == node:
                    break
            out.append(group)

    sys.setrecursionlimit(10_000)
    for node in edges:
        if node not in index:
            visit(node)
    return out


def repeated(files):
    """Returns pairs of places that share a run of lines, without imports, comments and lone punctuation."""
    windows = collections.defaultdict(list)
    for path in files:
        lines = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            bare = line.strip()
            if re.match(r"(//|use |pub use |#\[)", bare) or not re.search(r"\w", bare):
                continue
            lines.append((number, bare))
        for i in range(len(lines) - REPEATED_LINES + 1):
            key = tuple(text for _, text in lines[i : i + REPEATED_LINES])
            windows[key].append((path, lines[i][0]))
    pairs = {}
    for places in windows.values():
        for (a, line), (b, other) in ((p, q) for p in places for q in places if p < q):
            pairs.setdefault((a, b), (line, other))
    return [(a, line, f"{b.relative_to(ROOT)}:{other}") for (a, b), (line, other) in sorted(pairs.items())]


def functions(files):
    """Yields place, name and length of each function."""
    for path in files:
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            match = re.match(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)", line)
            if not match or line.rstrip().endswith((";", "}")):
                continue
            end = next((j for j in range(i, len(lines)) if lines[j] == match[1] + "}"), None)
            if end is not None:
                yield path, i + 1, match[2], end - i + 1


def measure(under):
    """Returns the measures, and the places behind each."""
    files, texts = sources(under), pages(under)
    without, total = headless(files)
    long = long_lines(files, texts)
    types = shared_types(files)
    rings = circles(files)
    pairs = repeated(files)
    all_functions = list(functions(files))
    lengths = sorted(f[3] for f in all_functions) or [0]
    file_lines = sorted((len(p.read_text().splitlines()), p) for p in files) or [(0, ROOT)]
    casts = sum(len(re.findall(r"\bas (?:u|i|f)(?:8|16|32|64|128|size)\b", p.read_text())) for p in files)
    values = {
        "doc paragraphs": total,
        "doc paragraphs that open with an interrogative": len(without),
        "the same, percent": round(100 * len(without) / max(total, 1), 2),
        f"lines of docs above {LINE_MAX} characters": len(long),
        "names of types that several modules define": len(types),
        "circles between files": len(rings),
        "files in the largest circle": max((len(r) for r in rings), default=0),
        f"pairs of files with {REPEATED_LINES} repeated lines": len(pairs),
        "functions": len(all_functions),
        "lines of a function, 90th percentile": lengths[int(len(lengths) * 0.9)],
        f"functions above {FUNCTION_MAX} lines": sum(n > FUNCTION_MAX for n in lengths),
        "files": len(files),
        "lines of a file, median": int(statistics.median(n for n, _ in file_lines)),
        "lines of the longest file": file_lines[-1][0],
        "numeric casts": casts,
    }
    places = {
        "headless": without,
        "long": long,
        "types": [(p, n, name) for name, where in types.items() for p, n in where],
        "circles": [(p, 0, f"circle {i}") for i, ring in enumerate(rings, 1) for p in ring],
        "repeated": pairs,
        "functions": [(p, n, f"{name}: {length}") for p, n, name, length in all_functions if length > FUNCTION_MAX],
        "files": [(p, 0, f"{n} lines") for n, p in file_lines[::-1][:20]],
    }
    return values, places


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print the measures as JSON")
    kinds = ["headless", "long", "types", "circles", "repeated", "functions", "files"]
    parser.add_argument("--list", choices=kinds, help="print the places behind a measure")
    parser.add_argument("--under", action="append", help="only this folder (default: crates, docs, examples)")
    options = parser.parse_args()
    values, places = measure(options.under or ["crates", "docs", "examples"])
    if options.list:
        for path, number, text in places[options.list]:
            print(f"{path.relative_to(ROOT)}:{number}: {text}" if number else f"{path.relative_to(ROOT)}: {text}")
    elif options.json:
        print(json.dumps(values, indent=2))
    else:
        width = max(map(len, values))
        for name, value in values.items():
            print(f"{name:<{width}}  {value:>8}")


if __name__ == "__main__":
    main()
