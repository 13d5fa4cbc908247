#!/bin/sh
# Three different accepted codes, in order, and none left to give.
state=/var/lib/challenge
rounds=$(cut -d' ' -f1 "$state/accepted" 2> /dev/null | tr '\n' ' ')
codes=$(cut -d' ' -f2 "$state/accepted" 2> /dev/null | grep -c '^[0-9]\{6\}$')
if [ "$rounds" = "1 2 3 " ] && [ "$codes" = 3 ] && [ ! -e "$state/code" ]; then
    echo "PASSED all three codes were given back"
    echo 1 > /logs/verifier/reward.txt
else
    echo "FAILED accepted rounds: ${rounds:-none}"
    echo 0 > /logs/verifier/reward.txt
fi
