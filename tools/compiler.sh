# SPDX-License-Identifier: BSD-3-Clause
# Sourced by what builds, in the top folder. With ccache a fresh clone in another folder compiles nothing anew.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
# What is left then is linking, of which this does several hundred programs in half of the time.
! command -v ld.lld >/dev/null || export CC_LD=${CC_LD:-lld}

# What tools/test puts before other programs goes with it, but what is configured stays.
[ -z "${INCLINE_TEST_PROGRAMS:-}" ] || PATH=${PATH//"$INCLINE_TEST_PROGRAMS:"/}

# A compiler as CC wants it: meson puts ccache before its own choice only.
compiler() {
	if command -v ccache >/dev/null; then echo "ccache $1"; else echo "$1"; fi
}

# Empties a build directory (but for a corpus) that was made by a checkout in another folder: moved or copied since.
# Prints the options that it was made with.
empty_if_moved() {
	local info=$1/meson-info/meson-info.json source
	[ -f "$info" ] || return 0
	source=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["directories"]["source"])' "$info")
	[ "$source" != "$PWD" ] || return 0
	echo "$1 was made in $source: configuring it anew" >&2
	sed -n '/^\[options\]/,$s/^\([a-z_]*\) = \(.*\)$/-D\1=\2/p' "$1/meson-private/cmd_line.txt"
	find "$1" -mindepth 1 -maxdepth 1 ! -name corpus ! -name .lock -exec rm -rf {} +
}
