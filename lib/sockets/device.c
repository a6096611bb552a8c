/* SPDX-License-Identifier: BSD-3-Clause */
/* The device of INCLINE_STREAM: a port as lib/verbs opens it, a stack of lib/stream per address,
 * and an rnic without queue pairs that answers ARP, ND and echo requests and resolves. Turns are
 * taken inside the program's calls and by a thread. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>

#include "lib/sockets/sockets.h"
#include "lib/verbs/claim.h"
#include "lib/verbs/dpdk_port.h"

enum { LINGER_S = 10, LINGER_END_S = 1 };
enum { MAX_SOCKETS = 500, RECONNECT_NS = 500000000 };

pthread_mutex_t sockets_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct iv_config config;
	const char *path; /* NULL: none is configured */
	bool read, failed, open, forked;
	int claim;
	struct iv_dpdk *port;
	struct rnic *rnic;
	struct stack stack[SOCKETS_MAX_STACKS];
	unsigned n_stacks;
	pid_t pid;
	pthread_t thread;
	atomic_bool stop;
	uint64_t due, retried;
} dev;

/* ---- the configuration ---- */

static void read_config(void)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	char err[IV_CONFIG_ERR];
	const char *path;

	pthread_mutex_lock(&once);
	path = getenv("INCLINE_STREAM");
	if (!dev.read && path != NULL && *path != '\0') {
		if (iv_config_read(path, &dev.config, err) < 0)
			fprintf(stderr, "incline: %s\n", err);
		else if (dev.config.n_ports > 1)
			fprintf(stderr, "incline: %s: ports: one only for streams\n", path);
		else
			dev.path = path;
	}
	dev.read = true;
	pthread_mutex_unlock(&once);
}

static const struct iv_port_config *configured(void)
{
	read_config();
	return dev.path != NULL ? &dev.config.ports[0] : NULL;
}

bool sockets_configured(void)
{
	return configured() != NULL;
}

bool sockets_own(const struct wire_ip *ip)
{
	const struct iv_port_config *c = configured();

	for (unsigned i = 0; c != NULL && i < c->n_ip; i++)
		if (wire_ip_eq(&c->ip[i], ip))
			return true;
	return false;
}

static unsigned bits_in_common(const struct wire_ip *a, const struct wire_ip *b)
{
	unsigned n = 0;

	while (n < 128 && (a->b[n / 8] >> (7 - n % 8) & 1) == (b->b[n / 8] >> (7 - n % 8) & 1))
		n++;
	return n;
}

bool sockets_reaches(const struct wire_ip *ip)
{
	static const struct wire_ip loopback = {.b = {[15] = 1}};
	const struct iv_port_config *c = configured();
	const bool v4 = wire_ip_is4(ip);

	if (c == NULL || wire_ip_eq(ip, &loopback) || (v4 && ip->b[12] == 127) || sockets_own(ip))
		return false;
	for (unsigned i = 0; i < c->n_ip; i++) {
		const unsigned prefix =
			v4 ? 96 + (dev.config.netdev.name[0] ? dev.config.netdev.prefix4 : 24)
			: dev.config.netdev.name[0] ? dev.config.netdev.prefix6
						    : 64;

		if (wire_ip_is4(&c->ip[i]) == v4 &&
			(!wire_ip_is_zero(&c->via) || bits_in_common(&c->ip[i], ip) >= prefix))
			return true;
	}
	return false;
}

unsigned sockets_stacks(struct stack **stacks)
{
	*stacks = dev.stack;
	return dev.n_stacks;
}

struct stack *sockets_source(const struct wire_ip *ip)
{
	struct stack *best = NULL;

	for (unsigned i = 0; i < dev.n_stacks; i++) {
		struct stack *s = &dev.stack[i];

		if (wire_ip_is4(&s->ip) == wire_ip_is4(ip) &&
			(best == NULL ||
				bits_in_common(&s->ip, ip) > bits_in_common(&best->ip, ip)))
			best = s;
	}
	return best;
}

/* ---- turns ---- */

uint64_t sockets_now(void)
{
	return port_now_ns();
}

int sockets_resolve(const struct wire_ip *ip, uint8_t mac[6])
{
	return rnic_next_hop(dev.rnic, 0, ip, mac, port_now_ns());
}

static unsigned receive(uint64_t now)
{
	struct rnic_rx_frame frame[VERBS_BURST];
	const unsigned n = iv_dpdk_ops.rx_burst(dev.port, frame, VERBS_BURST);

	for (unsigned i = 0; i < n; i++) {
		unsigned k = 0;

		while (k < dev.n_stacks && !stream_path_rx(stream_path(dev.stack[k].stream),
						   frame[i].data, frame[i].len))
			k++;
		if (k == dev.n_stacks)
			rnic_rx(dev.rnic, 0, frame[i].data, frame[i].len, now);
	}
	if (n > 0)
		iv_dpdk_ops.rx_free(dev.port, frame, n);
	return n;
}

static unsigned run_stack(struct stack *s, uint64_t now)
{
	struct stream_completion c[32];
	unsigned n, work = 0;

	stream_path_quiesce(stream_path(s->stream));
	while ((n = stream_turn(s->stream, now)) > 0)
		work += n;
	while ((n = stream_poll(s->stream, c, 32)) > 0) {
		for (unsigned i = 0; i < n; i++)
			sock_event(s, &c[i]);
		work += n;
	}
	return work;
}

static unsigned send_stack(struct stack *s)
{
	struct stream_path *path = stream_path(s->stream);
	unsigned room, n = 0;
	int len = 1;

	while (len > 0 && (room = iv_dpdk_ops.tx_room(dev.port)) > 0) {
		for (; room > 0 && len > 0; room--) {
			size_t cap;
			uint8_t *at = iv_dpdk_tx_begin(dev.port, &cap);

			len = (int)stream_path_tx(path, at, cap);
			iv_dpdk_tx_end(dev.port, len);
			n += len > 0;
		}
		if (iv_dpdk_ops.tx_flush(dev.port) > 0)
			break;
	}
	stream_path_quiesce(path);
	/* Copies have been made: the control path is to hear of them. */
	return n + ring_count(&path->notes);
}

static unsigned run_rnic(uint64_t now)
{
	struct rnic_frame frame;
	unsigned n = 0;

	if (rnic_deadline(dev.rnic) <= now)
		rnic_timer(dev.rnic, now);
	while (iv_dpdk_ops.tx_room(dev.port) > 0 && rnic_tx(dev.rnic, 1, &frame, now)) {
		iv_dpdk_ops.tx(dev.port, &frame);
		n++;
	}
	iv_dpdk_ops.tx_flush(dev.port);
	return n;
}

static void look_at_link(uint64_t now)
{
	if (now - dev.retried < RECONNECT_NS)
		return;
	dev.retried = now;
	if (!iv_dpdk_ops.link_up(dev.port))
		iv_dpdk_ops.reconnect(dev.port);
}

unsigned sockets_turn(void)
{
	const uint64_t now = port_now_ns();
	unsigned work;

	if (!dev.open)
		return 0;
	look_at_link(now);
	work = receive(now);
	sock_resolve_all();
	dev.due = UINT64_MAX;
	for (unsigned i = 0; i < dev.n_stacks; i++)
		work += run_stack(&dev.stack[i], now);
	for (unsigned i = 0; i < dev.n_stacks; i++)
		work += send_stack(&dev.stack[i]);
	work += run_rnic(now);
	for (unsigned i = 0; i < dev.n_stacks; i++)
		if (stream_due(dev.stack[i].stream) < dev.due)
			dev.due = stream_due(dev.stack[i].stream);
	if (rnic_deadline(dev.rnic) < dev.due)
		dev.due = rnic_deadline(dev.rnic);
	sock_sync(false);
	return work;
}

static void *thread_main(void *arg)
{
	struct port_backoff backoff = {.idle = dev.config.idle};

	(void)arg;
	prctl(PR_SET_NAME, (unsigned long)"incline-stream", 0ul, 0ul, 0ul);
	while (!atomic_load_explicit(&dev.stop, memory_order_relaxed)) {
		uint64_t due;
		unsigned work;

		pthread_mutex_lock(&sockets_lock);
		work = sockets_turn();
		due = dev.due;
		pthread_mutex_unlock(&sockets_lock);
		port_backoff(&backoff, work, port_now_ns(), due);
	}
	return NULL;
}

/* ---- life ---- */

static uint32_t unpredictable(void *arg)
{
	uint32_t v;

	(void)arg;
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		abort();
	return v;
}

static int choose_congestion_control(struct stream_config *c)
{
	const char *name = getenv("INCLINE_STREAM_CC");
	const int way = name == NULL ? (int)c->cc : stream_cc_by_name(name);

	if (way < 0) {
		fprintf(stderr, "incline-stream: INCLINE_STREAM_CC: %s is not known\n", name);
		return -EINVAL;
	}
	c->cc = (enum stream_cc)way;
	return 0;
}

static int make_stack(const struct wire_ip *ip, struct stack *s)
{
	const struct iv_port_config *port = &dev.config.ports[0];
	const unsigned conns = dev.config.max_qp < MAX_SOCKETS ? dev.config.max_qp : MAX_SOCKETS;
	struct stream_config c;

	stream_defaults(&c, conns);
	memcpy(c.mac, port->mac, sizeof(c.mac));
	c.ip = *ip;
	c.mtu = (uint16_t)(port->mtu < 9216 ? port->mtu : 9216);
	c.arrivals = true;
	c.random = unpredictable;
	c.place.seed = (uint64_t)unpredictable(NULL) << 32 | unpredictable(NULL);
	if (choose_congestion_control(&c) < 0)
		return -EINVAL;
	s->ip = *ip;
	s->by_conn = calloc(conns, sizeof(struct sock *));
	return s->by_conn == NULL ? -ENOMEM : stream_create(&c, &s->stream);
}

static int make_rnic(void)
{
	const struct iv_port_config *port = &dev.config.ports[0];
	struct rnic_config c = {.n_ports = 1, .max_qp = 1, .max_cq = 1, .max_mr = 1, .max_pd = 1};
	int ret;

	c.port[0] = iv_config_port(port);
	iv_config_lldp(&dev.config, &c);
	c.seed = unpredictable(NULL);
	ret = rnic_create(&c, &dev.rnic);
	for (unsigned i = 0; i < port->n_neigh && ret == 0; i++)
		ret = rnic_neigh_add(dev.rnic, 0, &port->neigh[i].ip, port->neigh[i].mac);
	return ret;
}

static json_t *stack_counters(const struct stack *s)
{
	const struct stream_path *path = stream_path(s->stream);
	const struct place_counters *placed = place_counters(path->place);
	json_t *all = json_object();
	char ip[WIRE_IP_STRLEN];

	json_object_set_new(all, "ip", json_string(wire_ip_format(&s->ip, ip, sizeof(ip))));
	for (unsigned i = 0; i < STREAM_N_COUNTERS; i++)
		json_object_set_new(all, stream_counter_name(i),
			json_integer((json_int_t)stream_count(s->stream, i)));
	for (unsigned i = 0; i < STREAM_PATH_N_COUNTERS; i++) {
		char name[40];

		snprintf(name, sizeof(name), "path_%s", stream_path_counter_name(i));
		json_object_set_new(all, name, json_integer((json_int_t)path->count[i]));
	}
	json_object_set_new(all, "received_direct", json_integer((json_int_t)s->direct));
	json_object_set_new(all, "received_copied", json_integer((json_int_t)s->copied));
	json_object_set_new(all, "placed", json_integer((json_int_t)placed->bytes));
	json_object_set_new(all, "copied", json_integer((json_int_t)placed->copied));
	for (unsigned i = 1; i < PLACE_N_DROPS; i++)
		json_object_set_new(
			all, place_drop_name(i), json_integer((json_int_t)placed->drops[i]));
	return all;
}

/* INCLINE_STATS: counters by name, as JSON, of each address. */
static void write_stats(void)
{
	const char *path = getenv("INCLINE_STATS");
	json_t *all;

	if (path == NULL || *path == '\0')
		return;
	all = json_array();
	for (unsigned i = 0; i < dev.n_stacks; i++)
		json_array_append_new(all, stack_counters(&dev.stack[i]));
	if (json_dump_file(all, path, JSON_INDENT(1)) < 0)
		fprintf(stderr, "incline: %s: cannot be written\n", path);
	json_decref(all);
}

/* What has been written is still sent, as the kernel would after the end of a process. */
static void at_exit(void)
{
	const uint64_t now = port_now_ns();
	bool more = true;

	if (dev.forked || !dev.open)
		return;
	atomic_store(&dev.stop, true);
	pthread_join(dev.thread, NULL);
	for (int fd = 0; fd < SOCKETS_MAX_FD; fd++) {
		struct sock *s = sock_of(fd);

		if (s != NULL) {
			sockets_enter();
			sock_set(fd, NULL);
			sock_unref(s);
			sockets_leave();
		}
	}
	while (more) {
		const uint64_t waited = port_now_ns() - now;
		const struct timespec t = {.tv_nsec = 20000};

		sockets_enter();
		if (sockets_turn() == 0)
			nanosleep(&t, NULL);
		more = sock_lingering(true)
			       ? waited < LINGER_S * 1000000000ull
			       : sock_lingering(false) && waited < LINGER_END_S * 1000000000ull;
		sockets_leave();
	}
	rnic_lldp_stop(dev.rnic);
	run_rnic(port_now_ns());
	dev.open = false;
	write_stats();
	iv_dpdk_close(dev.port, true);
	iv_dpdk_exit();
}

static void before_fork(void)
{
	pthread_mutex_lock(&sockets_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&sockets_lock);
}

static void in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	dev.forked = true;
	sockets_lock = fresh;
	if (dev.port != NULL)
		iv_dpdk_forked(dev.port);
	if (dev.claim >= 0)
		close(dev.claim);
	dev.claim = -1;
}

bool sockets_forked(void)
{
	return dev.forked;
}

bool sockets_foreign(void)
{
	return dev.forked || getpid() != dev.pid;
}

static int start_thread(void)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&dev.thread, NULL, thread_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static int open_device(char err[PORT_ERR_LEN])
{
	const struct iv_port_config *port = &dev.config.ports[0];
	int ret;

	dev.claim = iv_claim(dev.path);
	if (dev.claim < 0) {
		snprintf(err, PORT_ERR_LEN, "%s",
			dev.claim == -EBUSY ? "a process uses this port already"
					    : strerror(-dev.claim));
		return dev.claim;
	}
	ret = iv_dpdk_open(&dev.config, 0, 1, &dev.port, err);
	if (ret < 0)
		return ret;
	snprintf(err, PORT_ERR_LEN, "out of memory");
	ret = make_rnic();
	for (unsigned i = 0; i < port->n_ip && ret == 0; i++, dev.n_stacks++)
		ret = make_stack(&port->ip[i], &dev.stack[i]);
	return ret < 0 ? ret : start_thread();
}

int sockets_open(void)
{
	char err[PORT_ERR_LEN];

	if (dev.open)
		return 0;
	if (dev.failed || dev.forked)
		return -ENETDOWN;
	if (open_device(err) < 0) {
		fprintf(stderr, "incline: %s: %s\n", dev.path, err);
		dev.failed = true;
		return -ENETDOWN;
	}
	dev.open = true;
	dev.pid = getpid();
	atexit(at_exit);
	pthread_atfork(before_fork, after_fork, in_child);
	return 0;
}
