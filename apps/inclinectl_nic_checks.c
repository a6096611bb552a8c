/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports: devices, drivers, PCIe, NUMA nodes, MTUs. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_checks.h"
#include "lib/ctl/tree.h"

#define PCI "/sys/bus/pci/devices/%s"

enum { VENDOR_MELLANOX = 0x15b3, CLASS_NETWORK = 2, MAX_IFACES = 512 };

/* ---- names become parts of paths ---- */

static bool is_pci_address(const char *text)
{
	static const char form[] = "xxxx:xx:xx.x";
	size_t i = 0;

	for (; form[i]; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	return !text[i];
}

/* The kernel takes any name without blanks and slashes; it also becomes a word of a command that
 * people may paste into a shell. */
static bool is_iface(const char *text)
{
	const size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_.:@-");

	return len > 0 && len < 16 && !text[len] && text[0] != '.' && text[0] != '-';
}

/* ---- NICs ---- */

/* PCI's number of its maker; 0: not known. */
static int64_t vendor_of(const struct checks *c, const struct checks_port *p)
{
	int64_t vendor = 0;

	tree_number(c->root, &vendor, PCI "/vendor", p->address);
	return vendor;
}

/* What else is at an address may be the disk: nobody is told to take that from its driver. */
static bool is_network(const struct checks *c, const struct checks_port *p)
{
	int64_t class;

	return !tree_number(c->root, &class, PCI "/class", p->address) &&
	       class >> 16 == CLASS_NETWORK;
}

bool checks_port_is_vfio(const struct checks *c, const struct checks_port *p)
{
	return !strcmp(p->type, "pci") && is_pci_address(p->address) && is_network(c, p) &&
	       vendor_of(c, p) != VENDOR_MELLANOX;
}

static void driver_of_mlx(struct checks *c, const struct checks_port *p)
{
	static const char *const modules[] = {"mlx5_core", "mlx5_ib", "ib_uverbs"};
	char driver[64], mend[96];

	const bool none = tree_link(c->root, driver, sizeof(driver), PCI "/driver", p->address);
	if (!strcmp(driver, "mlx4_core")) {
		checks_add(c, "driver", p->name, CHECKS_FAIL, NULL,
			"is on mlx4_core: a ConnectX-3 or older, which no driver of the switch "
			"has");
		return;
	}
	if (none || strcmp(driver, "mlx5_core") != 0) {
		snprintf(mend, sizeof(mend), "dpdk-devbind.py -b mlx5_core %s", p->address);
		checks_add(c, "driver", p->name, CHECKS_FAIL, mend,
			"a ConnectX stays on mlx5_core, is on %s", driver[0] ? driver : "none");
		return;
	}
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (tree_has(c->root, "/sys/module/%s", modules[i]))
			continue;
		snprintf(mend, sizeof(mend), "modprobe %s", modules[i]);
		checks_add(c, "driver", p->name, CHECKS_FAIL, mend,
			"kernel module %s is not loaded", modules[i]);
		return;
	}
	checks_add(c, "driver", p->name, CHECKS_OK, NULL, "mlx5_core, with mlx5_ib and ib_uverbs");
}

static void driver_of_others(struct checks *c, const struct checks_port *p)
{
	static const char *const good[] = {"vfio-pci", "igb_uio", "uio_pci_generic"};
	char driver[64], mend[128];

	tree_link(c->root, driver, sizeof(driver), PCI "/driver", p->address);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (strcmp(driver, good[i]) != 0)
			continue;
		checks_add(c, "driver", p->name, CHECKS_OK, NULL, "%s", driver);
		return;
	}
	snprintf(mend, sizeof(mend), "modprobe vfio-pci && dpdk-devbind.py -b vfio-pci %s",
		p->address);
	checks_add(c, "driver", p->name, CHECKS_FAIL, mend, "is %s, must be vfio-pci",
		driver[0] ? driver : "none");
}

/* "16.0 GT/s PCIe" */
static double speed_of(const struct checks *c, const struct checks_port *p, const char *file)
{
	char text[64];

	if (tree_line(c->root, text, sizeof(text), PCI "/%s", p->address, file))
		return 0;
	const double speed = strtod(text, NULL);
	return speed > 0 && speed < 10000 ? speed : 0;
}

static void pcie(struct checks *c, const struct checks_port *p)
{
	const double speed = speed_of(c, p, "current_link_speed");
	const double most = speed_of(c, p, "max_link_speed");
	int64_t width = 0, widest = 0;
	char mend[64];

	tree_number(c->root, &width, PCI "/current_link_width", p->address);
	tree_number(c->root, &widest, PCI "/max_link_width", p->address);
	snprintf(mend, sizeof(mend), "lspci -vv -s %s | grep -i lnk", p->address);
	if (speed <= 0 || width < 1)
		checks_add(c, "pcie", p->name, CHECKS_OK, NULL,
			"the device has no link that says its speed: it is virtual");
	else if (speed < most || width < widest)
		checks_add(c, "pcie", p->name, CHECKS_WARN, mend,
			"x%" PRId64 " at %.1f GT/s, the device can do x%" PRId64
			" at %.1f: another slot, or the firmware's setting of this one",
			width, speed, widest, most);
	else
		checks_add(c, "pcie", p->name, CHECKS_OK, NULL, "x%" PRId64 " at %.1f GT/s", width,
			speed);
}

/* Node of a CPU; -1: not known. */
static int64_t node_of(const struct checks *c, int cpu)
{
	char names[64][TREE_NAME], list[1024];
	const int n = tree_names(c->root, names, 64, "/sys/devices/system/node");
	int64_t node;

	for (int i = 0; i < n; i++) {
		if (sscanf(names[i], "node%" SCNd64, &node) != 1)
			continue;
		if (!tree_line(c->root, list, sizeof(list), "/sys/devices/system/node/%s/cpulist",
			    names[i]) &&
			tree_in_list(list, cpu))
			return node;
	}
	return -1;
}

/* As the kernel counts, 10 is the node itself; 0: not known. */
static long distance(const struct checks *c, int64_t from, int64_t to)
{
	char text[512], *at = text, *end;
	long d = 0;

	if (tree_line(c->root, text, sizeof(text),
		    "/sys/devices/system/node/node%" PRId64 "/distance", from))
		return 0;
	for (int64_t i = 0; i <= to; i++, at = end) {
		d = strtol(at, &end, 10);
		if (end == at)
			return 0;
	}
	return d;
}

static void numa(struct checks *c, const struct checks_port *p)
{
	unsigned unknown = 0;
	int64_t node = -1;

	tree_number(c->root, &node, PCI "/numa_node", p->address);
	for (unsigned i = 0; i < c->n_cpus; i++) {
		const int64_t at = node_of(c, c->cpu[i]);

		unknown += at < 0;
		if (node < 0 || at < 0 || node == at)
			continue;
		checks_add(c, "numa", p->name, CHECKS_WARN, NULL,
			"node %" PRId64 ", the worker on CPU %d is on node %" PRId64
			", distance %ld (own 10): take a CPU of "
			"/sys/devices/system/node/node%" PRId64 "/cpulist in \"lcores\"",
			node, c->cpu[i], at, distance(c, node, at), node);
		return;
	}
	if (node < 0)
		checks_add(c, "numa", p->name, CHECKS_OK, NULL, "the device is of no node");
	else
		checks_add(c, "numa", p->name, CHECKS_OK, NULL, "node %" PRId64 "%s", node,
			unknown || !c->n_cpus ? "" : ", as the workers");
}

/* ---- MTU ---- */

static void mtu_of_iface(struct checks *c, const struct checks_port *p, const char *iface)
{
	char mend[96], other[MAX_IFACES][TREE_NAME];
	int64_t mtu, own = -1, peer = -1, at;

	snprintf(mend, sizeof(mend), "ip link set %.15s mtu %" JSON_INTEGER_FORMAT, iface, p->mtu);
	if (tree_number(c->root, &mtu, "/sys/class/net/%s/mtu", iface)) {
		checks_add(c, "mtu", p->name, CHECKS_FAIL, NULL, "there is no interface %s here",
			iface);
		return;
	}
	if (mtu < p->mtu) {
		checks_add(c, "mtu", p->name, CHECKS_FAIL, mend,
			"the port's is %" JSON_INTEGER_FORMAT ", that of %s %" PRId64, p->mtu,
			iface, mtu);
		return;
	}
	checks_add(c, "mtu", p->name, CHECKS_OK, NULL,
		"the port's is %" JSON_INTEGER_FORMAT ", that of %s %" PRId64, p->mtu, iface, mtu);
	/* A veth names its other end, if that is in this network namespace. */
	tree_number(c->root, &own, "/sys/class/net/%s/ifindex", iface);
	if (tree_number(c->root, &peer, "/sys/class/net/%s/iflink", iface) || peer == own)
		return;
	const int n = tree_names(c->root, other, MAX_IFACES, "/sys/class/net");
	for (int i = 0; i < n; i++) {
		if (tree_number(c->root, &at, "/sys/class/net/%s/ifindex", other[i]) ||
			at != peer || tree_number(c->root, &mtu, "/sys/class/net/%s/mtu", other[i]))
			continue;
		snprintf(mend, sizeof(mend), "ip link set %.15s mtu %" JSON_INTEGER_FORMAT,
			other[i], p->mtu);
		checks_add(c, "mtu-peer", p->name, mtu == p->mtu ? CHECKS_OK : CHECKS_WARN,
			mtu == p->mtu || !is_iface(other[i]) ? NULL : mend,
			"the port's is %" JSON_INTEGER_FORMAT
			", that of %s, its other end, %" PRId64,
			p->mtu, other[i], mtu);
		return;
	}
	checks_add(c, "mtu-peer", p->name, CHECKS_WARN, NULL,
		"the other end of %s is in another network namespace: ip link show there", iface);
}

/* A ConnectX's interface stays in the kernel, with an MTU of its own; the other end's of a cable
 * can only be seen there. */
static void mtu_of_nic(struct checks *c, const struct checks_port *p)
{
	char iface[1][TREE_NAME];

	if (tree_names(c->root, iface, 1, PCI "/net", p->address) == 1 && is_iface(iface[0]))
		mtu_of_iface(c, p, iface[0]);
	checks_add(c, "mtu-peer", p->name, CHECKS_WARN, NULL,
		"the port's is %" JSON_INTEGER_FORMAT "; the neighbour's cannot be seen from here: "
		"there, ip link show IFACE, or to try it "
		"ping -M do -s %" JSON_INTEGER_FORMAT " SWITCH",
		p->mtu, p->mtu - 28);
}

static void nic(struct checks *c, const struct checks_port *p)
{
	if (!is_pci_address(p->address)) {
		checks_add(c, "device", p->name, CHECKS_FAIL, "lspci -D | grep -i ethernet",
			"address %.32s is not as 0000:3b:00.0", p->address);
		return;
	}
	if (!tree_has(c->root, PCI, p->address)) {
		checks_add(c, "device", p->name, CHECKS_FAIL, "lspci -D | grep -i ethernet",
			"there is no device %s", p->address);
		return;
	}
	if (!is_network(c, p)) {
		checks_add(c, "device", p->name, CHECKS_FAIL, "lspci -D | grep -i ethernet",
			"%s is no network device", p->address);
		return;
	}
	checks_add(c, "device", p->name, CHECKS_OK, NULL, "%s", p->address);
	if (vendor_of(c, p) == VENDOR_MELLANOX)
		driver_of_mlx(c, p);
	else
		driver_of_others(c, p);
	pcie(c, p);
	numa(c, p);
	mtu_of_nic(c, p);
}

void checks_ports(struct checks *c)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct checks_port *p = &c->port[i];

		if (!strcmp(p->type, "pci"))
			nic(c, p);
		else if (!strcmp(p->type, "af_packet") && is_iface(p->iface))
			mtu_of_iface(c, p, p->iface);
		else if (!strcmp(p->type, "af_packet"))
			checks_add(c, "mtu", p->name, CHECKS_FAIL, NULL,
				"%.32s cannot be the name of an interface", p->iface);
		else if (!strcmp(p->type, "tap") && !tree_has(c->root, "/dev/net/tun"))
			checks_add(c, "driver", p->name, CHECKS_FAIL, "modprobe tun",
				"/dev/net/tun is not there");
	}
}
