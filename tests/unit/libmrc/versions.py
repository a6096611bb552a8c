#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""versions.py COMPILER... ROOT: versions that the headers refuse, and the one that they warn of."""
import subprocess
import sys

compiler, root = sys.argv[1:-1], sys.argv[-1]


def complaints(macro, version):
    done = subprocess.run([*compiler, f'-I{root}', '-fsyntax-only', f'-D{macro}={version}', '-x', 'c', '-'],
                          input='#include "lib/libmrc/mrc_ctl.h"\n', capture_output=True, text=True)
    return [line for line in done.stderr.splitlines() if ': error: ' in line or ': warning: ' in line]


for prefix in ('MRC_', 'MRC_VENDOR_', 'MRC_CTL_', 'MRC_CTL_VENDOR_'):
    macro = prefix + 'API_VER_USED'
    for version, want in (('0x01000002', 'newer'), ('0', 'last supported'), ('0x00000001', None), ('0x01000000', None)):
        got = complaints(macro, version)
        if want is None:
            assert not got, (macro, version, got)
        else:
            assert len(got) == 1 and want in got[0] and macro in got[0], (macro, version, got)
            assert f": {'error' if want == 'newer' else 'warning'}: " in got[0], got
