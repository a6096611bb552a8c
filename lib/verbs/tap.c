/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's tap device: attached to, or made, and given MAC, MTU and addresses. A tap file
 * descriptor of our own instead of DPDK's net_tap: that one has no access to a device that exists,
 * adds queues, rules and buffers for its own purposes, and cannot be waited for. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/verbs/netdev.h"

struct tap {
	const struct iv_config *config;
	int ctl; /* any socket, for ioctl */
	char *err;
};

static int fail(const struct tap *t, int error, const char *what)
{
	snprintf(t->err, PORT_ERR_LEN, "netdev: %s: %s: %s", t->config->netdev.name, what,
		strerror(error));
	return -error;
}

static struct ifreq request(const struct tap *t)
{
	struct ifreq ifr = {0};

	memcpy(ifr.ifr_name, t->config->netdev.name, sizeof(ifr.ifr_name));
	return ifr;
}

static int attach(const struct tap *t)
{
	struct ifreq ifr = request(t);
	const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int error;

	if (fd < 0)
		return fail(t, errno, "/dev/net/tun");
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (ioctl(fd, TUNSETIFF, &ifr) == 0)
		return fd;
	error = errno;
	close(fd);
	switch (error) {
	case EBUSY:
		return fail(t, error, "another process has it");
	case EINVAL:
		return fail(t, error, "it is no tap device");
	case EPERM:
		return fail(t, error,
			"making it needs CAP_NET_ADMIN, using it to be its owner (ip tuntap add "
			"... user)");
	default:
		return fail(t, error, "cannot attach");
	}
}

static int set_mac(const struct tap *t)
{
	struct ifreq ifr = request(t);

	if (ioctl(t->ctl, SIOCGIFHWADDR, &ifr) == 0 &&
		memcmp(ifr.ifr_hwaddr.sa_data, t->config->ports[0].mac,
			sizeof(t->config->ports[0].mac)) == 0)
		return 0;
	ifr.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(ifr.ifr_hwaddr.sa_data, t->config->ports[0].mac, sizeof(t->config->ports[0].mac));
	return ioctl(t->ctl, SIOCSIFHWADDR, &ifr) ? fail(t, errno, "cannot set its MAC") : 0;
}

static int set_mtu(const struct tap *t)
{
	struct ifreq ifr = request(t);

	if (ioctl(t->ctl, SIOCGIFMTU, &ifr) == 0 && ifr.ifr_mtu == (int)t->config->ports[0].mtu)
		return 0;
	ifr.ifr_mtu = (int)t->config->ports[0].mtu;
	return ioctl(t->ctl, SIOCSIFMTU, &ifr) ? fail(t, errno, "cannot set its MTU") : 0;
}

static int set_up(const struct tap *t)
{
	struct ifreq ifr = request(t);

	if (ioctl(t->ctl, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_UP))
		return 0;
	ifr.ifr_flags |= IFF_UP;
	return ioctl(t->ctl, SIOCSIFFLAGS, &ifr) ? fail(t, errno, "cannot set it up") : 0;
}

static struct wire_ip address_of(const struct sockaddr *sa)
{
	struct wire_ip ip = {0};

	if (sa && sa->sa_family == AF_INET)
		ip = wire_ip_from4(ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr));
	else if (sa && sa->sa_family == AF_INET6)
		memcpy(ip.b, &((const struct sockaddr_in6 *)sa)->sin6_addr, sizeof(ip.b));
	return ip;
}

static bool has_address(const struct tap *t, const struct wire_ip *ip)
{
	struct ifaddrs *all, *a;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (a = all; a && !found; a = a->ifa_next) {
		const struct wire_ip has = address_of(a->ifa_addr);

		found = strcmp(a->ifa_name, t->config->netdev.name) == 0 && wire_ip_eq(&has, ip);
	}
	freeifaddrs(all);
	return found;
}

/* RTM_NEWADDR, and the kernel's answer. */
static int add_address(const struct tap *t, const struct wire_ip *ip)
{
	const bool v4 = wire_ip_is4(ip);
	const size_t len = v4 ? 4 : 16;
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg addr;
		struct rtattr attr;
		uint8_t ip[16];
	} ask = {
		.head = {.nlmsg_len = (uint32_t)(offsetof(typeof(ask), ip) + len),
			.nlmsg_type = RTM_NEWADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
		/* Nobody else has the address: it is the rnic's. */
		.addr = {.ifa_family = v4 ? AF_INET : AF_INET6,
			.ifa_prefixlen = (uint8_t)(v4 ? t->config->netdev.prefix4
						      : t->config->netdev.prefix6),
			.ifa_flags = IFA_F_NODAD,
			.ifa_index = if_nametoindex(t->config->netdev.name)},
		.attr = {.rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = IFA_LOCAL},
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		uint8_t more[256];
	} answer = {0};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int ret = 0;

	memcpy(ask.ip, ip->b + 16 - len, len);
	if (fd < 0)
		return -errno;
	if (send(fd, &ask, ask.head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		ret = -errno;
	else if (answer.head.nlmsg_type == NLMSG_ERROR)
		ret = answer.error.error;
	close(fd);
	return ret;
}

static int set_addresses(const struct tap *t)
{
	for (unsigned i = 0; i < t->config->ports[0].n_ip; i++) {
		char what[WIRE_IP_STRLEN + 32], text[WIRE_IP_STRLEN];
		int ret;

		if (has_address(t, &t->config->ports[0].ip[i]))
			continue;
		ret = add_address(t, &t->config->ports[0].ip[i]);
		wire_ip_format(&t->config->ports[0].ip[i], text, sizeof(text));
		snprintf(what, sizeof(what), "cannot add %s", text);
		if (ret)
			return fail(t, -ret, what);
	}
	return 0;
}

int iv_tap_open(const struct iv_config *config, char err[PORT_ERR_LEN])
{
	struct tap t = {.config = config, .err = err};
	int fd = attach(&t), ret;

	if (fd < 0)
		return fd;
	t.ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (t.ctl < 0)
		ret = fail(&t, errno, "socket");
	else
		(void)((ret = set_mac(&t)) || (ret = set_mtu(&t)) || (ret = set_up(&t)) ||
			(ret = set_addresses(&t)));
	if (t.ctl >= 0)
		close(t.ctl);
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}
