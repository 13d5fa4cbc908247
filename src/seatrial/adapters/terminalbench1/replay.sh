# Types the entries of a Terminal-Bench 1 solution.yaml into one terminal, one after the other, as its oracle does: shell
# state (cd, export, activated environments) lasts, a program that asks is answered by the next entries, keys have
# tmux's names (C-d, Escape, BSpace). The calls of "entry" at the end were filled in when the task was prepared.
#
# With tmux that terminal is a real one; Terminal-Bench 1 demands tmux of every image. Without it, entries that are
# plain lines are piped into one bash, which reads ahead like a terminal but is none; others cannot be played.

started=no
count=0

start() {
    started=yes
    if command -v tmux > /dev/null; then
        how=tmux
        tmux kill-session -t agent 2> /dev/null
        tmux new-session -d -x 160 -y 40 -s agent || exit 1
        shell=$(tmux display-message -p -t agent '#{pane_current_command}')
    elif [[ $needs_terminal == no ]]; then
        how=pipe
        coproc typed { exec bash 3>&1 >&4 2>&1; } 4>&1
        typed_in=${typed[1]} typed_out=${typed[0]}
    else
        echo "This solution.yaml needs a terminal, and there is no tmux in this image." >&2
        exit 1
    fi
}

# entry BLOCK ENTER MIN_SECONDS MAX_SECONDS TEXT
entry() {
    local block=$1 enter=$2 least=$3 most=$4 text=$5
    [[ $started == yes ]] || start
    count=$((count + 1))
    if [[ $block == yes && $enter == yes ]]; then
        "type_and_wait_$how" "$text" "$most" && return
        echo "Entry $count did not end within $most seconds: $text" >&2
        finish
        exit 1
    fi
    "type_$how" "$text" "$enter"
    sleep "$least"
}

type_tmux() {
    local text=$1
    # tmux takes a semicolon at the end of an argument for the end of its command.
    [[ $text == *\; ]] && text="${text%;}\\;"
    if [[ $2 == yes ]]; then tmux send-keys -t agent -- "$text" Enter; else tmux send-keys -t agent -- "$text"; fi
}

type_and_wait_tmux() {
    tmux send-keys -t agent -- "$1" "; tmux wait-for -S seatrial-$$-$count" Enter
    timeout "$2" tmux wait-for "seatrial-$$-$count"
}

type_pipe() { printf '%s\n' "$1" >&"$typed_in"; }

type_and_wait_pipe() {
    printf '%s; echo done >&3\n' "$1" >&"$typed_in"
    read -r -t "$2" _ <&"$typed_out"
}

# What still runs gets a while to end. A server that is meant to stay, stays: the terminal is left as it is.
finish() {
    local left=300 idle=0
    if [[ $how == tmux ]]; then
        # The shell of a busy machine may not have read the last entry yet: it counts as idle after a second.
        while ((left-- > 0 && idle < 10)); do
            [[ $(tmux display-message -p -t agent '#{pane_current_command}') == "$shell" ]] && idle=$((idle + 1)) || idle=0
            sleep 0.1
        done
        tmux capture-pane -p -S - -t agent
    elif [[ $how == pipe ]]; then
        exec {typed_in}>&-
        read -r -t 30 _ <&"$typed_out"
    fi
    return 0
}
