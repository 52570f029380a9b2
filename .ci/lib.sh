# Sourced by .ci/run and .ci/interop: settings and helpers that both need. Callers have cd'd to the repository's root.
# shellcheck shell=bash

exec 2>&1                     # one stream, so that the last line is the last line wherever the output goes
export GOWORK=off             # a developer's workspace must not hide a missing requirement
export GOFLAGS=-buildvcs=false # a checkout owned by another user has no readable version stamp
shopt -s inherit_errexit 2>/dev/null || true # a failure inside $(…) counts; bash 3.2 of macOS does not know it
export HOME="${HOME:-$PWD/.cache/home}"
command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin

current=setup
trap 'code=$?; [ "$code" -eq 0 ] || echo "FAILED in step \"$current\" (exit $code)"; exit "$code"' EXIT

# step NAME COMMAND…: a heading, the command's own output, the seconds it took. The first failure ends the script.
step() {
	current=$1
	shift
	local begun=$SECONDS
	printf '\n== %s\n' "$current"
	"$@"
	printf -- '-- %s: %d s\n' "$current" $((SECONDS - begun))
}

# modules lists the folders of all nested modules.
modules() {
	find . -mindepth 2 -name go.mod -not -path './.*' -not -path '*/testdata/*' -exec dirname {} \; | sort
}

# real says whether a module's tests talk to real receivers: interop/, and any other with a list of Debian packages. Those run in
# .ci/interop only, after their packages are installed.
real() {
	[ "$1" = ./interop ] || [ -f "$1/debian-packages" ]
}

# debian PACKAGE…: installs what is missing, as root or with sudo that asks nothing.
debian() {
	local missing=() sudo
	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || { echo "please install: ${missing[*]}"; exit 1; }
	sudo=$(privileged)
	export DEBIAN_FRONTEND=noninteractive
	$sudo apt-get -qq update </dev/null
	$sudo apt-get -qq install --no-install-recommends -y "${missing[@]}" </dev/null >/dev/null
}

# unpacked DIR PACKAGE…: unpacks Debian packages below DIR without installing them, for those that cannot stand beside another one that
# is needed. What they depend on has to be installed.
unpacked() {
	local dir=$1 tmp
	shift
	for p in "$@"; do
		[ ! -e "$dir/.$p" ] || continue
		command -v apt-get >/dev/null || { echo "please unpack below $dir: $p"; exit 1; }
		tmp=$(mktemp -d)
		# apt-get download fails without package lists, which a fresh image has not.
		(cd "$tmp" && { apt-get -qq download "$p" 2>/dev/null || { $(privileged) apt-get -qq update && apt-get -qq download "$p"; }; }) </dev/null
		mkdir -p "$dir"
		dpkg -x "$tmp"/*.deb "$dir"
		touch "$dir/.$p"
		rm -r "$tmp"
	done
}

# privileged prints what goes before a command that only root may run.
privileged() {
	[ "$(id -u)" -eq 0 ] || echo 'sudo -n'
}
