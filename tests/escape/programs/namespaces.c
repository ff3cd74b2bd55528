/* New namespaces, and those of others: by unshare, clone, clone3 and setns. */

#include "attempt.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define HIGH (0xffffffffULL << 32)

static const struct {
    const char *name;
    unsigned long flag;
} kinds[] = {
    {"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"network", CLONE_NEWNET},
    {"pid", CLONE_NEWPID},   {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
    {"cgroup", CLONE_NEWCGROUP}, {"time", CLONE_NEWTIME}, {NULL, 0},
};

static unsigned long flag(const char *name)
{
    for (int i = 0; kinds[i].name; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].flag;
    puts("BROKEN: no such namespace");
    exit(2);
}

static int by_unshare(char **arguments)
{
    return judge(syscall(SYS_unshare, flag(arguments[0])), 0);
}

static int cloned(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return judge_child(pid);
}

static int by_clone(char **arguments)
{
    return cloned(flag(arguments[0]));
}

static int by_clone_high(char **arguments)
{
    return cloned(flag(arguments[0]) | HIGH);
}

static int by_clone_with_others(char **arguments)
{
    return cloned(flag(arguments[0]) | CLONE_UNTRACED | CLONE_IO);
}

static int by_clone3(char **arguments)
{
    uint64_t request[11] = {flag(arguments[0]), 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, request, 64);
    if (pid == 0)
        _exit(0);
    return judge_child(pid);
}

static int by_clone3_larger(char **arguments)
{
    uint64_t request[11] = {flag(arguments[0]), 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, request, sizeof request);
    if (pid == 0)
        _exit(0);
    return judge_child(pid);
}

/* argument: a file of /proc/PID/ns. Joining the namespace that one is in already is refused
   to nobody who may join it at all. */
static int by_setns(char **arguments)
{
    int fd = open(arguments[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return held(errno);
    return judge(syscall(SYS_setns, fd, 0), 0);
}

static int by_setns_of_a_process(char **arguments)
{
    long fd = syscall(SYS_pidfd_open, atoi(arguments[0]), 0);
    if (fd < 0)
        return held(errno);
    return judge(syscall(SYS_setns, fd, CLONE_NEWUTS), 0);
}

static const struct attempt attempts[] = {
    {"unshare", by_unshare},
    {"clone", by_clone},
    {"clone with high bits", by_clone_high},
    {"clone with other flags", by_clone_with_others},
    {"clone3", by_clone3},
    {"clone3 of a larger size", by_clone3_larger},
    {"setns", by_setns},
    {"setns of a process", by_setns_of_a_process},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
