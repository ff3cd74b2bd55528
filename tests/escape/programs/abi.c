/* Other ways into the kernel, calls that are newer than the filter, other personalities. */

#include "attempt.h"

static int personality_of(unsigned long persona)
{
    return judge(syscall(SYS_personality, persona), 0);
}

static int no_randomization(char **arguments) { (void)arguments; return personality_of(0x0040000); }
static int executable_reads(char **arguments) { (void)arguments; return personality_of(0x0400000); }
static int zero_page(char **arguments) { (void)arguments; return personality_of(0x0100000); }
static int linux32(char **arguments) { (void)arguments; return personality_of(8); }

static int with_high_bits(char **arguments)
{
    (void)arguments;
    return personality_of(0x0040000 | 1UL << 40);
}

/* The kernel looks at 32 bits of a call's number. */
static int number_with_high_bits(char **arguments)
{
    (void)arguments;
    return judge(syscall(SYS_personality | 1L << 32, 0x0040000), 0);
}

/* Numbers that came after Linux 6.11; each is asked for nothing. */
static int later_calls(char **arguments)
{
    (void)arguments;
    for (long number = 463; number < 500; number++)
        if (syscall(number, 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS) {
            printf("call %ld answered %d\n", number, errno);
            return reached();
        }
    return held(ENOSYS);
}

static int setxattrat(char **arguments)
{
    struct { uint64_t value; uint32_t size, flags; } value = {(uint64_t)"x", 1, 0};
    return judge(
        syscall(463, AT_FDCWD, arguments[0], 0, "user.reached", &value, sizeof value), EOPNOTSUPP);
}

static int file_setattr(char **arguments)
{
    uint64_t attributes[4] = {0};
    return judge(syscall(469, AT_FDCWD, arguments[0], attributes, 24, 0), EOPNOTSUPP);
}

#ifdef __x86_64__
static long int80(long number, long first)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(first)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static int ask_int80(char **arguments)
{
    (void)arguments;
    return int80(20, 0) > 0 ? reached() : held(ENOSYS); /* getpid */
}

static int personality_by_int80(char **arguments)
{
    (void)arguments;
    return int80(136, 0x0040000) >= 0 ? reached() : held(EPERM);
}

static int unshare_by_int80(char **arguments)
{
    (void)arguments;
    return int80(310, CLONE_NEWUSER) == 0 ? reached() : held(EPERM);
}

/* Where a kernel is built without x32 the number is unknown: to come back is what shows that
   nothing looked at it. */
static int x32(char **arguments)
{
    (void)arguments;
    syscall(0x40000000 | 39);
    return reached();
}

static int x32_ptrace(char **arguments)
{
    (void)arguments;
    syscall(0x40000000 | 521, 0, 0, 0, 0);
    return reached();
}
#endif

static const struct attempt attempts[] = {
    {"personality without randomization", no_randomization},
    {"personality where reads execute", executable_reads},
    {"personality with a page at zero", zero_page},
    {"personality of 32 bits", linux32},
    {"personality with high bits", with_high_bits},
    {"a call's number with high bits", number_with_high_bits},
    {"calls newer than the filter", later_calls},
    {"setxattrat", setxattrat},
    {"file_setattr", file_setattr},
#ifdef __x86_64__
    {"int80", ask_int80},
    {"int80 personality", personality_by_int80},
    {"int80 unshare", unshare_by_int80},
    {"x32", x32},
    {"x32 ptrace", x32_ptrace},
#endif
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return run(attempts, argc, argv);
}
