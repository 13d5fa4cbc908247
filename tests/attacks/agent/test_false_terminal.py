"""An agent in the place of its tmux server: the worker asks it, so what it answers must neither hurt nor mislead."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.environment import OciEnvironment
from tests.workplace_fixture import OCI, Make

pytestmark = pytest.mark.parametrize("workplace", [OCI], indirect=True)

SERVER = r"""
use strict; use Socket; use Fcntl;
mkdir '/tmp/tmux-0', 0700; unlink '/tmp/tmux-0/default';
socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; bind($s, pack_sockaddr_un('/tmp/tmux-0/default')) or die;
listen($s, 8) or die;
sub message { my ($kind, $body) = @_; return pack('IIII', $kind, 16 + length $body, 8, 0) . $body }
my $version = message(303, pack('iii', 1, 1, 0)) . message(304, pack('i', 1) . "3.3a\n") . message(203, pack('i', 0));
sub read_request { my $c = shift; sysread($c, my $x, 1 << 16) }
unless (fork) {
  $SIG{PIPE} = 'IGNORE';
  accept(my $first, $s); read_request($first); syswrite($first, $version); 1 while read_request($first);
  my $asked = 0;
  while (accept(my $c, $s)) {
    read_request($c); $asked++; open(my $count, '>', '/app/asked'); print $count $asked; close $count;
    __ANSWER__;
    close $c;
  }
  exit;
}
"""
ANSWERS = {
    "nothing": "",
    "no message": "syswrite($c, 'x' x 100)",
    "a length that cannot be": "syswrite($c, pack('IIII', 203, 3, 8, 0))",
    "a message without an end": "syswrite($c, pack('IIII', 304, 1 << 31, 8, 0)); syswrite($c, 'x' x 65536) for 1..64",
    "a file to write": "syswrite($c, message(303, pack('iii', 3, -1, 1) . \"/app/x\\0\"))",
    "a file of the machine": "syswrite($c, message(303, pack('iii', 1, -1, 1)))",
    "a file to read": "syswrite($c, message(300, pack('ii', 1, -1) . \"/etc/shadow\\0\"))",
    "a shell to start": 'syswrite($c, message(209, "/bin/sh\\0"))',
    "a program to start": 'syswrite($c, message(217, "touch /tmp/x\\0/bin/sh\\0"))',
    "the same stream twice": "syswrite($c, message(303, pack('iii', 1, 1, 0)) x 2)",
    "output that was not announced": "syswrite($c, message(304, pack('i', 2) . 'x') . message(203, pack('i', 0)))",
    "small talk without an end": "syswrite($c, message(218, pack('q', 0))) for 1..100000",
    "another version": "syswrite($c, pack('IIII', 12, 16, 9, 0))",
}
BACK = r"""
sub fails { my ($what, $result) = @_; return $result == -1 ? "" : "$what worked;" }
my $found = '';
my $option = pack('i', -1); my $length = pack('i', 4);
# SO_PEERPIDFD, then what can be done with it: take its descriptors, signal it, join its namespaces
my $got = syscall(55, fileno($c), 1, 77, $option, $length);
my $fd = unpack('i', $option);
if ($got == 0 && $fd >= 0) {
  $found .= fails("getfd $_", syscall(438, $fd, $_, 0)) for 0 .. 40;
  $found .= fails('signal', syscall(424, $fd, 0, 0, 0));
  $found .= fails("setns $_", syscall(308, $fd, $_)) for (0x00020000, 0x20000000, 0x40000000, 0x04000000);
}
my $credentials = getsockopt($c, 1, 17);
my ($pid) = unpack('iii', $credentials);
$found .= "pid $pid;" if $pid != 0;
open(my $out, '>', '/app/found'); print $out "$got:$found\n"; close $out
"""


async def listening(sandbox: OciEnvironment, answer: str) -> None:
    script = SERVER.replace("__ANSWER__", answer)
    started = await sandbox.exec(f"perl -e {shlex.quote(script)} > /dev/null 2>&1")
    assert started.return_code == 0, started.stderr


@pytest.mark.parametrize("answer", ANSWERS)
async def test_what_is_no_answer_ends_the_line(make: Make, answer: str) -> None:
    """The command is then run, as if there were no line, and the sandbox works on."""
    sandbox = await make()
    assert isinstance(sandbox, OciEnvironment) and sandbox._line is not None
    await sandbox.exec("tmux -V")
    await listening(sandbox, ANSWERS[answer])
    await sandbox.exec("tmux has-session -t main", timeout_sec=60)
    assert sandbox._line.answers == 0
    assert (await sandbox.exec("cat /app/asked")).stdout == "2", "asked by the worker, and then by tmux itself"
    await sandbox.exec("kill -9 $(pidof perl); rm -rf /tmp/tmux-0")
    # the benign twin, in the same sandbox
    assert (await sandbox.exec("tmux new-session -d -s main bash")).return_code == 0
    assert (await sandbox.exec("tmux has-session -t main")).return_code == 0
    assert not Path("/app/x").exists()


async def test_an_honest_server_is_asked(make: Make) -> None:
    sandbox = await make()
    assert isinstance(sandbox, OciEnvironment) and sandbox._line is not None
    await sandbox.exec("tmux -V")
    await sandbox.exec("tmux new-session -d -s main bash")
    assert (await sandbox.exec("tmux has-session -t main")).return_code == 0
    assert sandbox._line.answers == 1


async def test_endless_output_is_bounded_and_can_be_stopped(make: Make) -> None:
    sandbox = await make()
    assert isinstance(sandbox, OciEnvironment)
    await sandbox.exec("tmux -V")
    endless = (
        "syswrite($c, message(303, pack('iii', 1, 1, 0))); my $m = message(304, pack('i', 1) . 'x' x 16000);"
        "1 while syswrite($c, $m)"
    )
    await listening(sandbox, endless)
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("tmux capture-pane -p -t main", timeout_sec=2)
    assert (await sandbox.exec("echo on")).stdout == "on\n"


async def test_the_worker_cannot_be_reached_back(make: Make) -> None:
    sandbox = await make()
    assert isinstance(sandbox, OciEnvironment) and sandbox._line is not None
    await sandbox.exec("tmux -V")
    await listening(sandbox, f"{{ {BACK} }}; syswrite($c, message(203, pack('i', 0)))")
    assert (await sandbox.exec("tmux has-session -t main", timeout_sec=60)).return_code == 0
    assert sandbox._line.answers == 1, "the false server was not asked"
    found = (await sandbox.exec("cat /app/found")).stdout or ""
    assert found.partition(":")[2] == "\n", found


async def test_a_link_in_the_place_of_the_socket_is_not_followed(make: Make) -> None:
    sandbox = await make()
    assert isinstance(sandbox, OciEnvironment) and sandbox._line is not None
    await sandbox.exec("tmux -V")
    await sandbox.exec("tmux new-session -d -s main bash && mv /tmp/tmux-0/default /tmp/elsewhere")
    await sandbox.exec("ln -s /tmp/elsewhere /tmp/tmux-0/default")
    assert (await sandbox.exec("tmux has-session -t main")).return_code == 0
    assert sandbox._line.answers == 0
