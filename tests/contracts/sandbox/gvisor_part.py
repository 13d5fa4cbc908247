"""The part of the suite that runs on gVisor in ``make test``; ``make gvisor`` runs all of it.

The sandbox's parts that ``oci`` has anyway are tested there. These are about what gVisor does another way.
"""

from __future__ import annotations

GVISOR = "oci:runsc"
EVERYTHING = "SEATRIAL_TEST_GVISOR"
"""Environment variable that asks for all of it."""
PART = frozenset(
    [
        "test_stop_leaves_nothing",
        "test_killed_owner_leaves_nothing_after_a_sweep",
        "test_exit_status",
        "test_status_of_a_killed_command",
        "test_stderr_is_kept_apart",
        "test_environment",
        "test_user",
        "test_many_commands_keep_their_output_apart",
        "test_facts_never_claim_more_than_the_kernel_says",
        "test_service_of_the_agent_is_reachable",
        "test_tests_are_absent_for_the_agent",
        "test_daemon_cannot_rewrite_the_reward",
        "test_daemon_cannot_take_the_directories_away",
        "test_daemon_cannot_enter_through_proc",
        "test_root_enters_its_equals_through_proc",
        "test_verifier_is_as_confined_as_the_agent",
        "test_timeout_kills_while_grading",
        "test_steps_grade_one_after_another",
        "test_capabilities_are_at_most_docker_s",
        "test_seccomp_is_on",
        "test_no_new_privileges",
        "test_refused",
        "test_machine_devices_are_absent",
        "test_memory_limit_holds",
        "test_network_can_be_switched",
        "test_timeout_kills_what_the_command_started",
        "test_cancelling_kills_what_the_command_started",
        "test_orphans_are_reaped",
        "test_tree_goes_in_and_comes_out",
        "test_hostile_links_do_not_lead_out_on_download",
        "test_output_is_seen_while_it_is_written",
    ]
)
