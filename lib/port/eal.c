/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/journal/journal.h"
#include "lib/port/internal.h"

enum { CLOCK_NS = 5000000 };
enum { MAX_ARGS = 64, DEFAULT_MEMORY_MB = 256, LOG_LINE = 160, PRINT_MAX = 20 };
static const uint64_t PRINT_WINDOW_NS = 10000000000;

static bool started;
static bool log_to_stderr;
static char log_line[LOG_LINE];
static __thread bool quoting; /* this thread puts the reason into a message */
static uint64_t printed_since;
static unsigned n_printed;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* Is there room for one more line? With the lock. */
static bool may_print(void)
{
	uint64_t now = port_now_ns();

	if (now - printed_since > PRINT_WINDOW_NS) {
		printed_since = now;
		n_printed = 0;
	}
	return n_printed++ < PRINT_MAX;
}

/* Keeps the first error line since port_log_clear: the driver's own reason, before those of the
 * layers above it. It goes into the message of whoever called the driver. What is said while nobody
 * here calls a driver has no such message, and is printed; a panic's last words always are. */
void port_log_line(const char *buf, size_t len, int level)
{
	bool grave = level <= (int)RTE_LOG_CRIT, print;

	while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == ' '))
		len--;
	if (len == 0 || level > (int)RTE_LOG_ERR)
		return;
	pthread_mutex_lock(&log_lock);
	if (log_line[0] == '\0')
		snprintf(log_line, sizeof(log_line), "%.*s", (int)len, buf);
	print = !log_to_stderr && (grave || (started && !quoting && may_print()));
	pthread_mutex_unlock(&log_lock);
	if (print)
		journal(grave ? JOURNAL_CRIT : JOURNAL_ERR, "incline: DPDK: %.*s", (int)len, buf);
}

static ssize_t log_write(void *cookie, const char *buf, size_t size)
{
	(void)cookie;
	if (log_to_stderr)
		fwrite(buf, 1, size, stderr);
	port_log_line(buf, size, rte_log_cur_msg_loglevel());
	return (ssize_t)size;
}

void port_log_quote(bool on)
{
	quoting = on;
}

const char *port_log_error(void)
{
	static __thread char copy[LOG_LINE];

	pthread_mutex_lock(&log_lock);
	memcpy(copy, log_line, sizeof(copy));
	pthread_mutex_unlock(&log_lock);
	return copy;
}

void port_log_clear(void)
{
	pthread_mutex_lock(&log_lock);
	log_line[0] = '\0';
	pthread_mutex_unlock(&log_lock);
}

int port_fail(char err[PORT_ERR_LEN], int error, const char *fmt, ...)
{
	const char *said = port_log_error();
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(err, PORT_ERR_LEN, fmt, ap);
	va_end(ap);
	if (said[0] != '\0' && len > 0 && len < PORT_ERR_LEN)
		snprintf(err + len, PORT_ERR_LEN - (size_t)len, " (DPDK says: %s)", said);
	return error < 0 ? error : -error;
}

static void log_open(void)
{
	static const cookie_io_functions_t io = {.write = log_write};
	FILE *f = fopencookie(NULL, "w", io);

	if (f == NULL)
		return;
	setvbuf(f, NULL, _IOLBF, BUFSIZ);
	rte_openlog_stream(f);
}

int port_lcores_floating(unsigned n, char *buf, size_t cap)
{
	char cpus[PORT_LCORES_LEN] = "", lcores[24] = "0";
	size_t len = 0;
	cpu_set_t set;
	int w;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		int last = cpu;

		if (!CPU_ISSET(cpu, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		len += (size_t)snprintf(
			cpus + len, sizeof(cpus) - len, "%s%d", len ? "," : "", cpu);
		if (last > cpu)
			len += (size_t)snprintf(cpus + len, sizeof(cpus) - len, "-%d", last);
		cpu = last;
	}
	if (n > 1)
		snprintf(lcores, sizeof(lcores), "(0-%u)", n - 1);
	w = snprintf(buf, cap, "%s@(%s)", lcores, cpus);
	return w < 0 || (size_t)w >= cap ? -ENOSPC : 0;
}

/* The EAL keeps its run-time directory in /var/run for root, else where XDG_RUNTIME_DIR says: which
 * may be unset, or another user's after su. */
static const char *runtime_parent(void)
{
	const char *const dirs[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "."};

	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (dirs[i] != NULL && access(dirs[i], W_OK | X_OK) == 0)
			return dirs[i];
	return NULL;
}

struct args {
	int n;
	char *v[MAX_ARGS + 1];
	char *extra;
};

static void arg(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void arg(struct args *a, const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text != NULL && a->n < MAX_ARGS)
		a->v[a->n++] = text;
	else
		free(text);
}

static void args_build(struct args *a, const struct port_eal *eal, const char *lcores)
{
	const char *level = getenv("INCLINE_EAL_LOG");
	char *extra = eal->extra ? strdup(eal->extra) : NULL, *save = NULL;

	arg(a, "%s", eal->program ? eal->program : "incline");
	arg(a, "--lcores=%s", lcores);
	arg(a, "--file-prefix=incline-%d", (int)getpid());
	/* One memory file that can be handed to a peer: zero-copy memif and vhost need it. */
	arg(a, "--single-file-segments");
	if (!eal->hugepages)
		arg(a, "--no-huge");
	arg(a, "-m");
	arg(a, "%u", eal->memory_mb ? eal->memory_mb : DEFAULT_MEMORY_MB);
	if (!eal->pci)
		arg(a, "--no-pci");
	if (!eal->telemetry) {
		arg(a, "--no-telemetry");
		arg(a, "--no-shconf"); /* no files, and no secondary processes */
	}
	if (level != NULL && level[0] != '\0')
		arg(a, "--log-level=%s", level);
	for (char *s = extra ? strtok_r(extra, " \t", &save) : NULL; s != NULL;
		s = strtok_r(NULL, " \t", &save))
		arg(a, "%s", s);
	free(extra);
}

/* The EAL prints its usage, a hundred lines, when it does not like what the user gave for it. Only
 * for the time of its start, and only if there is something it could dislike: then the program has
 * no other threads yet. */
static void mute(bool on, int saved[2])
{
	int null;

	fflush(stdout);
	fflush(stderr);
	if (!on) {
		for (int fd = 0; fd < 2; fd++)
			if (saved[fd] >= 0) {
				dup2(saved[fd], fd + 1);
				close(saved[fd]);
			}
		return;
	}
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (int fd = 0; fd < 2; fd++) {
		saved[fd] = fcntl(fd + 1, F_DUPFD_CLOEXEC, 3);
		if (saved[fd] >= 0 && null >= 0)
			dup2(null, fd + 1);
	}
	if (null >= 0)
		close(null);
}

static int explain(const struct port_eal *eal, const char *lcores, char err[PORT_ERR_LEN])
{
	int error = rte_errno ? rte_errno : EINVAL;
	unsigned mb = eal->memory_mb ? eal->memory_mb : DEFAULT_MEMORY_MB;

	if (strstr(port_log_error(), "hugepage") != NULL)
		return port_fail(err, error,
			"hugepages: %u MB are not to be had: reserve them "
			"(/proc/sys/vm/nr_hugepages) "
			"and mount hugetlbfs, or set \"hugepages\" to false",
			mb);
	if (eal->lcores != NULL && strstr(port_log_error(), "core") != NULL)
		return port_fail(err, error, "lcores: \"%s\" is not possible here", lcores);
	return port_fail(err, error, "memory_mb: the EAL does not start with %u MB: %s", mb,
		rte_strerror(error));
}

/* Where the processor does not tell, the EAL counts the cycles of 100 ms: to the nearest 10 MHz,
 * for delays of hardware's drivers. Less will do for others. */
static int short_sleep(const struct timespec *t, struct timespec *left)
{
	const struct timespec most = {.tv_nsec = CLOCK_NS};

	return nanosleep(t->tv_sec > 0 || t->tv_nsec > CLOCK_NS ? &most : t, left);
}

/* What the EAL's start does for hardware, and is most of its cost. */
static void spare(bool on)
{
	port_drivers_hold_back(on);
	port_hook("librte_eal", "nanosleep", on ? (void *)short_sleep : (void *)nanosleep);
}

/* getopt inside the EAL permutes the array, so what was allocated is freed from a copy. */
static int init(struct args *a, bool hardware)
{
	char *own[MAX_ARGS + 1];
	sigset_t pipe, before;
	int rc;

	memcpy(own, a->v, sizeof(own));
	/* A memif's driver writes to sockets whose other end may be gone, on a thread of the EAL's.
	 */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	if (!hardware)
		spare(true);
	rc = rte_eal_init(a->n, a->v);
	if (!hardware)
		spare(false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (int i = 0; i < a->n; i++)
		free(own[i]);
	return rc;
}

/* Empty unless there is telemetry or another process to share with: then it goes at once, since not
 * every program gets to end properly. */
static void remove_runtime_dir(void)
{
	rmdir(rte_eal_get_runtime_dir());
}

bool port_eal_started(void)
{
	return started;
}

int port_eal_init(const struct port_eal *eal, char err[PORT_ERR_LEN])
{
	const char *level = getenv("INCLINE_EAL_LOG"), *xdg = getenv("XDG_RUNTIME_DIR");
	char lcores[PORT_LCORES_LEN], *xdg_saved = xdg ? strdup(xdg) : NULL;
	struct args a = {0};
	cpu_set_t cpus;
	int rc;

	if (started) {
		free(xdg_saved);
		return 0;
	}
	if (eal->lcores != NULL)
		snprintf(lcores, sizeof(lcores), "%s", eal->lcores);
	else
		port_lcores_floating(1, lcores, sizeof(lcores));
	log_to_stderr = level != NULL && level[0] != '\0';
	log_open();
	if (getuid() != 0 && runtime_parent() != NULL)
		setenv("XDG_RUNTIME_DIR", runtime_parent(), 1);
	args_build(&a, eal, lcores);
	pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (eal->lcores != NULL || eal->extra != NULL || eal->hugepages) {
		int saved[2];

		mute(true, saved);
		rc = init(&a, eal->pci || eal->extra != NULL);
		mute(false, saved);
	} else {
		rc = init(&a, eal->pci || eal->extra != NULL);
	}
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (xdg_saved != NULL)
		setenv("XDG_RUNTIME_DIR", xdg_saved, 1);
	free(xdg_saved);
	if (rc < 0)
		return explain(eal, lcores, err);
	started = true;
	remove_runtime_dir();
	return 0;
}

/* The directory is this process' own: its name has the PID. */
static void empty_runtime_dir(void)
{
	DIR *dir = opendir(rte_eal_get_runtime_dir());
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* rte_eal_cleanup is not called: it takes the memory from under the interrupt thread, which goes on
 * until the process ends. Nothing outlives that but what lies in the file system. */
void port_eal_fini(void)
{
	if (!started)
		return;
	empty_runtime_dir();
	remove_runtime_dir();
	started = false;
}
