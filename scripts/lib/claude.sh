# Finds the real Claude Code or installs it below target/; to be sourced after need.sh.
#
#   need_claude [VERSION]   # sets `program`. Ends the script with code 3 if it cannot be had here: nothing was tested then

# The version the tests were written with; `latest` tries the newest.
claude_version=2.1.197

need_claude() {
    local version=${1:-$claude_version}
    local place=target/claude-code/$version told
    program=${CLAUDE_BIN:-$PWD/$place/node_modules/.bin/claude}
    if [ ! -x "$program" ]; then
        if ! command -v npm >/dev/null 2>&1; then
            need_say "NOT TESTED: the real Claude Code needs npm to be installed from, and there is none"
            exit 3
        fi
        mkdir -p "$place"
        need_say "installing @anthropic-ai/claude-code@$version below $place"
        if ! npm install --silent --no-audit --no-fund --prefix "$place" "@anthropic-ai/claude-code@$version"; then
            need_say "NOT TESTED: the real Claude Code cannot be installed here"
            exit 3
        fi
    fi
    if ! told=$("$program" --version 2>&1); then
        need_say "NOT TESTED: $program does not run here: $told"
        exit 3
    fi
    need_command git git
    need_command tmux tmux
    need_command bwrap bubblewrap
    need_command python3 python3
    need_cargo
    need_commands_done
    need_say "testing with $told"
}
