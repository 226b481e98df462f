#!/usr/bin/env bash
# The other way: a loop that looks at every phase file now and then and answers with send-keys. It verifies nothing and
# remembers nothing. One loop serves all sessions, and a phase is forgotten by emptying its file.
#   polling.sh AGENT DIRECTORY SOCKET SESSIONS SECONDS
set -u
agent=$1 directory=$2 socket=$3 sessions=$4 seconds=$5
for ((n = 1; n <= sessions; n++)); do
    : >"$directory/$n.phase"
    tmux -S "$socket" -f /dev/null new-session -d -s "dev-bench-$n" -x 200 -y 50 \
        -e "ISSUE=$n" -e "PHASE_FILE=$directory/$n.phase" bash "$agent" "$directory"
done
while sleep "$seconds"; do
    for ((n = 1; n <= sessions; n++)); do
        phase=$(head -1 "$directory/$n.phase" 2>/dev/null | tr -d '[:space:]')
        if [ "$phase" = PHASE:done ]; then
            : >"$directory/$n.phase"
            tmux -S "$socket" send-keys -t "=dev-bench-$n:" "PR not merged yet" Enter
        fi
    done
done
