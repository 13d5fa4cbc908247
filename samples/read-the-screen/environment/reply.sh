#!/bin/sh
# Compares a reply with the code on the screen and goes on to the next round.
umask 077
state=/var/lib/challenge
if [ ! -f "$state/code" ]; then
    echo "Run /app/challenge.sh first."
    exit 2
fi
read -r round < "$state/round"
read -r code < "$state/code"
if [ "${1-}" != "$code" ]; then
    rm -f "$state"/*
    echo "Wrong code. Run /app/challenge.sh to start again."
    exit 1
fi
echo "$round $code" >> "$state/accepted"
if [ "$round" -eq 3 ]; then
    rm -f "$state/code"
    echo "ALL CODES ACCEPTED"
    exit 0
fi
number=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
code=$((100000 + number % 900000))
round=$((round + 1))
echo "$round" > "$state/round"
echo "$code" > "$state/code"
echo "Code $round of 3: $code"
