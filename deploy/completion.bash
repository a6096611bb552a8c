# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash, of all programs. Options are those that --help names; the commands of inclinectl, their parameters
# and the names of groups, tables and ports it offers itself, and asks the switch for them (a second at most).

_incline_options() {
	"$1" --help 2>/dev/null | grep -oE -- '(^|[^[:alnum:]-])--?[[:alnum:]][[:alnum:]_-]*' | grep -oE -- '-.*' | sort -u
}

# The words up to the cursor as they were typed: bash's own are cut at = and :.
_incline() {
	local line=${COMP_LINE:0:COMP_POINT} cur head
	local -a words
	read -ra words <<< "$line"
	[[ $line == *[[:space:]] ]] && words+=('')
	cur=${words[-1]}
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_incline_options "$1")" -- "$cur")
	elif [[ ${1##*/} == inclinectl ]]; then
		mapfile -t COMPREPLY < <("$1" --timeout 1 --complete "${words[@]:1}" 2>/dev/null)
		head=${cur%"${cur##*[=:]}"}
		COMPREPLY=("${COMPREPLY[@]#"$head"}")
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
	fi
	return 0
}

complete -o default -F _incline inclinectl incline-dissect incline-flowsim incline-manager incline-map incline-mrcperf \
	incline-netd incline-perf incline-sim incline-switch incline-train
