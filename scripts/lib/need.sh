# What a script needs before it can work; to be sourced. Quick when nothing is missing.
#
#   need_command git git          # the command, and the Debian package that has it
#   need_file /path/to/it tzdata  # the file, and the Debian package that has it
#   need_commands_done            # installs what was found missing, in one go
#   need_cargo                    # a Rust toolchain cannot be installed by us; says how to get one

need_missing=()

need_say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# need_command COMMAND PACKAGE: remembers the package if the command is not there.
need_command() {
    command -v "$1" >/dev/null 2>&1 || need_missing+=("$2")
}

# need_file FILE PACKAGE: remembers the package if the file is not there.
need_file() {
    [ -e "$1" ] || need_missing+=("$2")
}

# Installs all missing packages, or says what to install, and fails.
need_commands_done() {
    [ ${#need_missing[@]} -eq 0 ] && return 0
    local packages=("${need_missing[@]}")
    need_missing=()
    if ! command -v apt-get >/dev/null 2>&1; then
        need_say "please install: ${packages[*]}"
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        need_say "missing: ${packages[*]}. Please run: sudo apt-get install ${packages[*]}"
        return 1
    fi
    need_say "missing: ${packages[*]}; installing with apt-get"
    # A fresh machine has no lists; a machine without network may still have the packages.
    apt-get update -qq >&2 || need_say "apt-get update failed; trying with the lists that are there"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
}

# Finds cargo, also where rustup puts it without telling the shell.
need_cargo() {
    if ! command -v cargo >/dev/null 2>&1 && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
        export PATH
    fi
    if ! command -v cargo >/dev/null 2>&1; then
        need_say "cargo is missing. Please install Rust: https://rustup.rs"
        return 1
    fi
    # SQLite is compiled in, and that takes a C compiler.
    command -v cc >/dev/null 2>&1 || need_missing+=(gcc libc6-dev)
}
