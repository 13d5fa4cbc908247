#!/opt/moto/bin/python
"""An S3 server with the command line of versitygw: ``--port :7070 posix /data``. Each folder of /data is a bucket."""

import sys
import time
import urllib.request
from pathlib import Path

from moto.server import ThreadedMotoServer

port, folder = int(sys.argv[2].removeprefix(":")), Path(sys.argv[4])
ThreadedMotoServer(ip_address="0.0.0.0", port=port, verbose=False).start()
for bucket in folder.iterdir():
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/{bucket.name}", method="PUT"))
while True:
    time.sleep(3600)
