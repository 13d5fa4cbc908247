"""The sandbox that belongs to a runtime."""

from __future__ import annotations

from seatrial.sandboxes.oci.gvisor.pod import GvisorPod
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import Pod
from seatrial.sandboxes.oci.pod_plan import PodPlan


def new_pod(machine: Machine, plan: PodPlan) -> Pod:
    return GvisorPod(machine, plan) if machine.runtime.is_gvisor else Pod(machine, plan)
