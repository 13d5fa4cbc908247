#!/bin/sh
set -eu
cd /app
sed 's/^ *//; s/ *$//; /^$/d' names.txt | LC_ALL=C sort -u > names.tidy
mv names.tidy names.txt
