#!/bin/sh
set -eu
screen=$(/app/challenge.sh)
while [ "$screen" != "ALL CODES ACCEPTED" ]; do
    echo "$screen"
    screen=$(/app/reply.sh "${screen##* }")
done
echo "$screen"
