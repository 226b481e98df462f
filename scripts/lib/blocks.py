"""Prints the shell blocks of a section of a page as one script, with the waits that the prose between them names. Called by
scripts/test-package.

A promise is a sentence such as: `pointsman status` says `1 awaiting_review`.
"""
import re
import shlex
import sys

WAIT = """
tries=0
until {command} 2>&1 | grep -qF -- {text}; do
    tries=$((tries + 1))
    if [ "$tries" -ge 120 ]; then echo "{command} never said "{text}; {command}; exit 1; fi
    sleep 0.5
done
"""

page, section = sys.argv[1:]
body = open(page, encoding="utf-8").read().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
for part in re.split(r"^```sh\n", body, flags=re.M)[1:]:
    commands, prose = part.split("\n```\n", 1)
    print(commands)
    prose = " ".join(prose.split())
    for command, text in re.findall(r"`(pointsman [^`]*)` says `([^`]*)`", prose):
        print(WAIT.format(command=command, text=shlex.quote(text)))
