# What a machine needs before keyswarm can be built and run. Sourced by the other scripts; does nothing by itself.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }

# install PACKAGE: by apt-get, as root or with a sudo that asks nothing. Fails quietly if neither is at hand.
install() {
    local package=$1 as_root=()
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 1
        as_root=(sudo -n)
    fi
    say "installing $package"
    local get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends install "$package")
    # The package lists of a fresh machine are empty or out of date: then, and only then, they are fetched first.
    "${get[@]}" >/dev/null 2>&1 || { "${as_root[@]}" apt-get -qq update >&2 && "${get[@]}" >&2; }
}

# need PROGRAM PACKAGE: installs what is missing, or says what is and ends the script.
need() {
    local program=$1 package=$2
    command -v "$program" >/dev/null && return
    if install "$package" && command -v "$program" >/dev/null; then
        return
    fi
    say "error: \`$program\` is missing, and could not be installed from here (that takes apt-get, and root or a sudo without a password)."
    say "       Debian, Ubuntu: apt-get install $package. Elsewhere: your system's package of that name."
    exit 1
}

# The compiler cannot be had from Debian in the version that is needed, so it is only asked for.
need_cargo() {
    command -v cargo >/dev/null && return
    # rustup puts it there; a shell that was opened before does not know.
    if [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
        return
    fi
    say "error: \`cargo\` is missing. keyswarm is built with Rust 1.95 or later: install a toolchain with rustup"
    say "       (see \"Install Rust\" on the Rust project's site), open a new shell, and run this again."
    exit 1
}

need_build_tools() {
    need_cargo
    need cc gcc # links every Rust program, and compiles the cryptography of TLS
}

need_redis_server() {
    need redis-server redis-server
}
