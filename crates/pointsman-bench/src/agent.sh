#!/usr/bin/env bash
# An agent that measures and does nothing else. It waits for a word on its bell, and what it has to say goes to
# "answers". The bells and answers are named pipes in the directory it is given.
#   agent.sh DIRECTORY      with ISSUE and PHASE_FILE in the environment
set -u
LC_ALL=C # EPOCHREALTIME has a point then
exec 3<>"$1/bell-$ISSUE" 4<>"$1/answers"
echo "$ISSUE up" >&4
while read -r word <&3; do
    case $word in
    prompt)
        while read -r line; do
            [[ $line == *"[pointsman m-0]"* ]] && break
        done
        echo "$ISSUE prompted" >&4
        ;;
    push)
        git commit --quiet --allow-empty --message "Work on $ISSUE" &&
            git push --quiet origin HEAD &&
            echo PHASE:awaiting_review >"$PHASE_FILE"
        echo "$ISSUE pushed" >&4
        ;;
    claim)
        echo PHASE:done >"$PHASE_FILE"
        written=$EPOCHREALTIME
        while read -r line; do
            [[ $line == *"PR not merged yet"* ]] && break
        done
        echo "$ISSUE answered $written $EPOCHREALTIME" >&4
        ;;
    esac
done
