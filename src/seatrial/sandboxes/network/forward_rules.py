"""Accept rules for Seatrial's interface in the forward chains of other programs.

An accept in one firewall table does not overrule a drop in another. Where dockerd, ufw or an administrator drops
forwarded packets, sandboxes need an accept *there*: two rules for the one interface, with Seatrial's mark, in front of
the others. They open nothing else, because Seatrial's own table filters these packets too. ``uplink`` calls this, in a
thread that is in the machine's own network namespace.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import SetupProblem

_LOG = logging.getLogger(__name__)
_LEGACY_TABLES = Path("/proc/thread-self/net/ip_tables_names")
_TIMEOUT_SEC = 30


def run_nft(script: str) -> None:
    """Runs a script of ``nft``, all of it or nothing."""
    done = _nft("-f", "-", script=script)
    if done.returncode:
        raise SetupProblem(
            f"The firewall rules of the sandboxes could not be set: {done.stderr.strip()}",
            fix="Run as root on a kernel with nftables, or use network mode none.",
        )


def list_tables() -> list[str]:
    """Names of the tables of the family ``inet``."""
    return [
        item["table"]["name"]
        for item in _listed("list", "tables")
        if "table" in item and item["table"]["family"] == "inet"
    ]


def list_elements(table: str, name: str) -> tuple[str, ...]:
    """The members of a set of names in a table of the family ``inet``."""
    found = _listed("list", "set", "inet", table, name)
    return tuple(str(element) for item in found if "set" in item for element in item["set"].get("elem", ()))


@dataclass(frozen=True, slots=True)
class _Chain:
    family: str
    table: str
    name: str
    policy: str

    def __str__(self) -> str:
        return f"{self.family} {self.table} {self.name}"


def accept_forwarding(interface: str, mark: str, ours: Callable[[str], bool]) -> None:
    """Adds the two rules where they are needed and missing. ``ours`` says whether a table is Seatrial's."""
    missing = []
    for chain in _forward_chains(ours):
        items = _listed("list", "chain", chain.family, chain.table, chain.name)
        found = [item["rule"] for item in items if "rule" in item]
        if any(rule.get("comment") == mark for rule in found):
            continue
        if chain.policy == "drop" or any(_refuses(rule) for rule in found):
            missing += [
                f'insert rule {chain} {side} "{interface}" counter accept comment "{mark}"'
                for side in ("iifname", "oifname")
            ]
    if missing:
        run_nft("\n".join(missing))
    _open_legacy(interface, mark)


def remove_accepts(dead: Callable[[str], bool], ours: Callable[[str], bool]) -> int:
    """Removes the rules with a mark for which ``dead`` is true. Returns how many."""
    doomed = []
    for chain in _forward_chains(ours):
        for item in _listed("-a", "list", "chain", chain.family, chain.table, chain.name):
            rule = item.get("rule", {})
            if dead(rule.get("comment", "")):
                doomed.append(f"delete rule {chain} handle {rule['handle']}")
    if doomed:
        run_nft("\n".join(doomed))
    return len(doomed) + _close_legacy(dead)


def _forward_chains(ours: Callable[[str], bool]) -> list[_Chain]:
    found = []
    for item in _listed("list", "chains"):
        chain = item.get("chain", {})
        if chain.get("hook") != "forward" or chain.get("family") not in ("ip", "inet") or ours(chain["table"]):
            continue
        found.append(_Chain(chain["family"], chain["table"], chain["name"], chain.get("policy", "accept")))
    return found


def _refuses(rule: dict[str, Any]) -> bool:
    return any(
        "drop" in part or "reject" in part or (part.get("xt") or {}).get("name") == "REJECT"
        for part in rule.get("expr", ())
    )


def _nft(*words: str, script: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["nft", *words], input=script, capture_output=True, text=True, timeout=_TIMEOUT_SEC)
    except FileNotFoundError as error:
        raise SetupProblem("nftables is not installed.", fix="Run: apt-get install nftables") from error


def _listed(*words: str) -> list[dict[str, Any]]:
    done = _nft("-j", *words)
    if done.returncode:
        if "No such file" in done.stderr:  # removed since it was listed
            return []
        raise SetupProblem(f"The firewall rules cannot be read: {done.stderr.strip()}", fix="Run as root.")
    answer: dict[str, list[dict[str, Any]]] = json.loads(done.stdout or '{"nftables": []}')
    return answer["nftables"]


def _open_legacy(interface: str, mark: str) -> None:
    rules = _legacy_rules()
    closed = any(
        rule.startswith("-P FORWARD DROP") or rule.endswith("-j DROP") or "-j REJECT" in rule for rule in rules
    )
    if not closed or any(mark in rule.split() for rule in rules):
        return
    for side in ("-i", "-o"):
        _iptables("-I", "FORWARD", side, interface, "-m", "comment", "--comment", mark, "-j", "ACCEPT")


def _close_legacy(dead: Callable[[str], bool]) -> int:
    doomed = [rule for rule in _legacy_rules() if any(dead(word.strip('"')) for word in rule.split())]
    for rule in doomed:
        _iptables("-D", *rule.replace('"', "").split()[1:])
    return len(doomed)


def _legacy_rules() -> list[str]:
    """The forward chain of the older firewall. It works beside nftables, and only its own tool lists it."""
    if not _LEGACY_TABLES.exists() or "filter" not in _LEGACY_TABLES.read_text().split():
        return []
    if not shutil.which("iptables-legacy"):
        _LOG.warning("The kernel has legacy iptables rules, but iptables-legacy is not installed to read them.")
        return []
    return _iptables("-S", "FORWARD").splitlines()


def _iptables(*words: str) -> str:
    done = subprocess.run(["iptables-legacy", "-w", "5", *words], capture_output=True, text=True, timeout=_TIMEOUT_SEC)
    if done.returncode:
        raise SetupProblem(f"iptables-legacy {' '.join(words)} failed: {done.stderr.strip()}", fix="Run as root.")
    return done.stdout
