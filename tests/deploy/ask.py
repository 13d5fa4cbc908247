"""``python -m tests.deploy.ask URL [TOKEN] [JSON]``: one request, its status and its text on standard output.

A program, because it is run in another network namespace."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request


def main(url: str, token: str = "", body: str = "") -> None:
    request = urllib.request.Request(url, data=body.encode() or None)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as refusal:
        print(refusal.code, refusal.read().decode())
    except OSError as error:
        print(0, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
