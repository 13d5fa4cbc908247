"""Where Harbor's stock Docker environment, and our own under gVisor, are known to differ from what sandboxes promise.

One table, read by ``conftest.py``. ``fails`` entries run and have to fail: the day they pass, the suite says so and
the line goes. ``excluded`` entries cannot be run at all; they are deselected, and the run's summary lists them with the
reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Difference:
    sandbox: str
    promise: str
    """The test function that the difference is about."""
    how: Literal["fails", "excluded"]
    why: str


_STOCK = "harbor:docker"
_GVISOR = "oci:runsc"
"""What holds there instead is shown by ``tests/integration/oci/test_gvisor.py``."""

DIFFERENCES = (
    Difference(
        _GVISOR,
        "test_root_enters_its_equals_through_proc",
        "fails",
        "gVisor lets no process look into /proc/<pid>/root of another, so this way does not exist.",
    ),
    Difference(
        _GVISOR,
        "test_machine_devices_are_absent",
        "fails",
        "There is a /dev/fuse, which is gVisor's own and none of this machine's; nobody inside may mount with it.",
    ),
    Difference(
        _GVISOR,
        "test_memory_kill_is_told_apart",
        "excluded",
        "The kill is told, but a program that is killed for memory ends with 1 and not always with 137.",
    ),
    Difference(
        _GVISOR,
        "test_pids_limit_holds",
        "excluded",
        "gVisor counts processes roughly: up to a quarter more than the limit were seen. The lock says so.",
    ),
    Difference(
        _GVISOR,
        "test_cpu_limit_holds",
        "excluded",
        "The limit holds, but times inside count what the machine makes gVisor wait.",
    ),
    Difference(
        _STOCK,
        "test_stderr_is_kept_apart",
        "fails",
        "It reads a compose subprocess whose stderr is redirected into stdout.",
    ),
    Difference(
        _STOCK,
        "test_output_is_bounded",
        "fails",
        "It keeps all output in memory, however much there is.",
    ),
    Difference(
        _STOCK,
        "test_timeout_kills_what_the_command_started",
        "fails",
        "A timeout ends the compose client; the command goes on in the container.",
    ),
    Difference(
        _STOCK,
        "test_late_answer_does_not_count",
        "fails",
        "The same: what a command does after its timeout still happens.",
    ),
    Difference(
        _STOCK,
        "test_cancelling_kills_what_the_command_started",
        "fails",
        "Cancelling abandons the compose client; the command goes on in the container.",
    ),
    Difference(
        _STOCK,
        "test_hostile_links_do_not_lead_out_on_download",
        "fails",
        "compose cp recreates absolute links on the host, where they point to the host's files.",
    ),
    Difference(
        _STOCK,
        "test_link_to_a_host_file_is_not_followed_on_the_host",
        "fails",
        "compose cp of a link leaves a link on the host.",
    ),
    Difference(
        _STOCK,
        "test_worker_variables_are_not_resolved_into_tasks",
        "fails",
        "${NAME} in a task's environment is resolved from the environment of the process that runs Harbor.",
    ),
    Difference(
        _STOCK,
        "test_no_new_privileges",
        "fails",
        "The stock compose file sets no security options.",
    ),
    Difference(
        _STOCK,
        "test_pids_limit_holds",
        "fails",
        "The stock compose file sets no limit for processes, so a fork bomb is the machine's problem.",
    ),
    Difference(
        _STOCK,
        "test_fork_bomb_leaves_neighbours_alone",
        "excluded",
        "It has no limit for processes: this machine would be among the neighbours.",
    ),
    Difference(
        _STOCK,
        "test_memory_kill_is_told_apart",
        "excluded",
        "It reports no facts: a memory kill looks like any exit with 137.",
    ),
    Difference(_STOCK, "test_no_network", "excluded", "Its egress control needs an image from a registry."),
    Difference(_STOCK, "test_allowlist", "excluded", "Its egress control needs an image from a registry."),
    Difference(
        _STOCK, "test_network_can_be_switched", "excluded", "Its egress control needs an image from a registry."
    ),
    Difference(
        _STOCK,
        "test_listeners_of_the_machine_are_out_of_reach",
        "fails",
        "A container on a bridge reaches every port that the machine has open on the bridge's address.",
    ),
    Difference(
        _STOCK,
        "test_metadata_address_is_out_of_reach",
        "fails",
        "The bridge forwards to link-local addresses like to any other.",
    ),
    *(
        Difference(_STOCK, promise, "excluded", "Grading is not isolated: it runs in the agent's own container.")
        for promise in (
            "test_tests_are_absent_for_the_agent",
            "test_reward_written_beforehand_is_gone",
            "test_reward_link_planted_beforehand_is_gone",
            "test_daemon_cannot_rewrite_the_reward",
            "test_daemon_cannot_take_the_directories_away",
            "test_daemon_cannot_enter_through_proc",
            "test_daemon_cannot_touch_grading_as_another_user",
            "test_verifier_is_as_confined_as_the_agent",
            "test_timeout_kills_while_grading",
            "test_steps_grade_one_after_another",
        )
    ),
    *(
        Difference(_STOCK, promise, "excluded", "It has no owner, no labels and reports no facts.")
        for promise in (
            "test_facts_tell_what_was_applied",
            "test_facts_never_claim_more_than_the_kernel_says",
            "test_stop_leaves_nothing",
            "test_failed_start_leaves_nothing",
            "test_cancelled_start_leaves_nothing",
            "test_killed_owner_leaves_nothing_after_a_sweep",
            "test_sweep_leaves_the_living_alone",
        )
    ),
    *(
        Difference(_STOCK, promise, "excluded", "Its logs are a directory of this machine, which is watched instead.")
        for promise in (
            "test_output_is_seen_while_it_is_written",
            "test_looking_follows_no_link_and_waits_for_no_pipe",
            "test_a_sandbox_that_is_gone_shows_nothing",
        )
    ),
)


def difference(sandbox: str, promise: str) -> Difference | None:
    for entry in DIFFERENCES:
        if entry.sandbox == sandbox and entry.promise == promise:
            return entry
    return None
