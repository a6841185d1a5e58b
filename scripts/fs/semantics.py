#!/usr/bin/env python3
"""What programs may rely on in a file system of Linux, one small check each: shared mappings beside read and write,
files without a name, holes, directories that change while they are read, renames, a full disk.

  semantics.py --list             names of the checks
  semantics.py DIRECTORY CHECK    runs one; exit code 0: it holds
"""

import os
import pathlib
import shutil
import sys

import direct  # noqa: F401  The checks enter themselves.
import files  # noqa: F401
import mappings  # noqa: F401
import rights  # noqa: F401
from checks import CHECKS, Skip


def main():
    if sys.argv[1] == "--list":
        print("\n".join(CHECKS))
        return
    at = pathlib.Path(sys.argv[1]) / sys.argv[2]
    at.mkdir()
    os.umask(0o022)
    try:
        CHECKS[sys.argv[2]](at)
    except Skip as e:
        print(f"skip: {e}")
    except (AssertionError, OSError) as e:
        sys.exit(f"{type(e).__name__}: {e}")
    finally:
        shutil.rmtree(at, ignore_errors=True)


if __name__ == "__main__":
    main()
