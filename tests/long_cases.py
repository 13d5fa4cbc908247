"""Which cases ``make test`` leaves to ``make long`` and ``make attacks``: they carry the marker ``long``.

A test that runs on several kinds of sandbox runs all its cases on ``oci``. On a further kind, its first case is enough
for ``make test``: it shows that the rule holds there, and the other cases differ in what the kinds share. The kind
``harbor:docker`` is Harbor's; it shows that the suite asks for nothing that Harbor does not do, and one file is enough.
A test may also carry the marker itself, or a case of it may.

``AGAIN`` names cases that show a rule which another case of ``make test`` shows already: in the other theme, at the other
width, with the other store, at a second moment. Each takes more than three seconds.

``tests/conftest.py`` calls this.
"""

from __future__ import annotations

import pytest

FURTHER = ("docker", "oci:runsc")
HARBORS = "harbor:docker"
WHOLE = ("tests/attacks/agent/test_seccomp.py",)
"""Docker's filter is made by code of its own, and the cases of a module share one sandbox."""
WITH_HARBORS = "tests/contracts/sandbox/test_exec.py"


AGAIN = """
tests/browser/test_accessible.py::test_axe_finds_nothing_on_any_page[light-400]
tests/browser/test_compare.py::test_two_jobs_down_to_the_first_difference_of_two_trials[dark-400]
tests/browser/test_everyday.py::test_many_tasks_are_chosen_at_once_and_the_form_is_sent_as_a_link[dark-400]
tests/browser/test_everyday.py::test_the_documentation_of_the_api_has_the_theme_of_the_page
tests/browser/test_flow.py::test_from_an_archive_to_a_second_try[light-400]
tests/browser/test_pictures.py::test_pictures_say_the_golden_numbers[dark-400]
tests/browser/test_pictures.py::test_the_leaderboard[light-400]
tests/browser/test_pictures.py::test_the_report_opens_from_a_disk_without_a_network[dark-400]
tests/browser/test_scores.py::test_two_configurations_have_two_scores_and_no_mean[dark-400]
tests/browser/test_shell.py::test_nothing_is_off_screen_on_any_page[dark]
tests/browser/test_shell.py::test_nothing_jumps_while_data_arrives[1440]
tests/browser/test_triage.py::test_what_is_added_to_a_trial_is_kept_and_found[dark-400]
tests/e2e/test_mini_swe_agent.py::test_it_passes_by_reading_what_commands_print[docker]
tests/e2e/test_provider_address.py::test_the_model_is_called_where_the_env_file_says[OPENAI-openai/solve-read-the-screen]
tests/e2e/test_server.py::test_a_key_goes_along_only_where_the_service_has_none[NOKEYS_API_KEY-nokeys/m]
tests/e2e/test_terminus_scripted.py::test_it_passes_by_reading_the_screen[docker]
tests/e2e/test_up.py::test_a_killed_worker_is_replaced_and_its_trial_recovered
tests/faults/test_06_store_away.py::test_healthy_trials_survive_an_outage_longer_than_their_lease[paused]
tests/faults/test_29_random_mix.py::test_everything_comes_right_in_the_end[sqlite]
tests/faults/test_33_background_duties.py::test_a_faulty_duty_is_told_and_tried_again_and_trials_end[trials.claim-KeyError]
tests/faults/test_33_background_duties.py::test_a_faulty_duty_is_told_and_tried_again_and_trials_end[trials.claim-SandboxFault]
tests/faults/test_33_background_duties.py::test_a_faulty_duty_is_told_and_tried_again_and_trials_end[wait-KeyError]
tests/faults/test_cheats.py::test_answer_after_the_timeout_does_not_count[docker]
tests/faults/test_engine_restart.py::test_engine_killed_and_restarted[verifier]
tests/faults/test_model_faults.py::test_retry_after_is_honoured_on_the_real_clock[date]
tests/faults/test_own_time.py::test_who_waits_for_our_threads_is_not_late[TrialEvent.VERIFICATION_START]
tests/integration/client/test_interruptions.py::test_a_stream_and_a_wait_on_a_loop_outlive_a_restart
tests/integration/engine/test_docker.py::test_many_sandboxes_of_one_new_image[a bridge of the engine]
tests/integration/engine/test_docker_changes.py::test_answer_after_the_timeout_does_not_come[through the engine]
tests/integration/engine/test_podman.py::test_sandbox_grades_and_tells_a_memory_kill[through the engine]
tests/integration/engine/test_stock_cli.py::test_docker[nop-0]
tests/integration/engine/test_stock_cli.py::test_oci[nop-0]
tests/integration/images/test_builds.py::test_without_overlay_whole_copies_do
tests/integration/images/test_hostile_builds.py::test_a_build_past_its_time_is_ended_with_all_it_started
tests/integration/images/test_images_command.py::test_build_takes_a_dataset
tests/integration/operations/test_api_account.py::test_the_same_home_is_served_again_and_root_may_be_kept
tests/integration/tasks/test_hostile_archives.py::test_an_ordinary_archive_of_that_size_is_accepted
tests/integration/tasks/test_hostile_archives.py::test_benign_twin_is_accepted[10 001 members in a tar]
tests/verifiers/test_generation_04.py::test_an_interrupted_evaluation_leaves_no_sandbox
tests/verifiers/test_rollouts.py::test_sixty_four_in_flight_none_lost
tests/verifiers/test_rollouts.py::test_the_same_in_a_container_engine
""".split("\n")[1:-1]
AGAIN_IN = {
    "tests/integration/api/test_openapi.py": "[sqlite]",
    "tests/verifiers/test_generation_03.py": "",
}
"""Of these files, every case whose name ends so. PostgreSQL refuses more than SQLite does; verifiers 0.4 has a file."""


def mark_long_cases(items: list[pytest.Item]) -> None:
    seen: set[tuple[str, str]] = set()
    for item in items:
        kind = _further_kind(item)
        file, _, test = item.nodeid.partition("::")
        if item.nodeid in AGAIN or (file in AGAIN_IN and test.endswith(AGAIN_IN[file])):
            item.add_marker("long")
        if kind is None or file in WHOLE:
            continue
        rule = (f"{file}::{test.partition('[')[0]}", kind)
        if rule in seen or (kind == HARBORS and file != WITH_HARBORS):
            item.add_marker("long")
        elif item.get_closest_marker("long") is None:
            seen.add(rule)


def _further_kind(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    values = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
    return next((value for value in values if value in (*FURTHER, HARBORS)), None)
