"""What a sandbox's processes are held to, before any runtime sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import SetupProblem
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES
from seatrial.sandboxes.host.seccomp import CLONE_NEWPID, CompiledFilters, seccomp_filter
from seatrial.sandboxes.oci.container_spec import GUARDED, Confinement, Layout, agent_spec, grading_spec, process_spec

PROFILE = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": 38,
    "syscalls": [
        {"names": ["read", "mount", "unshare", "clone", "clone3"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["reboot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_BOOT"]}},
        {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"]}},
        {"names": ["s390_thing"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390x"]}},
        {"names": ["odd"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "excludes": {"caps": ["CAP_CHOWN"]}},
    ],
}


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "seccomp.json"
    path.write_text(json.dumps(PROFILE))
    return path


def _allowed(section: dict[str, Any]) -> set[str]:
    return {
        name
        for rule in section["syscalls"]
        for name in rule["names"]
        if rule["action"] == "SCMP_ACT_ALLOW" and not rule.get("args")
    }


def test_filter_goes_by_capabilities(profile: Path) -> None:
    assert _allowed(seccomp_filter(["CAP_SYS_CHROOT", "CAP_CHOWN"], profile=profile).section) == {"read", "chroot"}
    more = seccomp_filter(["CAP_SYS_ADMIN", "CAP_SYS_BOOT"], profile=profile).section
    assert {"mount", "unshare", "clone", "reboot"} <= _allowed(more)


def test_namespaces_cannot_be_made(profile: Path) -> None:
    rules = seccomp_filter([], profile=profile).section["syscalls"]
    conditional = {rule["names"][0]: rule["args"] for rule in rules if rule.get("args") and "clone" in rule["names"]}
    assert conditional == {"clone": [{"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]}
    assert {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38} in rules
    refused = next(rule for rule in rules if "mount" in rule["names"])
    assert refused["action"] == "SCMP_ACT_ERRNO" and {"unshare", "setns", "bpf", "keyctl"} <= set(refused["names"])


def test_sockets_are_held_to_a_list_of_families(profile: Path) -> None:
    first, *rules = seccomp_filter([], profile=profile).section["syscalls"]
    assert first["names"] == ["socketcall"] and first["action"] == "SCMP_ACT_ERRNO" and "args" not in first
    allowed = [rule["args"] for rule in rules if rule["names"] == ["socket"] and rule["action"] == "SCMP_ACT_ALLOW"]
    assert {(args[0]["value"], args[0]["op"]) for args in allowed} == {(0xFFFFFFFF, "SCMP_CMP_MASKED_EQ")}
    assert {args[0]["valueTwo"] for args in allowed} == {1, 2, 10, 16}
    assert {args[1]["valueTwo"] for args in allowed if len(args) > 1} == {0, 4, 15, 16}


def test_packets_and_audit_take_their_capabilities(profile: Path) -> None:
    rules = seccomp_filter(["CAP_NET_RAW", "CAP_AUDIT_WRITE"], profile=profile).section["syscalls"]
    allowed = [rule["args"] for rule in rules if rule["names"] == ["socket"] and rule["action"] == "SCMP_ACT_ALLOW"]
    assert [17] in [[arg["valueTwo"] for arg in args] for args in allowed]
    assert [16, 9] in [[arg["valueTwo"] for arg in args] for args in allowed]


def test_first_process_may_make_one_kind_of_namespace(profile: Path) -> None:
    rules = seccomp_filter([], nests_processes=True, profile=profile).section["syscalls"]
    named = [rule for rule in rules if "unshare" in rule["names"]]
    assert [rule["args"] for rule in named] == [[{"index": 0, "value": CLONE_NEWPID, "op": "SCMP_CMP_EQ"}]]


def test_missing_profile_has_one_command(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="apt-get install golang-github-containers-common"):
        seccomp_filter([], profile=tmp_path / "none.json")


def test_compiled_filters_are_kept_by_runtime_and_filter(profile: Path, tmp_path: Path) -> None:
    one, other = seccomp_filter([], profile=profile), seccomp_filter(["CAP_SYS_CHROOT"], profile=profile)
    (tmp_path / "compiled").write_bytes(b"bpf")
    filters = CompiledFilters(tmp_path / "kept", "crun 1")
    assert filters.annotations(one) == {}
    filters.save(one, tmp_path / "compiled")
    filters.save(other, tmp_path / "never-made")
    assert filters.annotations(one) == {"run.oci.seccomp_bpf_data": "YnBm"}
    assert filters.annotations(other) == {}
    assert CompiledFilters(tmp_path / "kept", "crun 1").annotations(one) != {}
    assert CompiledFilters(tmp_path / "kept", "crun 2").annotations(one) == {}


@pytest.fixture
def confinement(profile: Path) -> Confinement:
    return Confinement(
        capabilities=DOCKER_CAPABILITIES,
        commands=seccomp_filter(DOCKER_CAPABILITIES, profile=profile),
        first_process=seccomp_filter(DOCKER_CAPABILITIES, nests_processes=True, profile=profile),
        open_files=1024,
    )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(
        sandbox="st-1",
        hostname="st-1",
        root=tmp_path / "root",
        busybox=Path("/bin/busybox"),
        hosts=tmp_path / "hosts",
        resolv_conf=tmp_path / "resolv.conf",
        shared_memory=tmp_path / "shm",
        network=Path("/proc/1/fd/9"),
        grading_mounts={"/tests": tmp_path / "tests", "/logs/verifier": tmp_path / "verifier"},
    )


def test_only_the_verifier_has_tests(layout: Layout, confinement: Confinement, tmp_path: Path) -> None:
    filters = CompiledFilters(tmp_path / "kept", "crun")
    grading, agent = grading_spec(layout, confinement, filters), agent_spec(layout, confinement, filters, 77)
    sources = {mount["destination"]: mount["source"] for mount in agent["mounts"]}
    assert [sources[path] for path in GUARDED] == [str(layout.root / path.lstrip("/")) for path in GUARDED]
    mounted = {mount["destination"]: mount["source"] for mount in grading["mounts"]}
    assert mounted["/tests"] == str(tmp_path / "tests") and mounted["/logs/verifier"] == str(tmp_path / "verifier")
    spaces = {entry["type"]: entry.get("path") for entry in agent["linux"]["namespaces"]}
    assert spaces == {
        "mount": None,
        "cgroup": None,
        "pid": "/proc/77/ns/pid_for_children",
        "ipc": "/proc/77/ns/ipc",
        "uts": "/proc/77/ns/uts",
        "network": "/proc/77/ns/net",
    }


def test_nothing_of_the_host_is_writable(layout: Layout, confinement: Confinement, tmp_path: Path) -> None:
    """Bind mounts are the sandbox's own directory, or read only."""
    filters = CompiledFilters(tmp_path / "kept", "crun")
    for spec in (grading_spec(layout, confinement, filters), agent_spec(layout, confinement, filters, 77)):
        binds = [mount for mount in spec["mounts"] if mount["type"] == "bind"]
        strangers = [mount["source"] for mount in binds if not mount["source"].startswith(str(tmp_path))]
        writable = {mount["source"] for mount in binds if "ro" not in mount["options"]}
        assert set(strangers) & writable <= {"/proc/sys/kernel/ns_last_pid"}
        assert "/proc/sys" in spec["linux"]["readonlyPaths"] and "/proc/kcore" in spec["linux"]["maskedPaths"]


def test_command_of_another_user_has_no_capabilities(confinement: Confinement) -> None:
    root = process_spec(confinement, ["true"], {"A": "b=c"}, "/", (0, 0, ()))
    other = process_spec(confinement, ["true"], {}, "/", (1000, 1000, (5,)))
    assert root["capabilities"]["effective"] == list(DOCKER_CAPABILITIES) and root["env"] == ["A=b=c"]
    assert other["capabilities"]["effective"] == [] == other["capabilities"]["permitted"]
    assert other["noNewPrivileges"] and other["user"]["additionalGids"] == [5]
