#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The drop-in libibverbs.so.1 and librdmacm.so.1 have every symbol of the installed ones under each of its
versions, the same of these by default, and the same versions; and nothing else.

usage: dropin_symbols.py DIRECTORY"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from exports_test import library_path  # noqa: E402


def symbols(path):
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path], check=True,
                         capture_output=True, text=True).stdout
    rows = [line.split()[1:] for line in out.splitlines()]
    # A: a version's own name, which some linkers list as well, others not.
    return {" ".join(row).replace("D ", "B ", 1) for row in rows if row[0] != "A"}


def versions(path):
    out = subprocess.run(["readelf", "--version-info", "--wide", path], check=True, capture_output=True, text=True).stdout
    return {"version " + name for name in re.findall(r"Rev: 1 .* Name: (\S+)", out)}


def main():
    errors, n = [], 0
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        real, ours = (symbols(p) | versions(p) for p in (library_path(name), os.path.join(sys.argv[1], name)))
        errors += [f"{name}: {s}: missing" for s in sorted(real - ours)]
        errors += [f"{name}: {s}: not in the installed one" for s in sorted(ours - real)]
        n += len(real)
    for e in errors:
        print(e, file=sys.stderr)
    print(f"{n} symbols and versions")
    return 1 if errors or n == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
