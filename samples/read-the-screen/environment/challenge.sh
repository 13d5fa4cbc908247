#!/bin/sh
# Starts (again) at the first code. The state is what reply.sh compares with.
umask 077
mkdir -p /var/lib/challenge
rm -f /var/lib/challenge/*
number=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
code=$((100000 + number % 900000))
echo 1 > /var/lib/challenge/round
echo "$code" > /var/lib/challenge/code
echo "Code 1 of 3: $code"
