/* What the programs share: an attempt has a name, is made once, and says how it ended.

   REACHED            nothing stopped it
   held: 1 Operation not permitted
   BROKEN: ...        it could not be made at all, which is a fault of the suite */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Any answer but "no such call" and "not permitted" shows that the kernel took the call. */
#define ANY_ANSWER (-1)

struct attempt {
    const char *name;
    int (*make)(char **arguments);
};

static inline int reached(void)
{
    puts("REACHED");
    return 0;
}

static inline int held(int error)
{
    printf("held: %d %s\n", error, strerror(error));
    return 1;
}

/* `past` is the errno of a kernel that permits the call and then dislikes its arguments:
   privileged calls are made with arguments that can do no harm on the host. */
static inline int judge(long result, int past)
{
    int error = errno;
    if (result >= 0 || (past > 0 && error == past))
        return reached();
    if (past == ANY_ANSWER && error != ENOSYS && error != EPERM)
        return reached();
    return held(error);
}

/* How a child ended that does what was to be shown. */
static inline int judge_child(long pid)
{
    int status;
    if (pid < 0)
        return held(errno);
    if (waitpid((pid_t)pid, &status, __WALL) < 0)
        return held(errno);
    if (WIFSIGNALED(status)) {
        printf("held: the child was killed by signal %d\n", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status) == 0 ? reached() : held(WEXITSTATUS(status));
}

static inline int run(const struct attempt *attempts, int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; argc > 1 && attempts->name; attempts++) {
        if (strcmp(attempts->name, argv[1]) == 0) {
            puts("TRY");
            return attempts->make(argv + 2);
        }
    }
    puts("BROKEN: no such attempt");
    return 2;
}

/* One raw system call, which most attempts are. */
struct call {
    const char *name;
    long number;
    long arguments[6];
    int past;
};

static inline int run_calls(const struct call *calls, int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; argc > 1 && calls->name; calls++) {
        if (strcmp(calls->name, argv[1]) == 0) {
            const long *a = calls->arguments;
            puts("TRY");
            return judge(syscall(calls->number, a[0], a[1], a[2], a[3], a[4], a[5]), calls->past);
        }
    }
    puts("BROKEN: no such attempt");
    return 2;
}
