# Sourced by the scripts: where the project is, what a machine must have, how to say what lacks.
# shellcheck shell=bash disable=SC2034

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What the build needs, as "package:how to see that it is there". The command, header or file is
# looked for, not the package, so that another way to install it counts, too.
BUILD_PACKAGES=(
    libcurl4-openssl-dev:header=curl/curl.h
    libssl-dev:header=openssl/ssl.h
    liblmdb-dev:header=lmdb.h
    libxxhash-dev:header=xxhash.h
    libpsl-dev:header=libpsl.h
    libcrypt-dev:header=crypt.h
    libjemalloc-dev:header=jemalloc/jemalloc.h
    pkg-config:command=pkg-config
    git:command=git
    ca-certificates:file=/etc/ssl/certs/ca-certificates.crt
)
# What tests use beside it. Where one lacks and cannot be had, what needs it is skipped, and says so.
TEST_PACKAGES=(
    nginx-light:command=nginx
    python3:command=python3
    openssl:command=openssl
    curl:command=curl
    wget:command=wget
    valgrind:command=valgrind
    shellcheck:command=shellcheck
)
BENCH_PACKAGES=(
    wrk:command=wrk
    util-linux:command=taskset
    gcc:command=cc
    libc6-dev:header=stdio.h
    "${TEST_PACKAGES[@]}"
    haproxy:command=haproxy
    squid:command=squid
    trafficserver:command=traffic_server
    varnish:command=varnishd
    linux-perf:command=perf
)
CLIENT_PACKAGES=(
    "${TEST_PACKAGES[@]}"
    python3-venv:python=ensurepip
    python3-pip:command=pip3
    dpkg-dev:command=dpkg-scanpackages
    apt:command=apt-get
    chromium:command=chromium
)

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

has_command() { command -v "$1" >/dev/null 2>&1 || [[ -x /usr/sbin/$1 || -x /sbin/$1 ]]; }

has_header() {
    local folder
    for folder in /usr/include "/usr/include/$(uname -m)-linux-gnu" /usr/local/include; do
        [[ -e $folder/$1 ]] && return 0
    done
    return 1
}

is_present() {
    case $1 in
        command=*) has_command "${1#*=}" ;;
        header=*) has_header "${1#*=}" ;;
        file=*) [[ -e ${1#*=} ]] ;;
        python=*) has_command python3 && python3 -c "import ${1#*=}" 2>/dev/null ;;
        *) return 1 ;;
    esac
}

# Prints the packages of the given list that lack, one a line.
lacking() {
    local entry
    for entry in "$@"; do
        is_present "${entry#*:}" || printf '%s\n' "${entry%%:*}"
    done
}

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif has_command sudo; then
        sudo "$@"
    else
        say "neither root nor sudo: cannot run: $*"
        return 1
    fi
}

# What Debian asks before it starts the services that it installs (invoke-rc.d(8)).
POLICY=${LARDER_POLICY:-/usr/sbin/policy-rc.d}

# without_services COMMAND…: runs it while Debian starts no service: the scripts start what they need.
# Where the machine has a rule of its own, that holds.
without_services() {
    if [[ -e $POLICY ]]; then
        "$@"
        return
    fi
    # A shell of its own, whose traps take nobody's place: whatever ends it, the rule goes.
    (
        trap 'as_root rm -f "$POLICY"' EXIT
        trap 'exit 129' HUP
        trap 'exit 130' INT
        trap 'exit 143' TERM
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$POLICY" >/dev/null
        as_root chmod 755 "$POLICY"
        "$@"
    )
}

# With SERVICES=held, what is installed is not started.
apt_install() {
    local install=(as_root env DEBIAN_FRONTEND=noninteractive
        apt-get install -y --no-install-recommends "$@")
    [[ ${SERVICES:-} != held ]] || install=(without_services "${install[@]}")
    # The package lists may be absent or old: fetch them when the first attempt fails.
    "${install[@]}" || { as_root apt-get update && "${install[@]}"; }
}

# install_lacking required|optional ENTRY…: runs apt-get only when something lacks.
install_lacking() {
    local need=$1
    shift
    local packages
    mapfile -t packages < <(lacking "$@")
    [[ ${#packages[@]} -gt 0 ]] || return 0
    say "installing: ${packages[*]}"
    if has_command apt-get && apt_install "${packages[@]}" >&2; then
        return 0
    fi
    if [[ $need == required ]]; then
        die "these Debian packages lack and could not be installed: ${packages[*]}"
    fi
    # One that cannot be had must not keep the others away.
    local package
    for package in "${packages[@]}"; do
        { has_command apt-get && apt_install "$package" >/dev/null 2>&1; } \
            || say "not installed: $package (what needs it is skipped)"
    done
}

require_swift() {
    has_command swift || die "no Swift toolchain on PATH. Larder needs Swift 6.3 or later:" \
        "https://www.swift.org/install/linux/ (unpack it and put its usr/bin on PATH)"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' \
        | head -n 1)
    [[ -n $version ]] || die "swift --version says nothing that can be understood"
    local major=${version%%.*} minor=${version#*.}
    ((major > 6 || (major == 6 && minor >= 3))) \
        || die "Swift $version is too old: Larder needs 6.3 or later" \
            "(https://www.swift.org/install/linux/)"
}
