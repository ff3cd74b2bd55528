/* What one process can do to another. Arguments: its PID, and what the attempt needs. */

#include "attempt.h"
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <poll.h>

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef PTRACE_SEIZE
#define PTRACE_SEIZE 0x4206
#endif

static pid_t target(char **arguments)
{
    return strcmp(arguments[0], "parent") == 0 ? getppid() : atoi(arguments[0]);
}

/* Seizing does not stop it. */
static int seize(char **arguments)
{
    return judge(syscall(SYS_ptrace, PTRACE_SEIZE, target(arguments), 0, 0), 0);
}

static int attach(char **arguments)
{
    pid_t pid = target(arguments);
    int status, end;
    if (syscall(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0) != 0)
        return held(errno);
    waitpid(pid, &status, __WALL);
    end = reached();
    syscall(SYS_ptrace, PTRACE_DETACH, pid, 0, 0);
    return end;
}

static int be_traced(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0), 0);
}

static int trace_a_child(char **arguments)
{
    long result;
    int error;
    pid_t pid = fork();
    (void)arguments;
    if (pid == 0) {
        pause();
        _exit(0);
    }
    result = syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0);
    error = errno;
    kill(pid, SIGKILL);
    errno = error;
    return judge(result, 0);
}

/* 1: address of a secret, 2: its length. */
static int read_memory(char **arguments)
{
    char buffer[256] = {0};
    struct iovec here = {buffer, (size_t)atoi(arguments[2])};
    struct iovec there = {(void *)strtoul(arguments[1], NULL, 10), here.iov_len};
    if (syscall(SYS_process_vm_readv, target(arguments), &here, 1, &there, 1, 0) < 0)
        return held(errno);
    puts(buffer);
    return 0;
}

/* Back what is there, so that it can be read again by others. */
static int write_memory(char **arguments)
{
    char buffer[256] = {0};
    struct iovec here = {buffer, (size_t)atoi(arguments[2])};
    struct iovec there = {(void *)strtoul(arguments[1], NULL, 10), here.iov_len};
    syscall(SYS_process_vm_readv, target(arguments), &here, 1, &there, 1, 0);
    return judge(syscall(SYS_process_vm_writev, target(arguments), &here, 1, &there, 1, 0), 0);
}

static long handle(char **arguments)
{
    return syscall(SYS_pidfd_open, target(arguments), 0);
}

/* 1: a descriptor of its. */
static int take_descriptor(char **arguments)
{
    char buffer[256] = {0};
    long fd = handle(arguments);
    if (fd < 0 || (fd = syscall(SYS_pidfd_getfd, fd, atoi(arguments[1]), 0)) < 0)
        return held(errno);
    if (pread((int)fd, buffer, sizeof buffer - 1, 0) > 0)
        puts(buffer);
    return reached();
}

static int compare(char **arguments)
{
    return judge(syscall(SYS_kcmp, getpid(), target(arguments), 2, 0, 0), 0);
}

static int advise(char **arguments)
{
    struct iovec there = {(void *)(strtoul(arguments[1], NULL, 10) & ~4095UL), 4096};
    long fd = handle(arguments);
    if (fd < 0)
        return held(errno);
    return judge(syscall(SYS_process_madvise, fd, &there, 1, MADV_COLD, 0), 0);
}

static int release_memory(char **arguments)
{
    long fd = handle(arguments);
    if (fd < 0)
        return held(errno);
    return judge(syscall(SYS_process_mrelease, fd, 0), EINVAL); /* it is not dying */
}

static int list_pages(char **arguments)
{
    int status[1];
    void *page = (void *)(strtoul(arguments[1], NULL, 10) & ~4095UL);
    return judge(syscall(SYS_move_pages, target(arguments), 1, &page, 0, status, 0), 0);
}

static int robust_list(char **arguments)
{
    void *head;
    size_t length;
    return judge(syscall(SYS_get_robust_list, target(arguments), &head, &length), 0);
}

static int by_kill(char **arguments)
{
    return judge(syscall(SYS_kill, target(arguments), SIGUSR1), 0);
}

static int by_tgkill(char **arguments)
{
    pid_t pid = target(arguments);
    return judge(syscall(SYS_tgkill, pid, pid, SIGUSR1), 0);
}

static int by_tkill(char **arguments)
{
    return judge(syscall(SYS_tkill, target(arguments), SIGUSR1), 0);
}

static int by_queue(char **arguments)
{
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    return judge(syscall(SYS_rt_sigqueueinfo, target(arguments), SIGUSR1, &info), 0);
}

static int by_thread_queue(char **arguments)
{
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    pid_t pid = target(arguments);
    info.si_pid = getpid();
    return judge(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &info), 0);
}

static int by_pidfd(char **arguments)
{
    long fd = handle(arguments);
    if (fd < 0)
        return held(errno);
    return judge(syscall(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0), 0);
}

static int by_group(char **arguments)
{
    return judge(syscall(SYS_kill, -target(arguments), SIGUSR1), 0);
}

/* Its owner gets a signal when a descriptor becomes readable: sent by the kernel, in the
   name of who set it up. Whether it arrived is seen at the other end. */
static int by_ownership(char **arguments)
{
    int ends[2];
    struct pollfd readable;
    if (pipe(ends) != 0 || fcntl(ends[0], F_SETOWN, target(arguments)) != 0)
        return held(errno);
    if (fcntl(ends[0], F_SETSIG, SIGUSR1) != 0 || fcntl(ends[0], F_SETFL, O_ASYNC) != 0)
        return held(errno);
    if (write(ends[1], "x", 1) != 1)
        return held(errno);
    readable = (struct pollfd){.fd = ends[0], .events = POLLIN};
    poll(&readable, 1, 1000);
    puts("held: as far as the sender can tell");
    return 0;
}

static int set_limits(char **arguments)
{
    struct rlimit now, same;
    pid_t pid = target(arguments);
    if (syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &now) != 0)
        return held(errno);
    same = now;
    return judge(syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &same, NULL), 0);
}

static int get_limits(char **arguments)
{
    struct rlimit now;
    return judge(syscall(SYS_prlimit64, target(arguments), RLIMIT_CPU, NULL, &now), 0);
}

static int set_priority(char **arguments)
{
    return judge(syscall(SYS_setpriority, PRIO_PROCESS, target(arguments), 1), 0);
}

/* Of all processes of the caller's user: who is 0. */
static int set_priority_of_user(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_setpriority, PRIO_USER, 0, 1), 0);
}

static int set_scheduler(char **arguments)
{
    int priority = 0;
    return judge(syscall(SYS_sched_setscheduler, target(arguments), SCHED_BATCH, &priority), 0);
}

static int set_scheduling_attributes(char **arguments)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } batch = {.size = 48, .policy = SCHED_BATCH, .nice = 1};
    return judge(syscall(SYS_sched_setattr, target(arguments), &batch, 0), 0);
}

static int set_scheduling_parameters(char **arguments)
{
    int priority = 0;
    return judge(syscall(SYS_sched_setparam, target(arguments), &priority), 0);
}

static int set_affinity(char **arguments)
{
    unsigned long set[16] = {0};
    pid_t pid = target(arguments);
    long size = syscall(SYS_sched_getaffinity, pid, sizeof set, set);
    if (size < 0)
        return held(errno);
    return judge(syscall(SYS_sched_setaffinity, pid, size, set), 0);
}

static int set_io_priority(char **arguments)
{
    return judge(syscall(SYS_ioprio_set, 1, target(arguments), 2 << 13 | 7), 0);
}

static const struct attempt attempts[] = {
    {"ptrace seize", seize},
    {"ptrace attach", attach},
    {"ptrace traceme", be_traced},
    {"ptrace a child", trace_a_child},
    {"process_vm_readv", read_memory},
    {"process_vm_writev", write_memory},
    {"pidfd_getfd", take_descriptor},
    {"kcmp", compare},
    {"process_madvise", advise},
    {"process_mrelease", release_memory},
    {"move_pages", list_pages},
    {"get_robust_list", robust_list},
    {"kill", by_kill},
    {"kill a group", by_group},
    {"tgkill", by_tgkill},
    {"tkill", by_tkill},
    {"rt_sigqueueinfo", by_queue},
    {"rt_tgsigqueueinfo", by_thread_queue},
    {"pidfd_send_signal", by_pidfd},
    {"F_SETOWN", by_ownership},
    {"prlimit64", set_limits},
    {"prlimit64 read", get_limits},
    {"setpriority", set_priority},
    {"setpriority of the user", set_priority_of_user},
    {"sched_setscheduler", set_scheduler},
    {"sched_setattr", set_scheduling_attributes},
    {"sched_setparam", set_scheduling_parameters},
    {"sched_setaffinity", set_affinity},
    {"ioprio_set", set_io_priority},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
