/* Calls into the kernel that no tool needs. */

#include "attempt.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

static unsigned char zeros[512];
static uint32_t map[32] = {2, 4, 4, 1}; /* an array of one element */
/* A software clock of this process, in user mode only. */
static uint64_t clock_event[16] = {1 | 112ULL << 32, 0, 0, 0, 0, 0x60};
static uint32_t handle[34] = {128};
static uint32_t root_handle[4] = {8, 1, 2, 0}; /* inode 2, as a forger would guess it */
static int mount_id;
static unsigned long context;

#define P(x) ((long)(x))
#define NOWHERE P("/nonexistent/toolcell-escape")

static const struct call calls[] = {
    {"bpf", SYS_bpf, {0, P(map), 128}, 0},
    {"perf_event_open", SYS_perf_event_open, {P(clock_event), 0, -1, -1, 0}, 0},
    {"userfaultfd", SYS_userfaultfd, {1}, 0},
    {"add_key", SYS_add_key, {P("user"), P("toolcell-escape"), P("x"), 1, -2}, 0},
    {"request_key", SYS_request_key, {P("user"), P("toolcell-no-such-key"), 0, -2}, ENOKEY},
    {"keyctl the session's keyring", SYS_keyctl, {0, -3, 1}, ENOKEY},
    {"keyctl the user's keyring", SYS_keyctl, {0, -4, 1}, ENOKEY},
    {"keyctl a new session", SYS_keyctl, {1, 0}, 0},
    {"init_module", SYS_init_module, {P(zeros), 0, P("")}, ENOEXEC},
    {"finit_module", SYS_finit_module, {-1, P(""), 0}, EBADF},
    {"delete_module", SYS_delete_module, {P("toolcell_no_such"), O_NONBLOCK}, ENOENT},
    /* Flags that no kernel knows: permission is looked at before them. */
    {"kexec_load", SYS_kexec_load, {0, 0, 0, 0xfff0}, EINVAL},
    {"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, P(""), 0x8000}, EINVAL},
    {"reboot", SYS_reboot, {0, 0, 0, 0}, EINVAL},
    {"swapon", SYS_swapon, {NOWHERE, 0}, ENOENT},
    {"swapoff", SYS_swapoff, {NOWHERE}, ENOENT},
    {"acct", SYS_acct, {NOWHERE}, ENOENT},
    {"settimeofday", SYS_settimeofday, {0, 0}, 0},
    {"clock_settime", SYS_clock_settime, {0, 8}, EFAULT},
    {"adjtimex", SYS_adjtimex, {P(zeros)}, 0},
    {"clock_adjtime", SYS_clock_adjtime, {0, P(zeros)}, 0},
    {"syslog", SYS_syslog, {3, P(zeros), 16}, 0},
    {"quotactl", SYS_quotactl, {0x800001 << 8, 0, 0, 0}, 0},
    {"quotactl_fd", SYS_quotactl_fd, {-1, 0, 0, 0}, EBADF},
    {"memfd_secret", SYS_memfd_secret, {0}, 0},
    {"fanotify_init", SYS_fanotify_init, {0x200, 0}, 0},
    {"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, P("."), P(handle), P(&mount_id), 0}, 0},
    {"open_by_handle_at", SYS_open_by_handle_at, {AT_FDCWD, P(root_handle), O_RDONLY}, ESTALE},
    {"ioprio_set", SYS_ioprio_set, {1, 0, 3 << 13}, 0},
    {"io_setup", SYS_io_setup, {1, P(&context)}, 0},
    {"io_uring_setup", SYS_io_uring_setup, {1, P(zeros)}, 0},
    {"sethostname", SYS_sethostname, {P("reached"), 7}, 0},
    {"setdomainname", SYS_setdomainname, {P("reached"), 7}, 0},
    {"get_mempolicy", SYS_get_mempolicy, {0, 0, 0, 0, 0}, 0},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {3}, 0},
    {"ioperm", SYS_ioperm, {0x80, 1, 1}, 0},
    {"modify_ldt read", SYS_modify_ldt, {0, P(zeros), 16}, 0},
    {"modify_ldt write", SYS_modify_ldt, {0x11, P(zeros), 16}, 0},
#endif
    {NULL},
};

int main(int argc, char **argv)
{
    return run_calls(calls, argc, argv);
}
