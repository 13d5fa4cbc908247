"""Models that play a script: ``-m scripted/<name>`` needs no key. ``seatrial.testing`` offers them to users' tests."""
