/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel TCP, what programs use without RDMA: bytes per second one way, and half of the round trip
 * of 8 bytes.
 *
 *	bench-tcp -l [-n] [-t] ADDRESS PORT          serves one client, then one line of JSON:
 *bytes, user_s, system_s of the stream bench-tcp [-n] [-z] ADDRESS PORT SECONDS     one line of
 *JSON: gbps, p50_us, p99_us, p99.9_us, p99.99_us; user_s, system_s of the stream
 *
 * -n: without round trips. -z: the kernel sends pages of a file, and copies nothing (iperf's -Z).
 *-t: what arrives is thrown away in the kernel (MSG_TRUNC): as if receiving copied nothing. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536, CHUNKS = 16, PINGS = 50000, PING = 8 };

static uint8_t chunk[CHUNK];
static int pings = PINGS;
static bool truncating, by_file;
static struct rusage before;

static void check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double since(const struct timeval *begin, const struct timeval *end)
{
	return (double)(end->tv_sec - begin->tv_sec) +
	       1e-6 * (double)(end->tv_usec - begin->tv_usec);
}

/* Of this process since `before`, and the end of the line. */
static void print_cpu(void)
{
	struct rusage now;

	getrusage(RUSAGE_SELF, &now);
	printf("\"user_s\": %.6f, \"system_s\": %.6f}\n", since(&before.ru_utime, &now.ru_utime),
		since(&before.ru_stime, &now.ru_stime));
}

static int make(const char *address, const char *port, struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	check(fd >= 0, "socket");
	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	check(inet_pton(AF_INET, address, &at->sin_addr) == 1, address);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd;
}

static void no_delay(int fd)
{
	int one = 1;

	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "TCP_NODELAY");
}

/* First pings of 8 bytes are sent back, then everything is taken until the client closes. */
static void serve(const char *address, const char *port)
{
	struct sockaddr_in at;
	int server = make(address, port, &at), fd;
	uint64_t bytes = 0;
	ssize_t n;

	check(bind(server, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(server, 1) == 0,
		"bind");
	fd = accept(server, NULL, NULL);
	check(fd >= 0, "accept");
	no_delay(fd);
	for (int i = 0; i < pings; i++) {
		check(recv(fd, chunk, PING, MSG_WAITALL) == PING, "recv");
		check(send(fd, chunk, PING, 0) == PING, "send");
	}
	getrusage(RUSAGE_SELF, &before);
	while ((n = recv(fd, chunk, CHUNK, truncating ? MSG_TRUNC : 0)) > 0)
		bytes += (uint64_t)n;
	printf("{\"bytes\": %" PRIu64 ", ", bytes);
	print_cpu();
	close(fd);
	close(server);
}

/* A file in memory of as many bytes as are sent before the first come again. */
static int source(void)
{
	int file = memfd_create("bench-tcp", 0);

	check(file >= 0, "memfd_create");
	for (int i = 0; i < CHUNKS; i++)
		check(write(file, chunk, CHUNK) == CHUNK, "write");
	return file;
}

static double stream(int fd, double limit)
{
	const int file = by_file ? source() : -1;
	const double start = seconds();
	double bytes = 0;

	getrusage(RUSAGE_SELF, &before);
	while (seconds() - start < limit) {
		off_t at = (off_t)(bytes / CHUNK) % CHUNKS * CHUNK;
		ssize_t n = by_file ? sendfile(fd, file, &at, CHUNK) : send(fd, chunk, CHUNK, 0);

		check(n > 0, "send");
		bytes += (double)n;
	}
	return bytes * 8e-9 / (seconds() - start);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void use(const char *address, const char *port, double limit)
{
	static double us[PINGS];
	struct sockaddr_in at;
	int fd = make(address, port, &at);
	double start;

	for (int tries = 0; connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0; tries++) {
		check(tries < 100, "connect");
		usleep(50000);
		close(fd);
		fd = make(address, port, &at);
	}
	no_delay(fd);
	for (int i = 0; i < pings; i++) {
		start = seconds();
		check(send(fd, chunk, PING, 0) == PING, "send");
		check(recv(fd, chunk, PING, MSG_WAITALL) == PING, "recv");
		us[i] = (seconds() - start) * 5e5;
	}
	qsort(us, (size_t)pings, sizeof(us[0]), by_size);
	printf("{\"gbps\": %.3f, ", stream(fd, limit));
	if (pings > 0)
		printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"p99.9_us\": %.2f, "
		       "\"p99.99_us\": %.2f, ",
			us[PINGS / 2], us[PINGS - PINGS / 100], us[PINGS - PINGS / 1000],
			us[PINGS - PINGS / 10000]);
	print_cpu();
	close(fd);
}

int main(int argc, char **argv)
{
	bool serves = false;
	int opt;

	while ((opt = getopt(argc, argv, "lntz")) != -1) {
		serves |= opt == 'l';
		truncating |= opt == 't';
		by_file |= opt == 'z';
		if (opt == 'n')
			pings = 0;
		if (opt == '?')
			return 2;
	}
	argv += optind;
	argc -= optind;
	if (serves && argc == 2)
		serve(argv[0], argv[1]);
	else if (!serves && argc == 3 && atof(argv[2]) > 0)
		use(argv[0], argv[1], atof(argv[2]));
	else {
		fprintf(stderr, "usage: bench-tcp -l [-n] [-t] ADDRESS PORT | [-n] [-z] ADDRESS "
				"PORT SECONDS\n");
		return 2;
	}
	return 0;
}
