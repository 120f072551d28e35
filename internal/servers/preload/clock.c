/* Adds to the wall clock of a program what a file says: 8 bytes, nanoseconds.
   It asks the kernel itself, since the C library may not be ready yet when a
   program first looks at the time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("HOLDFAST_CLOCK");
	int fd = path ? open(path, O_RDONLY) : -1;
	if (fd < 0)
		return;
	void *at = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		offset = at;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	long failed = syscall(SYS_clock_gettime, id, t);
	if (!failed && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t now = t->tv_sec * INT64_C(1000000000) + t->tv_nsec + *offset;
		t->tv_sec = now / 1000000000;
		t->tv_nsec = now % 1000000000;
	}
	return failed;
}

int gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
