/* Input that is put into a terminal as if somebody had typed it. */

#include "attempt.h"
#include <sys/ioctl.h>
#include <termios.h>

static unsigned long number(const char *text)
{
    return strtoul(text, NULL, 16);
}

/* 0: the request in hexadecimal, 1: bits above the low 32. */
static int request(char **arguments)
{
    char content = number(arguments[0]) == TIOCSTI ? 'x' : 3; /* a character, a subcode */
    int side, ours = posix_openpt(O_RDWR | O_NOCTTY);
    if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0)
        return held(errno);
    side = open(ptsname(ours), O_RDWR | O_NOCTTY);
    if (side < 0)
        return held(errno);
    /* Without a controlling terminal it is refused in any case. */
    setsid();
    ioctl(side, TIOCSCTTY, 0);
    return judge(
        syscall(SYS_ioctl, side, number(arguments[0]) | number(arguments[1]) << 32, &content),
        /* Pseudo-terminals have no TIOCLINUX: their answer is from beyond the filter. */
        number(arguments[0]) == TIOCLINUX ? ENOTTY : 0);
}

static const struct attempt attempts[] = {{"ioctl", request}, {NULL, NULL}};

int main(int argc, char **argv)
{
    /* A group's leader cannot make a session of its own. */
    pid_t pid = fork();
    if (pid == 0)
        return run(attempts, argc, argv);
    waitpid(pid, NULL, 0);
    return 0;
}
