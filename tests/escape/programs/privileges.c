/* Rights that were given up, and filters that should stay in force. */

#include "attempt.h"
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define TRIED 0x0040000 /* ADDR_NO_RANDOMIZE: any process may ask for it */

static int root_now(int done)
{
    if (done != 0)
        return held(errno);
    return geteuid() == 0 || getegid() == 0 ? reached() : held(EPERM);
}

static int set_uid(char **a) { (void)a; return root_now((int)syscall(SYS_setuid, 0)); }
static int set_gid(char **a) { (void)a; return root_now((int)syscall(SYS_setgid, 0)); }
static int set_reuid(char **a) { (void)a; return root_now((int)syscall(SYS_setreuid, 0, 0)); }
static int set_regid(char **a) { (void)a; return root_now((int)syscall(SYS_setregid, 0, 0)); }
static int set_resuid(char **a) { (void)a; return root_now((int)syscall(SYS_setresuid, 0, 0, 0)); }
static int set_resgid(char **a) { (void)a; return root_now((int)syscall(SYS_setresgid, 0, 0, 0)); }

static int set_fsuid(char **a)
{
    (void)a;
    syscall(SYS_setfsuid, 0);
    return syscall(SYS_setfsuid, -1) == 0 ? reached() : held(EPERM);
}

static int set_groups(char **a)
{
    gid_t root = 0;
    (void)a;
    return judge(syscall(SYS_setgroups, 1, &root), 0);
}

static int is_root(char **a)
{
    (void)a;
    return geteuid() == 0 ? reached() : held(EPERM);
}

static int capability_bits(uint32_t *effective, uint32_t *permitted)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return -1;
    *effective = data[0].effective | data[1].effective;
    *permitted = data[0].permitted | data[1].permitted;
    return 0;
}

static int has_capabilities(char **a)
{
    uint32_t effective, permitted;
    (void)a;
    if (capability_bits(&effective, &permitted) != 0)
        return held(errno);
    return effective | permitted ? reached() : held(EPERM);
}

static int take_capabilities(char **a)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    /* CHOWN, DAC_OVERRIDE and SETUID, which every kind of root has. */
    struct __user_cap_data_struct data[2] = {{0x83, 0x83, 0x83}, {0, 0, 0}};
    (void)a;
    return judge(syscall(SYS_capset, &header, data), 0);
}

static int raise_ambient(char **a)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0x80, 0x80, 0x80}, {0, 0, 0}};
    (void)a;
    syscall(SYS_capset, &header, data);
    return judge(syscall(SYS_prctl, 47, 2, 7, 0, 0), 0);
}

static int set_secure_bits(char **a)
{
    (void)a;
    return judge(syscall(SYS_prctl, PR_SET_SECUREBITS, 0, 0, 0, 0), 0);
}

static int clear_no_new_privs(char **a)
{
    (void)a;
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
    return syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? reached() : held(EPERM);
}

static int clear_no_new_privs_with_high_bits(char **a)
{
    (void)a;
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS | 1UL << 32, 1UL << 32, 0, 0, 0);
    return syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? reached() : held(EPERM);
}

/* The file that /proc/self/exe leads to, and the memory map as /proc tells it. */
static int set_memory_map(char **a)
{
    (void)a;
    return judge(syscall(SYS_prctl, PR_SET_MM, PR_SET_MM_START_BRK, (long)sbrk(0), 0, 0), EINVAL);
}

static int set_executable(char **a)
{
    (void)a;
    return judge(syscall(SYS_prctl, PR_SET_MM, PR_SET_MM_EXE_FILE, -1, 0, 0), EBADF);
}

static int raise_limit(int kind)
{
    struct rlimit limit;
    if (getrlimit(kind, &limit) != 0)
        return held(errno);
    limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
    return judge(setrlimit(kind, &limit), 0);
}

/* From a bound that it sets itself: the host's may be infinite already. */
static int raise_a_limit(char **a)
{
    struct rlimit low = {64, 64};
    (void)a;
    setrlimit(RLIMIT_NOFILE, &low);
    return raise_limit(RLIMIT_NOFILE);
}

static int real_time(char **a)
{
    int priority = 1;
    (void)a;
    return judge(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &priority), 0);
}

static int higher_priority(char **a)
{
    (void)a;
    return judge(syscall(SYS_setpriority, PRIO_PROCESS, 0, -5), 0);
}

static struct sock_filter allow_all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog all = {1, allow_all};

static struct sock_filter ask_about_personality[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, 0x7fc00000U /* SECCOMP_RET_USER_NOTIF */),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_fprog asking = {4, ask_about_personality};

static int tried(void)
{
    return judge(syscall(SYS_personality, TRIED), 0);
}

static int another_filter(char **a)
{
    (void)a;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) != 0)
        return held(errno);
    return tried();
}

static int another_filter_by_prctl(char **a)
{
    (void)a;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0) != 0)
        return held(errno);
    return tried();
}

static int no_filter(char **a)
{
    (void)a;
    prctl(PR_SET_SECCOMP, 0, 0, 0, 0);
    return tried();
}

/* One's own supervisor says that a call may go on. */
static int own_supervisor(char **a)
{
    long listener;
    struct pollfd asked;
    pid_t pid;
    int status = 0, result;
    (void)a;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 8 /* NEW_LISTENER */, &asking);
    if (listener < 0)
        return held(errno);
    asked = (struct pollfd){.fd = (int)listener, .events = POLLIN};
    if ((pid = fork()) == 0)
        _exit(syscall(SYS_personality, TRIED) < 0 ? errno
              : syscall(SYS_personality, 0xffffffff) < 0 ? errno : 0);
    for (;;) {
        char request[256] = {0};
        struct { uint64_t id; int64_t value; int32_t error; uint32_t flags; } response = {0};
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            break;
        /* Its end makes nothing readable: this process has the filter too. */
        if (poll(&asked, 1, 5) <= 0 || ioctl((int)listener, 0xc0502100 /* NOTIF_RECV */, request))
            continue;
        memcpy(&response.id, request, sizeof response.id);
        response.flags = 1; /* CONTINUE */
        ioctl((int)listener, 0xc0182101 /* NOTIF_SEND */, &response);
    }
    result = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
    return result == 0 ? reached() : held(result);
}

/* A ruleset of one's own that allows everything, with the files of the outer one inside. */
static int own_landlock(char **a)
{
    struct landlock_ruleset_attr handled = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    struct landlock_path_beneath_attr everything = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
        .parent_fd = open("/", O_PATH | O_CLOEXEC),
    };
    char buffer[256] = {0};
    int fd;
    long ruleset = syscall(SYS_landlock_create_ruleset, &handled, sizeof(uint64_t), 0);
    if (ruleset < 0)
        return held(errno);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &everything, 0) != 0 ||
        syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        return held(errno);
    if ((fd = open(a[0], O_RDONLY)) < 0)
        return held(errno);
    return judge(read(fd, buffer, sizeof buffer - 1), 0);
}

static const struct attempt attempts[] = {
    {"setuid", set_uid},
    {"setgid", set_gid},
    {"setreuid", set_reuid},
    {"setregid", set_regid},
    {"setresuid", set_resuid},
    {"setresgid", set_resgid},
    {"setfsuid", set_fsuid},
    {"setgroups", set_groups},
    {"be root", is_root},
    {"have capabilities", has_capabilities},
    {"capset", take_capabilities},
    {"raise ambient", raise_ambient},
    {"secure bits", set_secure_bits},
    {"clear no_new_privs", clear_no_new_privs},
    {"clear no_new_privs with high bits", clear_no_new_privs_with_high_bits},
    {"PR_SET_MM", set_memory_map},
    {"PR_SET_MM_EXE_FILE", set_executable},
    {"raise a limit", raise_a_limit},
    {"real-time", real_time},
    {"higher priority", higher_priority},
    {"another filter", another_filter},
    {"another filter by prctl", another_filter_by_prctl},
    {"no filter", no_filter},
    {"own supervisor", own_supervisor},
    {"own landlock", own_landlock},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
