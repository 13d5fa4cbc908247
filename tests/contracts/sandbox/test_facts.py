"""What a sandbox says about itself goes into the trial's lock, so it has to be true."""

from __future__ import annotations

from harbor.models.task.config import NetworkMode, NetworkPolicy

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Kind, Place, Wish
from tests.contracts.sandbox.test_isolation import NO_NEW_PRIVILEGES
from tests.contracts.sandbox.test_limits import EAT, HEAVY_SEC


async def test_facts_tell_what_was_applied(make_sandbox: MakeSandbox) -> None:
    policy = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
    sandbox = await make_sandbox(Wish(cpus=1, memory_mb=256, network=policy))
    facts = sandbox.facts  # type: ignore[attr-defined]
    assert facts.image and facts.image_digest.startswith("sha256:") and facts.image_source
    assert facts.network
    said = " ".join(facts.protections)
    assert all(word in said for word in ("seccomp", "no-new-privileges", "capabilities"))
    assert not facts.memory_killed


async def test_facts_never_claim_more_than_the_kernel_says(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(cpus=1, memory_mb=256))
    facts = sandbox.facts  # type: ignore[attr-defined]
    status = (await sandbox.exec("cat /proc/self/status")).stdout or ""
    said = " ".join(facts.protections)
    assert ("seccomp" in said) == ("Seccomp:\t2" in status)
    assert ("no-new-privileges" in said) == ((await sandbox.exec(NO_NEW_PRIVILEGES)).stdout == "1")
    claims_memory = any("memory" in key for key in facts.limits)
    assert claims_memory or any("memory" in line or "limit" in line for line in facts.not_applied)
    if claims_memory:
        assert (await sandbox.exec(EAT.format(megabytes=400), timeout_sec=HEAVY_SEC)).return_code != 0


async def test_facts_tell_how_limits_held_it_up(kind: Kind, make_sandbox: MakeSandbox) -> None:
    """What the trial's result says about throttled processors and reached memory limits."""
    if not kind.ours:
        return
    sandbox = await make_sandbox(Wish(cpus=1, memory_mb=128))
    await sandbox.exec(EAT.format(megabytes=200), timeout_sec=HEAVY_SEC)
    await sandbox.stop(delete=True)
    facts = sandbox.facts  # type: ignore[attr-defined]
    if not any("memory" in key for key in facts.limits):
        return  # nothing was limited
    # A busy machine may give it less than its limit, and then nothing is throttled.
    assert facts.strain.throttled_sec is not None
    assert facts.strain.memory_pressure is not None and facts.strain.memory_pressure > 0


async def test_no_facts_before_the_start(kind: Kind, place: Place) -> None:
    if not kind.ours:
        assert not hasattr(kind.create(place, Wish()), "facts")
        return
    facts = kind.create(place, Wish()).facts  # type: ignore[attr-defined]
    assert facts.image is None and not facts.protections and not facts.limits
