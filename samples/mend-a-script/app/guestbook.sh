#!/bin/bash
# Talks to a person: refuses to read from anything but a terminal.
if [ ! -t 0 ]; then
    echo "The guestbook is signed at a terminal."
    exit 1
fi
read -r -p "Your name: " name
read -r -p "Your town: " town
printf '%s from %s\n' "$name" "$town" >> /app/guestbook.txt
echo "Thank you, $name."
