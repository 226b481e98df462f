#!/usr/bin/env bash
# An agent that takes its time: writes a file, hands it in, mends it when asked to, and says that it is done.
#   agent.sh CODING FIXING      in seconds, with ISSUE and PHASE_FILE in the environment
set -u
hand_in() {
    sleep "$1"
    echo "$1 $RANDOM" >>"work-$ISSUE.txt"
    git add --all && git commit --quiet --message "Work on $ISSUE" && git push --quiet origin HEAD
    echo PHASE:awaiting_ci >"$PHASE_FILE"
}
hand_in "$1"
while read -r line; do
    case $line in
    *"CI passed"*) echo PHASE:awaiting_review >"$PHASE_FILE" ;;
    *"Changes requested"*) hand_in "$2" ;;
    *"Merged"*) echo PHASE:done >"$PHASE_FILE" ;;
    esac
done
