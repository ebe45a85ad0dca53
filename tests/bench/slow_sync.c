/* Makes every sync take longer by SLOW_SYNC_US microseconds, as on a disk that has to write before
 * it answers. To be preloaded: LD_PRELOAD=slow_sync.so SLOW_SYNC_US=2000 PROGRAM
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void delay(void)
{
    const char *text = getenv("SLOW_SYNC_US");
    long us = text ? strtol(text, NULL, 10) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};

    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

static int synced(long number, int file)
{
    int result = (int)syscall(number, file);
    int error = errno;

    delay();
    errno = error;
    return result;
}

int fsync(int file)
{
    return synced(SYS_fsync, file);
}

int fdatasync(int file)
{
    return synced(SYS_fdatasync, file);
}
