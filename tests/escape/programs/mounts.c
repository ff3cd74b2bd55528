/* The mount family, and other ways to another root. The argument is a directory. */

#include "attempt.h"
#include <sys/mount.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#define SYS_fsopen 430
#define SYS_fsconfig 431
#define SYS_fsmount 432
#define SYS_fspick 433
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#define TREE_CLONE 1
#define LAZY 2

static int of_type(const char *type, const char *place, const char *data)
{
    return judge(syscall(SYS_mount, "none", place, type, 0, data), 0);
}

static int tmpfs(char **arguments) { return of_type("tmpfs", arguments[0], NULL); }
static int procfs(char **arguments) { return of_type("proc", arguments[0], NULL); }
static int cgroups(char **arguments) { return of_type("cgroup2", arguments[0], NULL); }
static int devpts(char **arguments) { return of_type("devpts", arguments[0], NULL); }
static int mqueue(char **arguments) { return of_type("mqueue", arguments[0], NULL); }

static int overlay(char **arguments)
{
    return of_type("overlay", arguments[0], "lowerdir=/usr:/etc");
}

static int bind(char **arguments)
{
    return judge(syscall(SYS_mount, "/", arguments[0], "", MS_BIND | MS_REC, 0), 0);
}

/* The old way to write a mount's flags: the type's high half is a magic number. */
static int bind_with_magic(char **arguments)
{
    return judge(syscall(SYS_mount, "/", arguments[0], "", 0xC0ED0000UL | MS_BIND | MS_REC, 0), 0);
}

static int remount(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_mount, "none", "/", "", MS_REMOUNT | MS_BIND, 0), 0);
}

static int move(char **arguments)
{
    syscall(SYS_mount, "none", arguments[0], "tmpfs", 0, NULL);
    return judge(syscall(SYS_mount, arguments[0], "/proc", "", MS_MOVE, 0), 0);
}

static int propagate(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_mount, "none", "/", "", MS_SHARED | MS_REC, 0), 0);
}

static int unmount(char **arguments)
{
    syscall(SYS_mount, "none", arguments[0], "tmpfs", 0, NULL);
    return judge(syscall(SYS_umount2, arguments[0], LAZY), 0);
}

static int unmount_a_cover(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_umount2, "/proc", LAZY), 0);
}

static int open_filesystem(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_fsopen, "tmpfs", 0), 0);
}

static int pick(char **arguments)
{
    return judge(syscall(SYS_fspick, AT_FDCWD, arguments[0], 0), 0);
}

static int configure(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_fsconfig, -1, 0, "x", 0, 0), EINVAL);
}

static int make_a_mount(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_fsmount, -1, 0, 0), EBADF);
}

static int open_a_tree(char **arguments)
{
    return judge(syscall(SYS_open_tree, AT_FDCWD, arguments[0], 0), 0);
}

static int copy_a_tree(char **arguments)
{
    return judge(syscall(SYS_open_tree, AT_FDCWD, arguments[0], TREE_CLONE), 0);
}

static int move_a_mount(char **arguments)
{
    return judge(syscall(SYS_move_mount, -1, "", AT_FDCWD, arguments[0], 4), EBADF);
}

static int set_attributes(char **arguments)
{
    uint64_t attributes[4] = {0, 1, 0, 0}; /* clear MOUNT_ATTR_RDONLY */
    (void)arguments;
    return judge(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attributes, 32), 0);
}

static int pivot(char **arguments)
{
    syscall(SYS_mount, "none", arguments[0], "tmpfs", 0, NULL);
    if (chdir(arguments[0]) != 0)
        return held(errno);
    return judge(syscall(SYS_pivot_root, ".", "."), 0);
}

static int change_root(char **arguments)
{
    return judge(syscall(SYS_chroot, arguments[0]), 0);
}

/* The classic: another root below, with the current directory left outside of it. */
static int leave_a_root(char **arguments)
{
    if (syscall(SYS_chroot, arguments[0]) != 0)
        return held(errno);
    for (int i = 0; i < 64; i++)
        if (chdir("..") != 0)
            return held(errno);
    return judge(access("proc/self/status", R_OK), 0);
}

static const struct attempt attempts[] = {
    {"tmpfs", tmpfs},
    {"proc", procfs},
    {"cgroup2", cgroups},
    {"devpts", devpts},
    {"mqueue", mqueue},
    {"overlay", overlay},
    {"bind", bind},
    {"bind with the magic number", bind_with_magic},
    {"remount writable", remount},
    {"move", move},
    {"propagate", propagate},
    {"umount2", unmount},
    {"umount2 of a cover", unmount_a_cover},
    {"fsopen", open_filesystem},
    {"fspick", pick},
    {"fsconfig", configure},
    {"fsmount", make_a_mount},
    {"open_tree", open_a_tree},
    {"open_tree, a copy", copy_a_tree},
    {"move_mount", move_a_mount},
    {"mount_setattr", set_attributes},
    {"pivot_root", pivot},
    {"chroot", change_root},
    {"chroot and out of it", leave_a_root},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
