#!/bin/bash
# The word is new every time, so only a server that is alive now can answer.
word="$RANDOM-$RANDOM-seatrial"
expected=
for ((i = ${#word} - 1; i >= 0; i--)); do expected+=${word:i:1}; done

answer="no connection"
if exec 3<> /dev/tcp/127.0.0.1/7070; then
    echo "$word" >&3
    read -r -t 10 answer <&3 || answer="no answer"
fi

if [ "$answer" = "$expected" ]; then
    echo "PASSED the server reversed $word"
    echo 1 > /logs/verifier/reward.txt
else
    echo "FAILED sent $word, expected $expected, got: $answer"
    echo 0 > /logs/verifier/reward.txt
fi
