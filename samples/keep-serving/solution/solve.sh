#!/bin/bash
set -eu
echo 7070 > /app/port.conf
setsid /app/echo-server.pl > /app/echo-server.log 2>&1 < /dev/null &
for _ in $(seq 50); do
    (exec 3<> /dev/tcp/127.0.0.1/7070) 2> /dev/null && exit 0
    sleep 0.1
done
cat /app/echo-server.log
exit 1
