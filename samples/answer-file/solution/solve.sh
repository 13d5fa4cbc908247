#!/bin/sh
set -eu
echo $((6 * 7)) > /app/answer.txt
