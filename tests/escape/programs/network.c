/* Sockets, by calls that the standard library does not offer or would check. */

#include "attempt.h"
#include <arpa/inet.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define OP_SOCKET 45

/* A socket that only the ring knows: no socket(2) is called. */
static int by_ring(char **arguments)
{
    struct io_uring_params parameters = {0};
    long ring = syscall(SYS_io_uring_setup, 4, &parameters);
    char *rings;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
    (void)arguments;
    if (ring < 0)
        return held(errno);
    rings = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)ring,
                 IORING_OFF_SQ_RING);
    entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, (int)ring,
                   IORING_OFF_SQES);
    if (rings == MAP_FAILED || entries == MAP_FAILED)
        return held(errno);
    entries[0].opcode = OP_SOCKET;
    entries[0].fd = AF_INET;
    entries[0].off = SOCK_STREAM;
    ((uint32_t *)(rings + parameters.sq_off.array))[0] = 0;
    __atomic_store_n((uint32_t *)(rings + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return held(errno);
    done = (struct io_uring_cqe *)(rings + parameters.cq_off.cqes);
    return done->res >= 0 ? reached() : held(-done->res);
}

/* 0: family, 1: type, 2: protocol, 3: bits above the low 32 of the family */
static int of_family(char **arguments)
{
    unsigned long high = strtoul(arguments[3], NULL, 16) << 32;
    return judge(
        syscall(SYS_socket, strtoul(arguments[0], NULL, 10) | high, atoi(arguments[1]),
                atoi(arguments[2])), 0);
}

static int pair_of_family(char **arguments)
{
    int ends[2];
    /* No family but UNIX and TIPC has pairs: what matters is that the family is refused. */
    return judge(syscall(SYS_socketpair, atoi(arguments[0]), SOCK_DGRAM, 0, ends), EOPNOTSUPP);
}

static int any_odd_family(char **arguments)
{
    (void)arguments;
    for (int family = 3; family < 64; family++)
        for (int type = SOCK_STREAM; family != AF_INET6 && type <= SOCK_SEQPACKET; type++)
            if (syscall(SYS_socket, family, type, 0) >= 0) {
                printf("family %d\n", family);
                return reached();
            }
    return held(EAFNOSUPPORT);
}

static struct sockaddr_in host(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* To connect by sending: another door into the kernel than connect(2). */
static int fast_open(char **arguments)
{
    struct sockaddr_in address = host(arguments[0]);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return held(errno);
    return judge(sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof address), 0);
}

static int multipath(char **arguments)
{
    struct sockaddr_in address = host(arguments[0]);
    int fd = socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */);
    if (fd < 0)
        return held(errno);
    return judge(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
}

/* A socket without socket(2): an end of a pair is connected to another place. */
static int by_pair(const char *path, int type, int send)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
    int ends[2];
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (path[0] == '@') {
        address.sun_path[0] = 0;
        length--;
    }
    if (socketpair(AF_UNIX, type, 0, ends) != 0)
        return held(errno);
    if (send) {
        struct iovec data = {"x", 1};
        struct msghdr message = {.msg_name = &address, .msg_namelen = length,
                                 .msg_iov = &data, .msg_iovlen = 1};
        return judge(sendmsg(ends[0], &message, MSG_DONTWAIT), 0);
    }
    return judge(connect(ends[0], (struct sockaddr *)&address, length), 0);
}

static int pair_connects(char **a) { return by_pair(a[0], SOCK_DGRAM, 0); }
static int pair_sends(char **a) { return by_pair(a[0], SOCK_DGRAM, 1); }
/* To this family, raw is another word for datagrams. */
static int raw_pair_sends(char **a) { return by_pair(a[0], SOCK_RAW, 1); }

/* 0: a key of the host's segment */
static int shared_memory(char **arguments)
{
    long id = syscall(SYS_shmget, atoi(arguments[0]), 0, 0), address;
    if (id < 0)
        return held(errno);
    address = syscall(SYS_shmat, id, NULL, SHM_RDONLY);
    if (address == -1)
        return held(errno);
    puts((char *)address);
    return reached();
}

static int shared_memory_by_number(char **arguments)
{
    long address = syscall(SYS_shmat, atoi(arguments[0]), NULL, SHM_RDONLY);
    if (address == -1)
        return held(errno);
    puts((char *)address);
    return reached();
}

static int message_queue(char **arguments)
{
    return judge(syscall(SYS_msgget, atoi(arguments[0]), 0), 0);
}

static int semaphores(char **arguments)
{
    return judge(syscall(SYS_semget, atoi(arguments[0]), 0, 0), 0);
}

static int posix_queue(char **arguments)
{
    return judge(syscall(SYS_mq_open, arguments[0], O_RDONLY | O_NONBLOCK, 0, NULL), 0);
}

static const struct attempt attempts[] = {
    {"io_uring", by_ring},
    {"socket", of_family},
    {"socketpair", pair_of_family},
    {"odd families", any_odd_family},
    {"fast open", fast_open},
    {"multipath", multipath},
    {"a pair connects", pair_connects},
    {"a pair sends", pair_sends},
    {"a raw pair sends", raw_pair_sends},
    {"shmget", shared_memory},
    {"shmat", shared_memory_by_number},
    {"msgget", message_queue},
    {"semget", semaphores},
    {"mq_open", posix_queue},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
