#!/bin/sh
expected='dock 1
harbour 4
lighthouse 2
pier 2'
if [ "$(cat /app/counts.txt 2>&1)" = "$expected" ]; then
    echo "PASSED counts.txt"
    echo 1 > /logs/verifier/reward.txt
else
    echo "FAILED counts.txt differs"
    echo 0 > /logs/verifier/reward.txt
fi
