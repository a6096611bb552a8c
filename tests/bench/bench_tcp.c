/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel TCP, what programs use without RDMA: bytes per second one way, and half of the round trip
 * of 8 bytes.
 *
 *	bench-tcp -l ADDRESS PORT          serves one client
 *	bench-tcp ADDRESS PORT SECONDS     one line of JSON: gbps, p50_us, p99_us, p99.9_us,
 *	                                   p99.99_us */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 65536, PINGS = 50000, PING = 8 };

static uint8_t chunk[CHUNK];

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

	check(bind(server, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(server, 1) == 0,
		"bind");
	fd = accept(server, NULL, NULL);
	check(fd >= 0, "accept");
	no_delay(fd);
	for (int i = 0; i < PINGS; i++) {
		check(recv(fd, chunk, PING, MSG_WAITALL) == PING, "recv");
		check(send(fd, chunk, PING, 0) == PING, "send");
	}
	while (recv(fd, chunk, CHUNK, 0) > 0)
		;
	close(fd);
	close(server);
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
	double start, bytes = 0;

	for (int tries = 0; connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0; tries++) {
		check(tries < 100, "connect");
		usleep(50000);
		close(fd);
		fd = make(address, port, &at);
	}
	no_delay(fd);
	for (int i = 0; i < PINGS; i++) {
		start = seconds();
		check(send(fd, chunk, PING, 0) == PING, "send");
		check(recv(fd, chunk, PING, MSG_WAITALL) == PING, "recv");
		us[i] = (seconds() - start) * 5e5;
	}
	qsort(us, PINGS, sizeof(us[0]), by_size);
	start = seconds();
	while (seconds() - start < limit) {
		ssize_t n = send(fd, chunk, CHUNK, 0);

		check(n > 0, "send");
		bytes += (double)n;
	}
	printf("{\"gbps\": %.3f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p99.9_us\": %.2f, "
	       "\"p99.99_us\": %.2f}\n",
		bytes * 8e-9 / (seconds() - start), us[PINGS / 2], us[PINGS - PINGS / 100],
		us[PINGS - PINGS / 1000], us[PINGS - PINGS / 10000]);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "-l") == 0)
		serve(argv[2], argv[3]);
	else if (argc == 4 && atof(argv[3]) > 0)
		use(argv[1], argv[2], atof(argv[3]));
	else
		fprintf(stderr, "usage: bench-tcp -l ADDRESS PORT | ADDRESS PORT SECONDS\n");
	return argc == 4 ? 0 : 2;
}
