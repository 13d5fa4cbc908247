"""A container engine that answers at once: what a call takes is then the client's own work.

``python -m benchmarks.stub_engine SOCKET`` serves until it is ended. It knows one container and one command, which
writes as many bytes as its last argument says.
"""

from __future__ import annotations

import asyncio
import json
import sys

CONTAINER, VERSION = "stub", "v1.44"
_FRAME = b"\x01\x00\x00\x00" + (32 << 10).to_bytes(4, "big") + b"x" * (32 << 10)
_UPGRADED = (
    b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
    b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)
_ENDED = {"Running": False, "ExitCode": 0, "ProcessConfig": {"tty": False}}
_INSPECTED = {
    "Id": CONTAINER,
    "State": {"Status": "running", "Pid": 1},
    "Config": {"Env": [f"NAME_{n}=value" for n in range(40)], "Labels": {f"label-{n}": "value" for n in range(20)}},
    "Mounts": [{"Type": "bind", "Source": f"/source/{n}", "Destination": f"/target/{n}"} for n in range(10)],
}


class _Engine:
    def __init__(self) -> None:
        self._frames = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split()[1].removeprefix(f"/{VERSION}").partition("?")[0]
                fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                if path.endswith("/start"):
                    writer.write(_UPGRADED)
                    for _ in range(self._frames):
                        writer.write(_FRAME)
                        await writer.drain()
                    return
                if path.endswith("/exec"):
                    self._frames = int(json.loads(body)["Cmd"][-1]) // (32 << 10)
                    self._answer(writer, {"Id": "command"})
                else:
                    self._answer(writer, _ENDED if path.startswith("/exec") else _INSPECTED)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, writer: asyncio.StreamWriter, content: object) -> None:
        text = json.dumps(content).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(f"Content-Length: {len(text)}\r\n\r\n".encode() + text)


async def main(socket: str) -> None:
    server = await asyncio.start_unix_server(_Engine().serve, socket)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
