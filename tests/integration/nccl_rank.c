/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a job that does with libnccl-net-incline.so what NCCL does: loads it by name, meets
 * the others by handles that somebody carries (here files), sends messages round the ring of ranks
 * by its network and sums by its collective network.
 *
 *   nccl_rank DIR RANK RANKS SEED [dies | short]
 *
 * dies: rank 1 ends in the middle, and the others say that calls have failed. short: receivers have
 * less room than senders need. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/nccl/net.h"

enum {
	MESSAGES = 400,
	LONGEST = 100000,
	AT_ONCE = NCCL_MAX_REQUESTS,
	SUMS = 200,
	MOST = 30000,
	WINDOWS = 20
};

static const struct nccl_net *net;
static const struct nccl_collnet *coll;
static const char *dir;
static int rank, n_ranks;
static uint64_t seed;

static void logger(enum nccl_level level, unsigned long subsystems, const char *where, int line,
	const char *fmt, ...)
{
	va_list ap;

	(void)subsystems;
	(void)where;
	(void)line;
	fprintf(stderr, "rank %d: %s", rank, level == NCCL_LEVEL_WARN ? "WARN " : "");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	exit(1);
}

/* The same at all ranks. */
static unsigned drawn(uint64_t i, unsigned n)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;

	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return (unsigned)((x >> 32) % n);
}

static void tell(const char *what, const void *handle)
{
	char path[256], other[sizeof(path) + 4];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%d", dir, what, rank);
	snprintf(other, sizeof(other), "%s.new", path);
	f = fopen(other, "w");
	check(f && fwrite(handle, NCCL_HANDLE_LEN, 1, f) == 1, "a handle is written");
	fclose(f);
	check(!rename(other, path), "a handle is passed on");
}

/* A rank that has ended with less than its handle has said why: nobody waits for it. */
static bool has_ended(int from)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/ended.%d", dir, from);
	return !access(path, F_OK);
}

static void check_there(bool ended, int from)
{
	if (ended) {
		fprintf(stderr, "rank %d: rank %d has ended\n", rank, from);
		exit(1);
	}
}

static void tell_end(void)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ended.%d", dir, rank);
	f = fopen(path, "w");
	if (f)
		fclose(f);
}

static void hear(const char *what, int from, void *handle)
{
	bool ended = false; /* before it was looked for: it writes the handle, and may end */
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.%d", dir, what, from);
	while (!(f = fopen(path, "r"))) {
		check_there(ended, from);
		ended = has_ended(from);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	check(fread(handle, NCCL_HANDLE_LEN, 1, f) == 1, "a handle is read");
	fclose(f);
}

static void load(void)
{
	const char *plugin = getenv("NCCL_NET_PLUGIN");
	struct nccl_properties p;
	void *library;
	char name[64];
	int n = 0;

	snprintf(name, sizeof(name), "libnccl-net-%s.so", plugin ? plugin : "incline");
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	check(library, "the library");
	net = dlsym(library, "ncclNetPlugin_v8");
	coll = dlsym(library, "ncclCollNetPlugin_v8");
	check(net && coll, "its symbols");
	check(!net->init(logger) && !net->devices(&n) && n == 1, "a network with one device");
	check(!coll->init(logger) && !coll->devices(&n) && n == 1, "likewise of collectives");
	check(!net->properties(0, &p) && p.memory == NCCL_MEMORY_HOST && p.speed > 0, "properties");
	printf("device %s\n", p.name);
}

/* ---- messages ---- */

struct way {
	void *to, *from, *to_mem, *from_mem;
	uint8_t *out, *in; /* AT_ONCE buffers each */
	void *sending[AT_ONCE], *receiving[AT_ONCE];
	unsigned sent, sends_done, received, receives_done;
	unsigned wrong;
};

static int length(int from, unsigned i)
{
	return i % 50 == 7 ? 0 : (int)drawn((uint64_t)from << 32 | i, LONGEST + 1);
}

static uint8_t content(int from, unsigned i, int at)
{
	return (uint8_t)(from * 31 + (int)i * 7 + at * 3 + (at >> 8));
}

enum { SILENT = 129 }; /* more than are heard at a time */

/* Calls before the partner does. */
static int stranger(const struct np_handle *h, const char *says)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(h->port)};
	const int s = socket(AF_INET, SOCK_STREAM, 0);

	check(inet_pton(AF_INET, h->host, &at.sin_addr) == 1 &&
			!connect(s, (struct sockaddr *)&at, sizeof(at)) &&
			send(s, says, strlen(says), 0) == (ssize_t)strlen(says),
		"a stranger's call");
	return s;
}

/* Who sends back what it is told would pass for the partner. */
static void check_untold(int echo)
{
	char said[64];
	const ssize_t n = recv(echo, said, sizeof(said), MSG_DONTWAIT);

	check(n <= 0, "a stranger is told nothing");
}

/* A partner whose address this end has no way to is an error, and nobody waits for another. */
static void unreachable(void)
{
	_Alignas(struct np_handle) char mine[NCCL_HANDLE_LEN] = {0};
	const struct np_handle *h = (const void *)mine;
	struct np_hello hello = {.mtu = 1024, .qpn = 17, .ip = {0xfd, [15] = 1}};
	void *listener, *conn = NULL, *gpu;
	nccl_rc rc = NCCL_OK;
	int s;

	check(!net->listen(0, mine, &listener), "listening");
	hello.random = h->random;
	s = stranger(h, "");
	check(send(s, &hello, sizeof(hello), 0) == sizeof(hello), "a partner's word");
	for (int i = 0; i < 10000 && rc == NCCL_OK; i++) {
		rc = net->accept(listener, &conn, &gpu);
		check(!conn, "no connection to who is not reached");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	check(rc == NCCL_SYSTEM_ERROR, "that a partner is not reached is an error");
	close(s);
	check(!net->close_listen(listener), "no more listening");
}

static void meet(struct way *w)
{
	_Alignas(struct np_handle) char mine[NCCL_HANDLE_LEN] = {0};
	_Alignas(struct np_handle) char next[NCCL_HANDLE_LEN];
	const int before = (rank + n_ranks - 1) % n_ranks;
	void *listener, *gpu = NULL;
	int silent[SILENT], echo;

	check(!net->listen(0, mine, &listener), "listening");
	echo = stranger((const void *)mine, "");
	for (int i = 0; i < SILENT; i++)
		silent[i] = stranger((const void *)mine, "");
	close(stranger((const void *)mine, ""));
	close(stranger((const void *)mine,
		"GET / HTTP/1.1\r\nHost: of something else altogether\r\n\r\n"));
	tell("net", mine);
	hear("net", (rank + 1) % n_ranks, next);
	while (!w->to || !w->from) {
		check(w->to || !net->connect(0, next, &w->to, &gpu), "a connection");
		check(w->from || !net->accept(listener, &w->from, &gpu), "a caller");
		if (!w->from)
			check_there(has_ended(before), before);
		check_untold(echo);
		sched_yield();
	}
	check(!net->close_listen(listener), "no more listening");
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
	close(echo);
	w->out = malloc(2 * AT_ONCE * LONGEST);
	w->in = w->out + AT_ONCE * LONGEST;
	check(!net->reg(w->to, w->out, AT_ONCE * LONGEST, NCCL_MEMORY_HOST, &w->to_mem),
		"memory to send from");
	check(!net->reg(w->from, w->in, AT_ONCE * LONGEST, NCCL_MEMORY_HOST, &w->from_mem),
		"memory to receive into");
}

static void send_next(struct way *w)
{
	const unsigned slot = w->sent % AT_ONCE;
	uint8_t *data = w->out + slot * LONGEST;
	const int len = length(rank, w->sent);

	if (w->sent == MESSAGES || w->sent - w->sends_done == AT_ONCE)
		return;
	for (int i = 0; i < len; i++)
		data[i] = content(rank, w->sent, i);
	check(!net->send(w->to, data, len, 0, w->to_mem, &w->sending[slot]), "a send");
	w->sent += w->sending[slot] != NULL;
}

static void receive_next(struct way *w)
{
	const unsigned slot = w->received % AT_ONCE;
	void *data = w->in + slot * LONGEST;
	int room = LONGEST, tag = 0;

	if (w->received == MESSAGES || w->received - w->receives_done == AT_ONCE)
		return;
	check(!net->receive(w->from, 1, &data, &room, &tag, &w->from_mem, &w->receiving[slot]),
		"a receive");
	w->received += w->receiving[slot] != NULL;
}

static void take(struct way *w)
{
	const int from = (rank + n_ranks - 1) % n_ranks;
	int done = 0, len = -1;

	if (w->sends_done < w->sent)
		check(!net->test(w->sending[w->sends_done % AT_ONCE], &done, &len), "a sent one");
	w->wrong += done && len != length(rank, w->sends_done);
	w->sends_done += (unsigned)done;
	done = 0;
	if (w->receives_done < w->received)
		check(!net->test(w->receiving[w->receives_done % AT_ONCE], &done, &len),
			"a received one");
	if (!done)
		return;
	w->wrong += len != length(from, w->receives_done);
	for (int i = 0; i < len; i++)
		w->wrong += w->in[w->receives_done % AT_ONCE * LONGEST + i] !=
			    content(from, w->receives_done, i);
	w->receives_done++;
}

static void part(struct way *w)
{
	check(!net->dereg(w->to, w->to_mem) && !net->dereg(w->from, w->from_mem), "memory back");
	check(!net->close_send(w->to) && !net->close_receive(w->from), "closed");
	free(w->out);
}

static void messages(void)
{
	struct way w = {0};

	unreachable();
	meet(&w);
	while (w.sends_done < MESSAGES || w.receives_done < MESSAGES) {
		receive_next(&w);
		send_next(&w);
		take(&w);
		sched_yield();
	}
	part(&w);
	printf("%d messages, %u wrong\n", MESSAGES, w.wrong);
}

/* ---- sums ---- */

static void *join(void)
{
	char handle[64][NCCL_HANDLE_LEN] = {{0}};
	void *handles[64], *listener, *comm;

	check(!coll->listen(0, handle[rank], &listener), "listening for collectives");
	tell("coll", handle[rank]);
	for (int r = 0; r < n_ranks; r++) {
		hear("coll", r, handle[r]);
		handles[r] = handle[r];
	}
	check(!coll->connect(handles, n_ranks, rank, listener, &comm), "a group");
	check(!coll->close_listen(listener), "no more listening");
	return comm;
}

static unsigned wrong_sum(const int32_t *sum, unsigned i, int count)
{
	unsigned wrong = 0;

	for (int k = 0; k < count; k++)
		wrong += sum[k] != n_ranks * (k + (int)i) + n_ranks * (n_ranks - 1) / 2;
	return wrong;
}

static int count_of(unsigned i)
{
	return 1 + (int)drawn(~(uint64_t)i, MOST);
}

static int32_t *buf;

static bool sum_next(void *comm, void *mem, unsigned i, void **request)
{
	int32_t *send = buf + i % AT_ONCE * MOST, *recv = send + AT_ONCE * MOST;

	for (int k = 0; k < count_of(i); k++)
		send[k] = k + (int)i + rank;
	check(!coll->allreduce(
		      comm, send, recv, count_of(i), NCCL_INT32, NCCL_SUM, mem, mem, request),
		"an AllReduce");
	return *request;
}

static void finish(void *request, int len)
{
	int done = 0, is = -1;

	while (!done) {
		check(!coll->test(request, &done, &is), "a test");
		sched_yield();
	}
	check(is == len, "as many bytes");
}

/* Windows of AllGather and ReduceScatter that cut the ranks' blocks anywhere. */
static unsigned windows(void *comm)
{
	enum { BLOCK = 1000, LEN = BLOCK * 4 };
	static int32_t all[64 * BLOCK], own[BLOCK], sum[BLOCK];
	unsigned wrong = 0;

	for (unsigned i = 0; i < WINDOWS; i++) {
		const int n = BLOCK * n_ranks, from = i ? (int)drawn(5000 + i, (unsigned)n) : 0;
		const int count = i ? 1 + (int)drawn(6000 + i, (unsigned)(n - from)) : n;
		const int mine = from > rank * BLOCK ? from - rank * BLOCK : 0;
		const int end =
			from + count - rank * BLOCK < BLOCK ? from + count - rank * BLOCK : BLOCK;
		const int first = mine < BLOCK ? mine : 0;
		struct nccl_piece piece = {.address = all, .len = (uint32_t)count * 4};
		void *request;

		for (int k = 0; k < BLOCK; k++)
			own[k] = rank * BLOCK + k;
		check(!coll->allgather(comm, own + first, 1, &piece, LEN, (size_t)from * 4,
			      (size_t)count * 4, NULL, &request),
			"an AllGather");
		finish(request, count * 4);
		for (int k = 0; k < count; k++)
			wrong += all[k] != from + k;
		check(!coll->reduce_scatter(comm, 1, &piece, sum, LEN, (size_t)from * 4,
			      (size_t)count * 4, NCCL_INT32, NCCL_SUM, NULL, &request),
			"a ReduceScatter");
		finish(request, count * 4);
		for (int k = mine; k < end; k++)
			wrong += sum[k - mine] != n_ranks * (rank * BLOCK + k);
	}
	return wrong;
}

static void sums(void)
{
	void *comm = join(), *request[AT_ONCE], *mem, *mem2;
	unsigned issued = 0, done = 0, wrong = 0;
	const size_t len = 2ul * AT_ONCE * MOST * sizeof(*buf);

	buf = malloc(len);
	check(!coll->reg(comm, buf, len, NCCL_MEMORY_HOST, &mem), "memory");
	check(!coll->reg(comm, buf, len, NCCL_MEMORY_HOST, &mem2), "the same memory");
	while (done < SUMS) {
		int over = 0, bytes = -1;

		while (issued < SUMS && issued - done < AT_ONCE &&
			sum_next(comm, mem, issued, &request[issued % AT_ONCE]))
			issued++;
		check(!coll->test(request[done % AT_ONCE], &over, &bytes), "an AllReduce's test");
		if (!over) {
			sched_yield();
			continue;
		}
		wrong += bytes != count_of(done) * 4;
		wrong += wrong_sum(buf + (AT_ONCE + done % AT_ONCE) * MOST, done, count_of(done));
		done++;
	}
	check(!coll->dereg(comm, mem) && !coll->dereg(comm, mem2), "memory back");
	printf("%d sums, %u wrong\n", SUMS, wrong);
	printf("%d windows, %u wrong\n", WINDOWS, windows(comm));
	check(!coll->close(comm), "closed");
	free(buf);
}

/* ---- rank 1 dies ---- */

/* Whoever waits for it hears of it; others may wait for those. */
static void death(void)
{
	static char data[64];
	struct way w = {0};
	void *comm, *request, *mem = NULL, *there = data;
	int len = sizeof(data), tag = 0, done = 0;
	nccl_rc rc = NCCL_OK;

	meet(&w);
	comm = join();
	if (rank == 1)
		_exit(0);
	check(!coll->allreduce(comm, data, data, 16, NCCL_INT32, NCCL_SUM, NULL, NULL, &request),
		"an AllReduce");
	while (!(rc = coll->test(request, &done, NULL)) && !done)
		sched_yield();
	printf("AllReduce: %d\n", rc);
	coll->close(comm);
	if (rank == 2) {
		check(!net->reg(w.from, data, sizeof(data), NCCL_MEMORY_HOST, &mem), "memory");
		check(!net->receive(w.from, 1, &there, &len, &tag, &mem, &request), "a receive");
		while (!(rc = net->test(request, &done, NULL)) && !done)
			sched_yield();
		printf("receive: %d\n", rc);
	} else if (rank == 0) {
		check(!net->reg(w.to, data, sizeof(data), NCCL_MEMORY_HOST, &mem), "memory");
		while (!(rc = net->send(w.to, data, len, 0, mem, &request)))
			sched_yield();
		printf("send: %d\n", rc);
	}
	net->dereg(rank == 2 ? w.from : w.to, mem);
	part(&w);
}

/* The sender is told before anything is sent. */
static void too_long(void)
{
	struct way w = {0};
	void *request = NULL, *there;
	int room = 10, tag = 0;
	nccl_rc rc;

	meet(&w);
	there = w.in;
	check(!net->receive(w.from, 1, &there, &room, &tag, &w.from_mem, &request), "a receive");
	while (!(rc = net->send(w.to, w.out, room + 1, 0, w.to_mem, &request)) && !request)
		sched_yield();
	printf("send: %d\n", rc);
	part(&w);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	dir = argv[1];
	rank = atoi(argv[2]);
	n_ranks = atoi(argv[3]);
	seed = strtoull(argv[4], NULL, 0);
	atexit(tell_end);
	load();
	if (argc > 5) {
		if (!strcmp(argv[5], "dies"))
			death();
		else
			too_long();
		return 0;
	}
	messages();
	sums();
	return 0;
}
