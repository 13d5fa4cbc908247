/* Makes one system call by name and prints its error number, 0 for success. Runs in any image: it is linked statically.
 *
 * Arguments are chosen so that the kernel itself answers with another error than the filter does. A socket of type 15
 * is refused with EINVAL whatever the kernel knows about the family, so EAFNOSUPPORT can only come from the filter. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_TYPE 15
#define X32 0x40000000L

static long compat(long number, long a, long b, long c) {
    long result = -ENOSYS;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
#endif
    return result;
}

static long told(long result) { return result < 0 ? (errno = (int)-result, -1) : result; }

static long compat_socketcall(long family, long type) {
    unsigned *arguments = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    arguments[0] = (unsigned)family, arguments[1] = (unsigned)type, arguments[2] = 0;
    return told(compat(102, 1, (long)arguments, 0));
}

static long forked(unsigned long flags) {
    long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    if (child > 0) waitpid((pid_t)child, 0, 0);
    return child;
}

static long try(const char *name, long value) {
#define IS(word) (!strcmp(name, word))
    if (IS("socket")) return syscall(SYS_socket, value, NO_TYPE, 0);
    if (IS("socket-high-bits")) return syscall(SYS_socket, value | 1L << 32, NO_TYPE, 0);
    if (IS("socketpair")) return syscall(SYS_socketpair, value, NO_TYPE, 0, 0);
    if (IS("x32-socket")) return syscall(SYS_socket | X32, value, NO_TYPE, 0);
    if (IS("compat-socket")) return told(compat(359, value, NO_TYPE, 0));
    if (IS("compat-socketcall")) return compat_socketcall(value, NO_TYPE);
    if (IS("netlink")) return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, value);
    if (IS("netlink-high-bits")) return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, value | 1L << 32);
    if (IS("open-socket")) return syscall(SYS_socket, value, SOCK_STREAM, 0);
    if (IS("open-datagrams")) return syscall(SYS_socket, value, SOCK_DGRAM, 0);
    if (IS("open-pair")) { int pair[2]; return syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair); }
    if (IS("open-netlink")) return syscall(SYS_socket, AF_NETLINK, SOCK_RAW, value);
    if (IS("fork")) return forked(0);
    if (IS("unshare")) return syscall(SYS_unshare, value);
    if (IS("clone")) return forked((unsigned long)value);
    if (IS("clone3")) return syscall(SYS_clone3, 0, 0);
    if (IS("setns")) return syscall(SYS_setns, -1, 0);
    if (IS("io_uring_setup")) return syscall(425, 0, 0);
    if (IS("io_uring_enter")) return syscall(426, -1, 0, 0, 0, 0, 0);
    if (IS("io_uring_register")) return syscall(427, -1, 0, 0, 0);
    if (IS("keyctl")) return syscall(SYS_keyctl, -1, 0, 0, 0, 0);
    if (IS("add_key")) return syscall(SYS_add_key, 0, 0, 0, 0, 0);
    if (IS("request_key")) return syscall(SYS_request_key, 0, 0, 0, 0);
    if (IS("bpf")) return syscall(SYS_bpf, -1, 0, 0);
    if (IS("userfaultfd")) return syscall(SYS_userfaultfd, 0xffff);
    if (IS("perf_event_open")) return syscall(SYS_perf_event_open, 0, 0, -1, -1, 0);
    if (IS("name_to_handle_at")) return syscall(SYS_name_to_handle_at, -1, 0, 0, 0, 0);
    if (IS("open_by_handle_at")) return syscall(SYS_open_by_handle_at, -1, 0, 0);
    if (IS("pidfd_getfd")) return syscall(438, -1, 0, 0);
    if (IS("personality")) return syscall(SYS_personality, value);
    if (IS("mount")) return syscall(SYS_mount, 0, 0, 0, 0, 0);
    if (IS("fsopen")) return syscall(430, 0, 0);
    if (IS("open_tree")) return syscall(428, -1, 0, 0);
    if (IS("move_mount")) return syscall(429, -1, 0, -1, 0, 0);
    if (IS("mount_setattr")) return syscall(442, -1, 0, 0, 0, 0);
    if (IS("kcmp")) return syscall(SYS_kcmp, -1, -1, 99, 0, 0);
    if (IS("syslog")) return syscall(SYS_syslog, 99, 0, 0);
    if (IS("quotactl")) return syscall(SYS_quotactl, 0, 0, 0, 0);
    if (IS("init_module")) return syscall(SYS_init_module, 0, 0, 0);
    if (IS("kexec_load")) return syscall(SYS_kexec_load, 0, 0, 0, 0);
    fprintf(stderr, "unknown: %s\n", name);
    exit(2);
}

int main(int count, char **words) {
    /* Each call in a process of its own: a filter may kill. */
    for (int at = 1; at < count; at++) {
        char *value = strchr(words[at], '=');
        if (value) *value++ = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            errno = 0;
            long result = try(words[at], value ? strtol(value, 0, 0) : 0);
            printf("%s%s%s %d\n", words[at], value ? "=" : "", value ? value : "", result < 0 ? errno : 0);
            fflush(stdout);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) printf("%s%s%s killed\n", words[at], value ? "=" : "", value ? value : "");
    }
    return 0;
}
