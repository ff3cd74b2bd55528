/* Files, by calls that the standard library does not offer. */

#include "attempt.h"
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_renameat2
#define SYS_renameat2 316
#endif

static int show(int fd)
{
    char buffer[256] = {0};
    if (fd < 0)
        return held(errno);
    if (read(fd, buffer, sizeof buffer - 1) < 0)
        return held(errno);
    puts(buffer);
    return 0;
}

/* 0: a path, 1: RESOLVE_ flags in hexadecimal. */
static int openat2(char **arguments)
{
    uint64_t how[3] = {O_RDONLY | O_CLOEXEC, 0, strtoul(arguments[1], NULL, 16)};
    return show((int)syscall(SYS_openat2, AT_FDCWD, arguments[0], how, sizeof how));
}

/* A path below a directory that is a descriptor, whose ".." the root does not end. */
static int openat2_below(char **arguments)
{
    uint64_t how[3] = {O_RDONLY | O_CLOEXEC, 0, 0x10 /* RESOLVE_IN_ROOT */};
    int directory = open("/", O_PATH | O_DIRECTORY);
    return show((int)syscall(SYS_openat2, directory, arguments[0], how, sizeof how));
}

static int openat2_larger(char **arguments)
{
    uint64_t how[8] = {O_RDONLY | O_CLOEXEC};
    return show((int)syscall(SYS_openat2, AT_FDCWD, arguments[0], how, sizeof how));
}

/* A place that is only named becomes a file again through /proc. */
static int reopen(char **arguments)
{
    char path[64];
    int fd = open(arguments[0], O_PATH);
    if (fd < 0)
        return held(errno);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return show(open(path, O_RDONLY));
}

static int reopen_for_writing(char **arguments)
{
    char path[64];
    int fd = open(arguments[0], O_RDONLY);
    if (fd < 0)
        return held(errno);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fd = open(path, O_WRONLY | O_TRUNC);
    if (fd < 0)
        return held(errno);
    puts("written");
    return 0;
}

static int nul_in_the_path(char **arguments)
{
    char path[4096];
    size_t length = strlen(arguments[0]);
    memcpy(path, arguments[0], length + 1);
    memcpy(path + length + 1, "/allowed.txt", 13);
    return show(open(path, O_RDONLY));
}

static int told(long result)
{
    if (result < 0)
        return held(errno);
    puts("written");
    return 0;
}

static int exchange(char **arguments)
{
    return told(syscall(SYS_renameat2, AT_FDCWD, arguments[0], AT_FDCWD, arguments[1], 2));
}

static int whiteout(char **arguments)
{
    return told(syscall(SYS_renameat2, AT_FDCWD, arguments[0], AT_FDCWD, arguments[1], 4));
}

/* 0: a file to be replaced, 1: its directory. */
static int nameless_file(char **arguments)
{
    char path[64];
    int fd = open(arguments[1], O_TMPFILE | O_WRONLY, 0644);
    if (fd < 0 || write(fd, "evil", 4) != 4)
        return held(errno);
    unlink(arguments[0]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return told(linkat(AT_FDCWD, path, AT_FDCWD, arguments[0], AT_SYMLINK_FOLLOW));
}

static int through_a_mapping(char **arguments)
{
    int fd = open(arguments[0], O_RDWR);
    char *page;
    if (fd < 0)
        return held(errno);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return held(errno);
    page[0] = 'X';
    return told(msync(page, 4096, MS_SYNC));
}

static int copied_into(char **arguments)
{
    int from = open("/proc/self/exe", O_RDONLY), to = open(arguments[0], O_WRONLY);
    if (from < 0 || to < 0)
        return held(errno);
    if (sendfile(to, from, NULL, 16) == 16)
        return told(0);
    return told(copy_file_range(from, NULL, to, NULL, 16, 0));
}

static int allocated(char **arguments)
{
    int fd = open(arguments[0], O_WRONLY);
    if (fd < 0)
        return held(errno);
    return told(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}

/* Truncation by each of its four ways. */
static int truncate_path(char **arguments) { return told(truncate(arguments[0], 0)); }
static int truncate_creat(char **arguments) { return told(creat(arguments[0], 0644)); }

static int truncate_open(char **arguments)
{
    return told(open(arguments[0], O_RDONLY | O_TRUNC));
}

static int truncate_descriptor(char **arguments)
{
    int fd = open(arguments[0], O_WRONLY);
    if (fd < 0)
        return held(errno);
    return told(ftruncate(fd, 0));
}

/* 0: a path, 1: the type and mode in octal, 2: major, 3: minor */
static int node(char **arguments)
{
    mode_t mode = (mode_t)strtoul(arguments[1], NULL, 8);
    unsigned major = (unsigned)atoi(arguments[2]), minor = (unsigned)atoi(arguments[3]);
    return judge(mknod(arguments[0], mode, (dev_t)(major << 8 | minor)), 0);
}

static int leave_by_descriptor(char **arguments)
{
    int fd = open("..", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return held(errno);
    return show(openat(fd, arguments[0], O_RDONLY));
}

static const struct attempt attempts[] = {
    {"openat2", openat2},
    {"openat2 below a descriptor", openat2_below},
    {"openat2 of a larger size", openat2_larger},
    {"reopen", reopen},
    {"reopen for writing", reopen_for_writing},
    {"nul", nul_in_the_path},
    {"exchange", exchange},
    {"whiteout", whiteout},
    {"nameless file", nameless_file},
    {"mapping", through_a_mapping},
    {"sendfile", copied_into},
    {"punch a hole", allocated},
    {"truncate", truncate_path},
    {"creat", truncate_creat},
    {"open with O_TRUNC", truncate_open},
    {"ftruncate", truncate_descriptor},
    {"node", node},
    {"leave by a descriptor", leave_by_descriptor},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
