#!/bin/bash
echo "stamped after $(wc -l < "${GUESTBOOK:?is not set}") signature(s)" >> "$GUESTBOOK"
