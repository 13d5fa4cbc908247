#!/bin/sh
# What `make run` shows: the samples through the oracle, then one conversation of a scripted model with a real terminal.
set -eu
cd "$(dirname "$0")/.."
seatrial=.venv/bin/seatrial
echo "== This machine"
$seatrial doctor | tail -n 1
echo "   (The first run also makes a Debian base image from the package mirror and builds the samples' images: about a minute.)"
echo "== The samples, each solved by its own solution (agent: oracle)"
$seatrial run samples --name "first run: samples with the oracle"
echo "== One conversation: terminus-2 with a scripted model solves samples/read-the-screen"
$seatrial run samples/read-the-screen -a terminus-2 -m scripted/solve-read-the-screen --name "first run: scripted terminus-2"
echo "Look closer with: $seatrial job list, $seatrial job show 1, $seatrial trial show 1, $seatrial trial logs 1"
