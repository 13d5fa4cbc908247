#!/bin/sh
if [ "$(cat /app/favourite.txt 2>&1)" = harbour ]; then
    echo "PASSED favourite.txt"
    echo 1 > /logs/verifier/reward.txt
else
    echo "FAILED favourite.txt does not name the favourite"
    echo 0 > /logs/verifier/reward.txt
fi
