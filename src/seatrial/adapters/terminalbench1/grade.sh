# Runs the task's own run-tests.sh and judges its output as Terminal-Bench 1 does. The lines above were filled in when
# the task was prepared: the task's parser, its max_test_timeout_sec, and where Harbor looks for the reward.
#
# run-tests.sh is a child with its own process group: an early "exit" in it, or a test that hangs, cannot keep the reward
# from being written. Nothing but bash itself is needed in the image, which run-tests.sh needs anyway; no Python, no awk.
#
#   every test passed                 reward 1
#   some test failed                  reward 0
#   the time limit was reached        reward 0 (Terminal-Bench 1 counts it as unresolved)
#   no verdict in the output at all   no reward: the tests did not run, and nobody's work has been judged

here=${0%/*}
limit=${SEATRIAL_TEST_TIMEOUT_SEC:-$limit}
started=$(printf '%(%s)T' -1)
timed_out=no
exit_code=
declare -A index=()
names=() states=() messages=()

main() {
    # A task may bring a tests/test.sh of its own; it was set aside for this script and goes back to its place.
    [[ -e $here/.task-test.sh ]] && mv -f "$here/.task-test.sh" "$here/test.sh"
    choose_output
    run_tests
    LC_ALL=C
    if [[ $timed_out == yes ]]; then
        record "run-tests.sh" failed "stopped after the limit of $limit seconds"
    elif ! "judge_$parser" || ((${#names[@]} == 0)); then
        echo "No verdict: run-tests.sh (exit code $exit_code) printed no results that the $parser parser knows."
        exit 1
    fi
    write_results
}

# Our standard output is the verifier's log file, so the tests write straight into it and can be followed live.
choose_output() {
    output=/proc/$$/fd/1
    if [[ ! -f $output ]]; then
        output=$logs/run-tests.log
        exec 1> "$output" 2>&1
    fi
}

run_tests() {
    local child bell
    exec {bell}<> <(:) # a pipe that both sides hold open: a bell to ring, and a clock to wait by
    set -m
    TEST_DIR=$here bash "$here/run-tests.sh" < /dev/null {bell}>&- &
    child=$!
    set +m
    (
        read -r -t "$limit" -u "$bell" && exit
        echo late >&"$bell"
        kill -KILL -- "-$child"
    ) > /dev/null 2>&1 &
    wait "$child" 2> /dev/null
    exit_code=$?
    if read -r -t 0 -u "$bell"; then timed_out=yes; else echo done >&"$bell"; fi
    kill -KILL -- "-$child" 2> /dev/null # what the tests left running would go on writing into the output
    wait
    exec {bell}>&-
}

# pytest -rA: the lines after the first "short test summary info". The last word on a test counts.
judge_pytest() {
    local line summary=no
    shopt -s nocasematch
    while IFS= read -r line || [[ -n $line ]]; do
        if [[ $summary == no ]]; then
            if [[ $line == *"short test summary info"* ]]; then
                without_colour "$line"
                [[ $REPLY =~ =[[:space:]]*"short test summary info"[[:space:]]*= ]] && summary=yes && shopt -u nocasematch
            fi
            continue
        fi
        without_colour "$line"
        judge_pytest_line "$REPLY"
    done < "$output"
    shopt -u nocasematch
    [[ $summary == yes ]]
}

judge_pytest_line() {
    local line=$1 message='' status name
    if [[ $line == FAILED*" - "* ]]; then
        message=${line##* - }
        line=${line% - *}
    fi
    trim "$line"
    line=$REPLY
    status=${line%%[[:space:]]*}
    trim "${line#"$status"}"
    name=${REPLY#*::}
    [[ -n $name ]] || return
    case ${status%:} in
        PASSED | XFAIL) record "$name" passed "$message" ;;
        SKIPPED) record "$name" skipped "$message" ;;
        FAILED | XPASS | ERROR) record "$name" failed "$message" ;;
    esac
}

judge_swebench() { judge_block "SWEBench results starts here" "SWEBench results ends here" PASSED required; }
judge_sweperf() { judge_block "SWE-Perf results starts here" "SWE-Perf results ends here" PASSED required; }
judge_mlebench() { judge_block "MLEBench results starts here" "MLEBench results ends here" "ALL TESTS PASSED" optional; }

# One verdict between two markers.
judge_block() {
    local text
    read_output
    text=$REPLY
    if [[ $4 == required && ($text != *"$1"* || $text != *"$2"*) ]]; then return 1; fi
    text=${text#*"$1"}
    text=${text%"$2"*}
    trim "$text"
    if [[ $REPLY == "$3" ]]; then record tests passed ''; else record tests failed "${REPLY:0:200}"; fi
}

judge_swelancer() {
    local text
    read_output
    text=${REPLY,,}
    if [[ $text == *"swe lancer success"* ]]; then
        record swelancer_task passed ''
    elif [[ $text != *"swe lancer failure"* && $text == *user_tool* && $text == *completed* ]]; then
        record swelancer_task passed ''
    else
        record swelancer_task failed ''
    fi
}

read_output() { IFS= read -r -d '' REPLY < "$output"; }

# record NAME passed|skipped|failed MESSAGE
record() {
    local at=${index[test $1]:-${#names[@]}}
    index[test $1]=$at
    names[at]=$1
    states[at]=$2
    messages[at]=$3
}

write_results() {
    local at passed=0 failed=0 skipped=0 tests='' reward=1
    for at in "${!names[@]}"; do
        (( ${states[at]} += 1 ))
        json "${names[at]}"
        tests+="${tests:+,}{\"name\":\"$REPLY\",\"status\":\"${states[at]}\",\"duration\":0"
        json "${messages[at]}"
        tests+="${REPLY:+,\"message\":\"$REPLY\"}}"
    done
    ((failed == 0)) || reward=0
    printf '{"results":{"tool":{"name":"%s"},"summary":{"tests":%d,"passed":%d,"failed":%d,"pending":0,"skipped":%d,"other":0,"start":%d000,"stop":%d000},"tests":[%s]}}\n' \
        "$parser" "${#names[@]}" "$passed" "$failed" "$skipped" "$started" "$(printf '%(%s)T' -1)" "$tests" > "$logs/ctrf.json"
    echo "$reward" > "$logs/reward.txt"
}

json() {
    REPLY=${1//\\/\\\\}
    REPLY=${REPLY//\"/\\\"}
    REPLY=${REPLY//[[:cntrl:]]/ }
}

trim() {
    REPLY=${1#"${1%%[![:space:]]*}"}
    REPLY=${REPLY%"${REPLY##*[![:space:]]}"}
}

# As a screen would show it: without colours, and of text that was written over only the last.
without_colour() {
    local colour=$'\e\\[[0-9;?]*[A-Za-z]'
    REPLY=${1%$'\r'}
    REPLY=${REPLY##*$'\r'}
    while [[ $REPLY =~ $colour ]]; do REPLY=${REPLY//"${BASH_REMATCH[0]}"/}; done
}

main
exit
