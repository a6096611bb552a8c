/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_jhash.h>
#include <rte_version.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/port/claim.h"
#include "lib/port/cpus.h"
#include "lib/port/iface.h"
#include "lib/port/internal.h"
#include "lib/port/memif_door.h"

enum {
	RETRY_MS = 20,
	LINK_WAIT_MS = 500, /* a memif handshake takes a few */
};

/* When a zero-copy memif has connected, its driver closes the file descriptor of the EAL's memory,
 * which the next one would need. */
static bool zero_copy_taken;

static bool is_memif(const struct port_config *c)
{
	return strcmp(c->type, "memif") == 0;
}

static bool is_server(const struct port_config *c)
{
	return c->socket[0] != '\0' && !c->client;
}

/* The driver binds to the door's inner socket instead of the public one. */
static int redirect(struct port_config *c, const char *inner, char err[PORT_ERR_LEN])
{
	static const char option[] = ",socket=";
	char *at = strstr(c->vdev, option), rest[sizeof(c->vdev)];
	size_t head;

	if (at == NULL)
		return port_fail(err, EINVAL, "socket: \"%s\" names none", c->vdev);
	at += sizeof(option) - 1;
	head = (size_t)(at - c->vdev);
	snprintf(rest, sizeof(rest), "%s", at + strcspn(at, ","));
	if (snprintf(at, sizeof(c->vdev) - head, "%s%s", inner, rest) >=
		(int)(sizeof(c->vdev) - head))
		return port_fail(err, ENAMETOOLONG, "socket: too long");
	return 0;
}

/* Makes this process the one that serves the port's socket, before the driver makes it. */
static int serve(struct port_config *c, char err[PORT_ERR_LEN])
{
	char inner[MEMIF_INNER_LEN];
	int rc;

	if (!is_server(c))
		return 0;
	if (!is_memif(c))
		return port_socket_claim(c->socket, err);
	rc = memif_door_open(c->socket, c->id, inner, err);
	if (rc < 0)
		return rc;
	rc = redirect(c, inner, err);
	if (rc < 0)
		memif_door_close(c->socket, c->id);
	return rc;
}

static void stop_serving(const struct port_config *c)
{
	if (is_server(c) && is_memif(c))
		memif_door_close(c->socket, c->id);
	else if (is_server(c))
		port_socket_release(c->socket);
}

static int probe(const struct port_config *c, uint16_t *id, char err[PORT_ERR_LEN])
{
	char name[RTE_DEV_NAME_MAX_LEN];
	struct rte_dev_iterator it;
	int rc;

	if (strcmp(c->type, "ring") == 0)
		return port_ring_create(c, id, err);
	if (c->pci[0] != '\0' && !rte_eal_has_pci())
		return port_fail(err, ENODEV, "the program was started without PCI: set \"pci\"");
	rc = port_drivers_load(port_config_driver(c), err);
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(c->vdev, ","), c->vdev);
	rc = rte_dev_probe(c->vdev);
	if (rc < 0)
		return port_fail(err, rc, "cannot make device %s: %s", name, rte_strerror(-rc));
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	if (rte_eth_iterator_init(&it, c->vdev) == 0) {
		*id = rte_eth_iterator_next(&it);
		rte_eth_iterator_cleanup(&it);
		if (*id != RTE_MAX_ETHPORTS)
			return 0;
	}
	return port_fail(err, ENODEV, "device \"%s\" has no Ethernet port", name);
}

static void remove_device(const struct port_config *c, uint16_t id)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(id, &info) == 0) {
		rte_eth_dev_close(id);
		rte_dev_remove(info.device);
	}
	if (strcmp(c->type, "ring") == 0)
		port_ring_destroy(c);
}

static void shut_door(const struct port_config *c)
{
	if (is_server(c) && is_memif(c))
		memif_door_shut(c->socket, c->id);
}

/* Drivers that learn the frame size in another way (memif's buffers, af_packet's frames, the
 * interface's own MTU) refuse, or would cut at, an MTU set through the ethdev API. */
static bool device_mtu(const struct port_config *c)
{
	return strcmp(c->type, "pci") == 0 || strcmp(c->type, "vdev") == 0;
}

static int queues(const struct port *port, uint16_t rxd, uint16_t txd, int socket)
{
	int rc = rte_eth_rx_queue_setup(port->id, 0, rxd, (unsigned)socket, NULL, port->pool);

	return rc < 0 ? rc : rte_eth_tx_queue_setup(port->id, 0, txd, (unsigned)socket, NULL);
}

static int configure(const struct port_config *c, struct port *port,
	const struct rte_eth_dev_info *info, char err[PORT_ERR_LEN])
{
	uint64_t fast = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	struct rte_eth_conf conf = {.txmode.offloads = fast};
	uint16_t rxd = c->rxd, txd = c->txd;
	const int socket = port_device_socket(port->id);
	int rc;

	if (device_mtu(c)) {
		if (c->mtu < info->min_mtu || c->mtu > info->max_mtu)
			return port_fail(err, EINVAL, "mtu: %u is out of the driver's range %u..%u",
				c->mtu, info->min_mtu, info->max_mtu);
		conf.rxmode.mtu = c->mtu;
	}
	rc = rte_eth_dev_configure(port->id, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rxd, &txd);
	if (rc < 0)
		return port_fail(
			err, rc, "the driver refuses the configuration: %s", rte_strerror(-rc));
	if (strcmp(c->type, "pci") == 0 && (rxd != c->rxd || txd != c->txd))
		return port_fail(err, EINVAL, "%s: %u is not possible, the nearest is %u",
			rxd != c->rxd ? "rxd" : "txd", rxd != c->rxd ? c->rxd : c->txd,
			rxd != c->rxd ? rxd : txd);
	rc = queues(port, rxd, txd, socket);
	if (rc == -ENOMEM && socket != SOCKET_ID_ANY)
		rc = queues(port, rxd, txd, SOCKET_ID_ANY);
	if (rc < 0)
		return port_fail(err, rc, "queues of %u and %u descriptors: %s", rxd, txd,
			rte_strerror(-rc));
	port->multi_seg = fast != 0;
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	/* Tried with 22.11 only; later drivers took a shorter path for chained buffers, which
	 * leaves the mark of a chain in the descriptor for the next packet. */
	if (strcmp(c->type, "memif") == 0)
		port->multi_seg = false;
#endif
	return 0;
}

/* A tap's interface is made by the driver, with the kernel's default MTU. */
static int interface_mtu(const struct port_config *c, char err[PORT_ERR_LEN])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;
	struct ifreq ifr = {.ifr_mtu = c->mtu};

	if (fd < 0)
		return port_fail(err, errno, "socket: %s", strerror(errno));
	memcpy(ifr.ifr_name, c->iface, sizeof(ifr.ifr_name));
	if (ioctl(fd, SIOCSIFMTU, &ifr) < 0)
		rc = port_fail(err, errno, "mtu: cannot set %u on %s: %s", c->mtu, c->iface,
			strerror(errno));
	close(fd);
	return rc;
}

/* af_packet would silently lose what the interface below does not carry. */
int port_check_interface_mtu(const struct port_config *c, char err[PORT_ERR_LEN])
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	struct ifreq ifr = {0};

	if (fd < 0)
		return port_fail(err, errno, "socket: %s", strerror(errno));
	memcpy(ifr.ifr_name, c->iface, sizeof(ifr.ifr_name));
	rc = ioctl(fd, SIOCGIFMTU, &ifr);
	close(fd);
	if (rc < 0)
		return port_fail(err, errno, "iface: %s: %s", c->iface, strerror(errno));
	if (ifr.ifr_mtu < c->mtu)
		return port_fail(err, EINVAL,
			"mtu: %u is more than the %d of interface %s: lower it, or "
			"\"ip link set %s mtu %u\"",
			c->mtu, ifr.ifr_mtu, c->iface, c->iface, c->mtu);
	return 0;
}

/* What keeps a client from the socket of its server, which its driver does not tell: -errno; 0: a
 * server is there. No server notices, for those who take connections take no datagrams. */
static int socket_refuses(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	rc = connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 ? 0 : -errno;
	close(fd);
	return rc == -EPROTOTYPE ? 0 : rc;
}

static int no_server(const struct port_config *c, char err[PORT_ERR_LEN])
{
	const int rc = socket_refuses(c->socket);

	if (rc == 0)
		return port_fail(err, EPROTO, "socket: who serves %s takes no %s client now",
			c->socket, c->type);
	port_log_clear(); /* the driver says the same in other words */
	return port_fail(err, rc, "socket: cannot connect to %s (%s): is the server up?", c->socket,
		strerror(-rc));
}

/* A memif or vhost client cannot start before its server. */
static int start(const struct port_config *c, struct port *port, unsigned deadline_ms,
	char err[PORT_ERR_LEN])
{
	uint64_t until = port_now_ns() + (uint64_t)deadline_ms * 1000000;
	int rc = port_first_start(port);

	while (rc < 0 && c->client && port_now_ns() < until) {
		usleep(RETRY_MS * 1000);
		rc = port_first_start(port);
	}
	if (rc < 0 && c->client)
		return no_server(c, err);
	if (rc < 0)
		return port_fail(err, rc, "the device does not start: %s", rte_strerror(-rc));
	if (!c->client)
		return 0;
	if (until > port_now_ns() + LINK_WAIT_MS * 1000000ULL)
		until = port_now_ns() + LINK_WAIT_MS * 1000000ULL;
	while (!port_link_up(port) && port_now_ns() < until)
		usleep(1000);
	return 0;
}

/* The driver may not filter at all, or (tap) give the address to the kernel's end as well. */
static int tell_mac(const struct port_config *c, uint16_t id, char err[PORT_ERR_LEN])
{
	struct rte_ether_addr mac;
	int rc;

	if (strcmp(c->type, "tap") == 0)
		return 0;
	memcpy(mac.addr_bytes, c->mac, sizeof(mac.addr_bytes));
	rc = rte_eth_dev_default_mac_addr_set(id, &mac);
	if (rc < 0 && rc != -ENOTSUP)
		return port_fail(err, rc, "mac: the driver refuses it: %s", rte_strerror(-rc));
	return 0;
}

static uint32_t hash_text(const char *text, uint32_t seed)
{
	return rte_jhash(text, (uint32_t)strlen(text), seed);
}

/* Machines are configured alike, also containers of one, and their switches are to differ. */
static uint32_t this_machine(void)
{
	char text[256] = "";
	uint32_t hash = 0;
	FILE *f = fopen("/etc/machine-id", "re");

	if (f != NULL && fgets(text, sizeof(text), f) != NULL)
		hash = hash_text(text, hash);
	if (f != NULL)
		fclose(f);
	if (gethostname(text, sizeof(text) - 1) == 0)
		hash = hash_text(text, hash);
	return hash;
}

static void name_mac(uint8_t mac[6], const char *of, uint32_t number)
{
	uint32_t hash = hash_text(of, number);

	memset(mac, 0, 6);
	mac[0] = 0x02;
	memcpy(mac + 2, &hash, sizeof(hash));
}

static int set_mac(const struct port_config *c, struct port *port, char err[PORT_ERR_LEN])
{
	struct rte_ether_addr mac;
	int rc;

	if (c->has_mac) {
		memcpy(port->mac, c->mac, sizeof(port->mac));
		return tell_mac(c, port->id, err);
	}
	rc = rte_eth_macaddr_get(port->id, &mac);
	if (rc < 0)
		return port_fail(err, rc, "the driver tells no MAC address: set \"mac\"");
	memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
	if (strcmp(c->type, "tap") == 0)
		port->mac[0] ^= 0x04; /* what the driver tells is the kernel's end */
	/* One that is the same every time: hosts keep it in their ARP caches. The driver of a memif
	 * tells another at every start. */
	if (is_memif(c) && !c->client)
		name_mac(port->mac, c->socket, this_machine() ^ c->id);
	else if (rte_is_zero_ether_addr(&mac))
		name_mac(port->mac, c->name, 0); /* a ring has none */
	return 0;
}

static int bring_up(const struct port_config *c, struct port *port, unsigned deadline_ms,
	char err[PORT_ERR_LEN])
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port->id, &info);

	if (rc < 0)
		return port_fail(
			err, rc, "the driver tells nothing of itself: %s", rte_strerror(-rc));
	rc = configure(c, port, &info, err);
	if (rc == 0)
		rc = set_mac(c, port, err);
	if (rc == 0 && strcmp(c->type, "af_packet") == 0)
		rc = port_check_interface_mtu(c, err);
	if (rc == 0)
		rc = start(c, port, deadline_ms, err);
	if (rc == 0 && strcmp(c->type, "tap") == 0)
		rc = interface_mtu(c, err);
	/* Frames for every address: a switch answers for others. Not every driver filters. */
	if (rc == 0)
		rte_eth_promiscuous_enable(port->id);
	return rc;
}

static void no_zero_copy(struct port_config *c)
{
	char *option = strstr(c->vdev, ",zero-copy=yes");

	if (option != NULL)
		*option = '\0';
	c->zero_copy = false;
}

static int open_port(const struct port_config *config, struct rte_mempool *pool,
	unsigned deadline_ms, struct port *port, char err[PORT_ERR_LEN])
{
	struct port p = {.config = *config, .pool = pool};
	int rc;

	p.shared_rings = strcmp(config->type, "memif") == 0;
	if (config->zero_copy && zero_copy_taken)
		no_zero_copy(&p.config);
	port_bursts_init();
	port_log_clear();
	rc = serve(&p.config, err);
	if (rc < 0)
		return rc;
	rc = probe(&p.config, &p.id, err);
	if (rc == 0) {
		if (p.shared_rings)
			rc = port_bursts_hold(err);
		else if (strcmp(config->type, "vhost") == 0)
			rc = port_vhost_guard(err);
		if (rc == 0 && is_server(config) && is_memif(config))
			rc = port_guard_start(err);
		if (rc == 0)
			rc = bring_up(&p.config, &p, deadline_ms, err);
		if (rc == 0 && strcmp(config->type, "af_packet") == 0)
			rc = port_iface_open(config->iface, &p.iface, err);
		if (rc == 0 && is_server(config) && is_memif(config))
			rc = memif_door_admit(config->socket, config->id, err);
		if (rc < 0) {
			shut_door(config);
			remove_device(&p.config, p.id);
		}
	}
	if (rc < 0) {
		stop_serving(config);
		return rc;
	}
	zero_copy_taken |= p.config.zero_copy;
	*port = p;
	return 0;
}

int port_open(const struct port_config *config, struct rte_mempool *pool, unsigned deadline_ms,
	struct port *port, char err[PORT_ERR_LEN])
{
	int rc;

	port_log_quote(true);
	rc = open_port(config, pool, deadline_ms, port, err);
	port_log_quote(false);
	return rc;
}

static void close_here(void *arg)
{
	const struct port *port = arg;

	if (port->again.gone)
		return;
	rte_eth_dev_stop(port->id);
	remove_device(&port->config, port->id);
}

int port_copy_instead(struct port *port)
{
	struct rte_eth_dev_info info;
	char err[PORT_ERR_LEN];
	uint16_t id;
	int rc;

	close_here(port);
	port->again.gone = port->again.lossy = true;
	no_zero_copy(&port->config);
	rc = probe(&port->config, &id, err);
	if (rc < 0)
		return rc;
	rc = id == port->id ? rte_eth_dev_info_get(id, &info) : -EADDRNOTAVAIL;
	if (rc == 0)
		rc = configure(&port->config, port, &info, err);
	if (rc < 0)
		remove_device(&port->config, id);
	port->again.gone = rc < 0;
	return rc;
}

/* A memif's driver learns on the EAL's interrupt thread that the peer goes, and frees what a close
 * elsewhere is using. So memifs are closed there, where alarms run too. */
void port_close(struct port *port)
{
	shut_door(&port->config);
	if (port->shared_rings) {
		port_tick_end(port);
		port_on_interrupt_thread(close_here, port);
	} else {
		close_here(port);
	}
	stop_serving(&port->config);
	port_iface_close(port->iface);
	memset(port, 0, sizeof(*port));
}

unsigned port_mtu(const struct port *port)
{
	unsigned mtu = port->iface != NULL ? atomic_load(&port->iface->mtu) : UINT_MAX;

	return mtu < port->config.mtu ? mtu : port->config.mtu;
}
