"""Models that follow a script: ``-m scripted/<name>`` needs no key. ``seatrial.testing`` exports them for users'
tests."""
