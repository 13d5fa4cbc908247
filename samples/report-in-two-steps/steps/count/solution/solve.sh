#!/bin/sh
set -eu
sort /app/visits.txt | uniq -c | while read -r count place; do echo "$place $count"; done > /app/counts.txt
