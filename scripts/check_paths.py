#!/usr/bin/env python3
"""Checks that files are written only through frit_core::paths.

  scripts/check_paths.py

Another user can redirect a path that is opened, created, renamed, removed or given away by the calls of std::fs
(docs/reference/access.md, "Paths that frit writes"). Prints file and line of each such call in the sources of the
crates, tests apart, and exits with 1 if there are any. Exceptions are listed here with their reasons.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALLS = re.compile(
    r"\bfs::(write|create_dir|create_dir_all|rename|remove_file|remove_dir|remove_dir_all|set_permissions|hard_link"
    r"|copy|chown|lchown|symlink)\("
    r"|\bFile::(create|create_new|options)\("
    r"|use std::(os::unix::)?fs::[^;]*\b(OpenOptions|OpenOptionsExt|DirBuilder|DirBuilderExt)\b"
    r"|std::fs::(OpenOptions|DirBuilder)\b"
    r"|UnixListener::bind\(|UnixDatagram::bind\("
    r"|rustix::fs::(chmod|chown|rename|unlink|mkdir|truncate|mknodat|symlink|link)\("
    r"|\.canonicalize\(\)"
)
# Path of a file or folder in crates/, the calls in it, and the reason.
EXCEPTIONS = [
    ("core/src/paths", None, "the module itself"),
    ("cli/src/documented", None, "tests, which rewrite pages of this repository"),
    ("cli/src/cmd/exec.rs", "File::options(", "opened to see whether the user may, and nothing is written"),
    ("reproduce/src/kinds/patterns/ext4.rs", "File::options(", "new, in a private temporary directory"),
    ("media/src/store/direct", "OpenOptions", "opens a descriptor again, by /proc/self/fd"),
    ("reproduce/src/kinds/software/kernel.rs", "OpenOptions", "opens a device in /dev"),
    ("serve/src/fuse/killed_servers.rs", "fs::write(", "writes to a file of /sys"),
    ("serve/src/unix.rs", "rustix::fs::chmod(", "names a descriptor, by /proc/self/fd"),
    # These paths are compared or shown; what is written is reached through frit_core::paths.
    ("calibrate/src/model.rs", ".canonicalize()", "shown"),
    ("cli/src/cmd/unmount/unsynced_changes.rs", ".canonicalize()", "compared with open files of processes"),
    ("cli/src/cmd/serve/frontends.rs", ".canonicalize()", "shown to clients"),
    ("cli/src/cmd/image.rs", ".canonicalize()", "compared with the sources of mounts"),
    ("cli/src/cmd/isp", ".canonicalize()", "read only"),
    ("fs/src/direct/mod.rs", ".canonicalize()", "the name of an image, whose file is open"),
    ("serve/src/fuse/killed_servers.rs", ".canonicalize()", "compared with the sources of mounts"),
    ("volume/src/access.rs", ".canonicalize()", "modes of the directories above, for a warning"),
]


def sources():
    """Yields the source files of the crates, without files of tests."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        name = path.relative_to(ROOT / "crates").as_posix()
        if "/tests/" not in name and "/testing/" not in name and not name.endswith("/tests.rs"):
            yield path, name


def is_excepted(name, line):
    """Returns True if a call is one of the exceptions."""
    return any(name.startswith(place) and (call is None or call in line) for place, call, _ in EXCEPTIONS)


def main():
    """Prints what is found, and returns the exit code."""
    found = 0
    for path, name in sources():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("mod tests {"):
                break
            code = line.split("//")[0]
            if CALLS.search(code) and not is_excepted(name, code):
                print(f"crates/{name}:{number}: {line.strip()}")
                found += 1
    if found:
        print("write through frit_core::paths or frit_core::files: other users can redirect these calls", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
