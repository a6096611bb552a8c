#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every function of the installed libibverbs and librdmacm is either defined by the preload library or named
in passthrough.txt with the reason, and the preload library defines nothing else.

usage: exports_test.py libincline_verbs.so passthrough.txt"""
import subprocess
import sys

HOOKS = {"access", "stat"}  # lib/verbs/devfile.c


def symbols(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True,
                         text=True).stdout
    return [line.split()[2] for line in out.splitlines() if line.split()[1] != "A"]


def main():
    library, listed = sys.argv[1:3]
    ours = symbols(library)
    versioned = [s for s in ours if "@" in s]
    real = {s.split("@")[0] for name in ("libibverbs.so.1", "librdmacm.so.1")
            for s in symbols(library_path(name))}
    passed = {}
    with open(listed, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, reason = line.split(None, 1)
                passed[name] = reason
    ours = set(ours)
    errors = [f"{s}: carries a version, would not bind to others" for s in versioned]
    errors += [f"{s}: neither defined nor listed in {listed}" for s in real - ours - set(passed)]
    errors += [f"{s}: defined, yet listed as passed through" for s in ours & set(passed)]
    errors += [f"{s}: listed, but neither libibverbs nor librdmacm has such a function" for s in set(passed) - real]
    errors += [f"{s}: defined, but neither libibverbs nor librdmacm has such a function"
               for s in ours - real if not s.startswith(("inc_dv_", "inc_behind_")) and s not in HOOKS]
    for e in sorted(errors):
        print(e, file=sys.stderr)
    print(f"{len(ours & real)} defined, {len(passed)} passed through, "
          f"{len(ours - real)} direct verbs")
    return 1 if errors else 0


def library_path(name):
    out = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True)
    for line in out.stdout.splitlines():
        if line.strip().startswith(name + " "):
            return line.split("=>")[1].strip()
    sys.exit(f"{name}: not found")


if __name__ == "__main__":
    sys.exit(main())
