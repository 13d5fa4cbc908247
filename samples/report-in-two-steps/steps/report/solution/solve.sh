#!/bin/sh
set -eu
sort -k2,2nr /app/counts.txt | head -n 1 | cut -d' ' -f1 > /app/favourite.txt
