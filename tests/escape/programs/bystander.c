/* A process of the host that no cell may touch: holds a secret in its environment, its
   arguments, its memory and an open file, and counts the signals that it is sent.

   Arguments: a file with the secret, a mark to be found by. Says its secret's address and
   the file's descriptor, then answers each line that it reads with its count. */

#include "attempt.h"

static volatile sig_atomic_t signals;

static void count(int number)
{
    (void)number;
    signals++;
}

int main(int argc, char **argv)
{
    static char secret[256];
    char line[16];
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || pread(fd, secret, sizeof secret - 1, 0) < 1)
        return 1;
    signal(SIGUSR1, count);
    printf("%lu %d\n", (unsigned long)secret, fd);
    fflush(stdout);
    for (;;) {
        ssize_t got = read(0, line, sizeof line);
        if (got == 0)
            return 0;
        if (got > 0) {
            printf("%d\n", (int)signals);
            fflush(stdout);
        }
    }
}
