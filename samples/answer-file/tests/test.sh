#!/bin/sh
# The reward is 1 when the file holds the answer and nothing else.
answer=$(cat /app/answer.txt 2>&1)
if [ "$answer" = 42 ]; then
    echo "PASSED the file holds 42"
    echo 1 > /logs/verifier/reward.txt
else
    echo "FAILED expected 42, found: $answer"
    echo 0 > /logs/verifier/reward.txt
fi
