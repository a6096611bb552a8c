/* SPDX-License-Identifier: BSD-3-Clause */
/* "doctor" on trees of files: one that is right, and each thing that can be wrong with it. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/inclinectl_checks.h"
#include "lib/ctl/tree.h"
#include "tests/unit/ctl/cli_helper.h"

static char root[64];

/* ---- trees ---- */

static void path_to(char *path, size_t cap, const char *file)
{
	snprintf(path, cap, "%s/%s", root, file);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
		*at = '\0';
		mkdir(path, 0700);
	}
}

static void put_bytes(const char *file, const char *text, size_t len)
{
	char path[512];

	path_to(path, sizeof(path), file);
	unlink(path);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fwrite(text, 1, len, out);
	fclose(out);
}

static void put(const char *file, const char *text)
{
	put_bytes(file, text, strlen(text));
}

static void put_link(const char *file, const char *target)
{
	char path[512];

	path_to(path, sizeof(path), file);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void take(const char *file)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, file);
	assert_int_equal(nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#define HUGE "sys/kernel/mm/hugepages/hugepages-2048kB/"
#define E810 "sys/bus/pci/devices/0000:5e:00.0/"
#define CX "sys/bus/pci/devices/0000:3b:00.0/"
#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define CLOCK "sys/devices/system/clocksource/clocksource0/"

static void put_nics(void)
{
	put(E810 "vendor", "0x8086\n");
	put(E810 "class", "0x020000\n");
	put_link(E810 "driver", "../../../../bus/pci/drivers/vfio-pci");
	put(E810 "current_link_speed", "16.0 GT/s PCIe\n");
	put(E810 "max_link_speed", "16.0 GT/s PCIe\n");
	put(E810 "current_link_width", "16\n");
	put(E810 "max_link_width", "16\n");
	put(E810 "numa_node", "1\n");
	put(CX "vendor", "0x15b3\n");
	put(CX "class", "0x020000\n");
	put_link(CX "driver", "../../../../bus/pci/drivers/mlx5_core");
	put(CX "numa_node", "1\n");
	put(CX "net/enp59s0f0np0/mtu", "9000\n");
	put("sys/class/net/enp59s0f0np0/mtu", "9000\n");
	put("sys/module/mlx5_core/refcnt", "1\n");
	put("sys/module/mlx5_ib/refcnt", "1\n");
	put("sys/module/ib_uverbs/refcnt", "1\n");
}

static int good_tree(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/incline-doctor-XXXXXX");
	assert_non_null(mkdtemp(root));
	put(HUGE "nr_hugepages", "1024\n");
	put(HUGE "free_hugepages", "1000\n");
	put("proc/mounts", "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0\n");
	put("proc/cmdline", "quiet intel_iommu=on iommu=pt isolcpus=2-3\n");
	put("proc/self/limits",
		"Limit  Soft Limit  Hard Limit  Units\n"
		"Max locked memory         unlimited            unlimited  bytes\n");
	put("sys/class/iommu/dmar0/uevent", "");
	put(CPU "online", "0-7\n");
	put(CPU "isolated", "2-3\n");
	put(CPU "cpu2/cpufreq/scaling_governor", "performance\n");
	put(NODE "node0/cpulist", "0-1,4-7\n");
	put(NODE "node0/distance", "10 21\n");
	put(NODE "node1/cpulist", "2-3\n");
	put(CLOCK "current_clocksource", "tsc\n");
	put(CLOCK "available_clocksource", "tsc hpet acpi_pm\n");
	put("sys/class/net/sw0/mtu", "4200\n");
	put("sys/class/net/sw0/ifindex", "7\n");
	put("sys/class/net/sw0/iflink", "8\n");
	put("sys/class/net/h0/mtu", "4200\n");
	put("sys/class/net/h0/ifindex", "8\n");
	put_nics();
	return 0;
}

static int remove_tree(void **state)
{
	(void)state;
	take("");
	return 0;
}

static const char nics[] =
	"{\"hugepages\":true,\"memory_mb\":1024,\"pci\":true,\"lcores\":\"0@0,1@2\",\"ports\":["
	"{\"name\":\"e0\",\"type\":\"pci\",\"address\":\"0000:5e:00.0\",\"mtu\":4200},"
	"{\"name\":\"c0\",\"type\":\"pci\",\"address\":\"0000:3b:00.0\",\"mtu\":4200}]}";
static const char veth[] =
	"{\"ports\":[{\"name\":\"h0\",\"type\":\"af_packet\",\"iface\":\"sw0\"}]}";

static json_t *examine(const char *config)
{
	json_t *json = config ? json_loads(config, 0, NULL) : NULL;
	const struct checks_about about = {.root = root, .config = json};
	struct ctl_problem problem;

	assert_true(!config || json);
	json_t *out = checks_run(&about);
	json_object_set_new(out, "config", json_string("none"));
	if (ctl_check(checks_result, out, "", &problem))
		fail_msg("%s: %s", problem.path, problem.msg);
	json_decref(json);
	return out;
}

/* The check's outcome, of the part that it is about (NULL: of none): "verdict: reason [mend]". */
static void expect(const char *config, const char *check, const char *about, const char *expected)
{
	json_t *out = examine(config), *item;
	char text[1024] = "not made";
	size_t i;

	json_array_foreach(json_object_get(out, "checks"), i, item)
	{
		const char *its = json_string_value(json_object_get(item, "about"));
		const char *mend = json_string_value(json_object_get(item, "mend"));

		if (strcmp(json_string_value(json_object_get(item, "check")), check) != 0 ||
			strcmp(its ? its : "", about ? about : "") != 0)
			continue;
		snprintf(text, sizeof(text), "%s: %s%s%s%s",
			json_string_value(json_object_get(item, "verdict")),
			json_string_value(json_object_get(item, "reason")), mend ? " [" : "",
			mend ? mend : "", mend ? "]" : "");
	}
	assert_string_equal(text, expected);
	json_decref(out);
}

static void expect_sum(const char *config, const char *verdict, int ok, int warn, int fail)
{
	json_t *out = examine(config);

	assert_string_equal(json_string_value(json_object_get(out, "verdict")), verdict);
	assert_int_equal(json_integer_value(json_object_get(out, "ok")), ok);
	assert_int_equal(json_integer_value(json_object_get(out, "warn")), warn);
	assert_int_equal(json_integer_value(json_object_get(out, "fail")), fail);
	json_decref(out);
}

/* ---- tests ---- */

static void test_good(void **state)
{
	(void)state;
	/* What remains are the neighbours' MTUs, which nobody sees from here. */
	expect_sum(nics, "warn", 15, 2, 0);
	expect_sum(veth, "ok", 6, 0, 0);
	expect_sum(NULL, "ok", 4, 0, 0);
	expect(nics, "hugepages", NULL, "ok: 2048 MB are reserved, memory_mb is 1024");
	expect(nics, "numa", "e0", "ok: node 1, as the workers");
	expect(nics, "pcie", "e0", "ok: x16 at 16.0 GT/s");
	expect(nics, "pcie", "c0", "ok: the device has no link that says its speed: it is virtual");
	expect(nics, "mtu", "c0", "ok: the port's is 4200, that of enp59s0f0np0 9000");
	expect(veth, "mtu-peer", "h0", "ok: the port's is 4200, that of h0, its other end, 4200");
	/* An RNIC's file has the MTU outside. */
	expect("{\"mtu\":1500,\"port\":{\"name\":\"r\",\"type\":\"af_packet\",\"iface\":\"sw0\"}}",
		"mtu", "r", "ok: the port's is 1500, that of sw0 4200");
	expect("{\"ports\":[{\"mtu\":9000,\"port\":{\"name\":\"r\",\"type\":\"af_packet\","
	       "\"iface\":\"sw0\"}}]}",
		"mtu", "r",
		"fail: the port's is 9000, that of sw0 4200 [ip link set sw0 mtu 9000]");
}

/* No pages of 2 MB, as on other machines; a pool of others is not made smaller; no number at all.
 */
static void test_other_pages(void)
{
	static const char memory[] = "{\"hugepages\":true,\"memory_mb\":1500}";
	static const char big[] = "{\"hugepages\":true,\"memory_mb\":9223372036854775807}";

	take(HUGE);
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "3\n");
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
	expect(memory, "hugepages", NULL,
		"fail: 1024 of 3072 MB are free, memory_mb is 1500 "
		"[echo 4 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages]");
	expect(big, "hugepages", NULL,
		"fail: 3072 MB are reserved, memory_mb is 1048576 "
		"[echo 1026 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages]");
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "many\n");
	expect(memory, "hugepages", NULL, "fail: 0 MB are reserved, memory_mb is 1500");
}

static void test_memory(void **state)
{
	(void)state;
	/* The command adds to what is there: 1024 pages of others, and one that is missing. */
	put(HUGE "free_hugepages", "511\n");
	expect(nics, "hugepages", NULL,
		"fail: 1022 of 2048 MB are free, memory_mb is 1024 "
		"[echo 1025 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages]");
	put(HUGE "resv_hugepages", "11\n");
	expect(nics, "hugepages", NULL,
		"fail: 1000 of 2048 MB are free, memory_mb is 1024 "
		"[echo 1036 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages]");
	put(HUGE "nr_hugepages", "511\n");
	expect(nics, "hugepages", NULL,
		"fail: 1022 MB are reserved, memory_mb is 1024 "
		"[echo 523 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages]");
	take(HUGE "resv_hugepages");
	/* Pages of another size count, too. */
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
	expect(nics, "hugepages", NULL, "ok: 2046 MB are reserved, memory_mb is 1024");
	put("proc/mounts", "proc /proc proc rw 0 0\n");
	expect(nics, "hugepages", NULL,
		"fail: 2046 MB are reserved, but no hugetlbfs is mounted "
		"[mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages]");
	/* Who cannot see what is mounted does not say to mount over it. */
	take("proc/mounts");
	expect(nics, "hugepages", NULL,
		"warn: 2046 MB are reserved; /proc/mounts does not say whether hugetlbfs is "
		"mounted");
	test_other_pages();
	take("sys/kernel/mm");
	expect(nics, "hugepages", NULL,
		"fail: /sys/kernel/mm/hugepages cannot be read: the kernel has none");
	expect(veth, "hugepages", NULL, "ok: not asked for");
	put("proc/self/limits", "Max locked memory         8388608    8388608   bytes\n");
	expect(nics, "memory-lock", NULL,
		"warn: 8 MB may be locked by who asks here, memory_mb is 1024: NICs want all of "
		"it, unless the process has CAP_IPC_LOCK "
		"[ulimit -l unlimited # of a unit: LimitMEMLOCK=infinity]");
	take("proc/self");
	expect(nics, "memory-lock", NULL,
		"warn: /proc/self/limits does not say how much memory may be locked "
		"[ulimit -l unlimited # of a unit: LimitMEMLOCK=infinity]");
}

#define IOMMU_MEND \
	" [add intel_iommu=on (or amd_iommu=on) and iommu=pt to the kernel's command line]"

static void test_iommu(void **state)
{
	static const char mlx[] =
		"{\"hugepages\":true,\"ports\":[{\"name\":\"c0\",\"type\":\"pci\","
		"\"address\":\"0000:3b:00.0\"}]}";

	(void)state;
	expect(nics, "iommu", NULL, "ok: on");
	expect(mlx, "iommu", NULL, "ok: on");
	put("proc/cmdline", "quiet xiommu=pt\n");
	expect(mlx, "iommu", NULL,
		"warn: on without iommu=pt: a NIC that its kernel driver keeps has every access "
		"translated" IOMMU_MEND);
	take("sys/class/iommu");
	expect(mlx, "iommu", NULL, "ok: off, and no port's device is on vfio");
	expect(nics, "iommu", NULL,
		"fail: off, and a port's device is on vfio, which wants it" IOMMU_MEND);
	put("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
	expect(nics, "iommu", NULL,
		"warn: off, and vfio runs without it (enable_unsafe_noiommu_mode): the NIC may "
		"write anywhere" IOMMU_MEND);
	expect(veth, "iommu", NULL, "ok: off, and no port is a NIC");
}

static void test_cpus(void **state)
{
	(void)state;
	put(CPU "isolated", "\n");
	expect(nics, "isolated", "cpu2",
		"warn: other programs may run on this worker's CPU; isolated are none "
		"[set isolcpus=2 nohz_full=2 in the kernel's command line]");
	/* The kernel takes each list once: it keeps what it has, and has all workers. */
	put(CPU "isolated", "5,7\n");
	put(CPU "nohz_full", "3,7\n");
	put("proc/cmdline", "nohz_full=3,7 isolcpus=managed_irq,domain,5,7 quiet\n");
	expect("{\"lcores\":\"0@0,1@2,2@5,3@3\"}", "isolated", "cpu3",
		"warn: other programs may run on this worker's CPU; isolated are 5,7 "
		"[set isolcpus=managed_irq,domain,5,7,2,3 nohz_full=3,7,2,5 in the kernel's "
		"command line]");
	put("proc/cmdline", "isolcpus=domain;reboot,5\n");
	expect("{\"lcores\":\"0@0,1@3\"}", "isolated", "cpu3",
		"warn: other programs may run on this worker's CPU; isolated are 5,7");
	put("proc/cmdline", "isolcpus=5\n");
	put(CPU "nohz_full", "(null)\n");
	expect("{\"lcores\":\"0@0,1@3\"}", "isolated", "cpu3",
		"warn: other programs may run on this worker's CPU; isolated are 5,7 "
		"[set isolcpus=5,7,3 nohz_full=3 in the kernel's command line]");
	take(CPU "nohz_full");
	put(CPU "isolated", "5;reboot\n");
	expect(nics, "isolated", "cpu2",
		"warn: other programs may run on this worker's CPU; isolated are 5;reboot");
	take(CPU "isolated");
	expect(nics, "isolated", "cpu2", "warn: /sys/devices/system/cpu/isolated cannot be read");
	put(CPU "online", "0-1\n");
	expect(nics, "isolated", "cpu2", "fail: this CPU is not there: online are 0-1");
	expect(nics, "governor", "cpu2", "not made");
	put(CPU "online", "0-7\n");
	put(CPU "cpu2/cpufreq/scaling_governor", "powersave\n");
	expect(nics, "governor", "cpu2",
		"warn: powersave [echo performance > "
		"/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor]");
	take(CPU "cpu2");
	expect(nics, "governor", "cpu2", "ok: none: the kernel does not set this CPU's frequency");
	put(CLOCK "current_clocksource", "hpet\n");
	expect(nics, "clocksource", NULL,
		"warn: hpet: each look at the clock is slower than with tsc [echo tsc > "
		"/sys/devices/system/clocksource/clocksource0/current_clocksource]");
	put(CLOCK "available_clocksource", "hpet tscx\n");
	expect(nics, "clocksource", NULL,
		"warn: hpet; the kernel does not offer tsc, which it, or the hypervisor, found "
		"unsteady");
	take(CLOCK);
	expect(nics, "clocksource", NULL,
		"warn: /sys/devices/system/clocksource/clocksource0/current_clocksource cannot be "
		"read");
	expect("{\"ports\":[{\"name\":\"e0\",\"type\":\"pci\",\"address\":\"0000:5e:00.0\"}]}",
		"isolated", NULL,
		"warn: no worker has a CPU of its own: set \"lcores\" in the configuration, or "
		"\"workers\" to \"auto\"");
	expect("{\"workers\":\"auto\",\"ports\":[{\"name\":\"e0\",\"type\":\"pci\","
	       "\"address\":\"0000:5e:00.0\"}]}",
		"isolated", NULL,
		"ok: the switch chooses CPUs when it starts (\"workers\": \"auto\")");
}

static void test_nics(void **state)
{
	(void)state;
	put_link(E810 "driver", "../../../../bus/pci/drivers/ice");
	expect(nics, "driver", "e0",
		"fail: is ice, must be vfio-pci "
		"[modprobe vfio-pci && dpdk-devbind.py -b vfio-pci 0000:5e:00.0]");
	take(E810 "driver");
	expect(nics, "driver", "e0",
		"fail: is none, must be vfio-pci "
		"[modprobe vfio-pci && dpdk-devbind.py -b vfio-pci 0000:5e:00.0]");
	put_link(CX "driver", "../../../../bus/pci/drivers/vfio-pci");
	expect(nics, "driver", "c0",
		"fail: a ConnectX stays on mlx5_core, is on vfio-pci "
		"[dpdk-devbind.py -b mlx5_core 0000:3b:00.0]");
	/* It would not run on the other's driver: nobody is told to take it from its own. */
	put_link(CX "driver", "../../../../bus/pci/drivers/mlx4_core");
	expect(nics, "driver", "c0",
		"fail: is on mlx4_core: a ConnectX-3 or older, which no driver of the switch has");
	put_link(CX "driver", "../../../../bus/pci/drivers/mlx5_core");
	take("sys/module/ib_uverbs");
	expect(nics, "driver", "c0",
		"fail: kernel module ib_uverbs is not loaded [modprobe ib_uverbs]");
	put(E810 "current_link_width", "8\n");
	expect(nics, "pcie", "e0",
		"warn: x8 at 16.0 GT/s, the device can do x16 at 16.0: another slot, or the "
		"firmware's setting of this one [lspci -vv -s 0000:5e:00.0 | grep -i lnk]");
	put(E810 "numa_node", "0\n");
	put(NODE "node1/distance", "21 10\n");
	expect(nics, "numa", "e0",
		"warn: node 0, the worker on CPU 2 is on node 1, distance 21 (own 10): take a CPU "
		"of /sys/devices/system/node/node0/cpulist in \"lcores\"");
	take(NODE);
	expect(nics, "numa", "e0", "ok: node 0");
	put(E810 "numa_node", "-1\n");
	expect(nics, "numa", "e0", "ok: the device is of no node");
	put("sys/class/net/enp59s0f0np0/mtu", "1500\n");
	expect(nics, "mtu", "c0",
		"fail: the port's is 4200, that of enp59s0f0np0 1500 "
		"[ip link set enp59s0f0np0 mtu 4200]");
	put(E810 "class", "0x010802\n");
	expect(nics, "device", "e0",
		"fail: 0000:5e:00.0 is no network device [lspci -D | grep -i ethernet]");
	expect(nics, "driver", "e0", "not made");
	take(E810);
	expect(nics, "device", "e0",
		"fail: there is no device 0000:5e:00.0 [lspci -D | grep -i ethernet]");
	expect("{\"ports\":[{\"name\":\"e0\",\"type\":\"pci\",\"address\":\"../../x\"}]}", "device",
		"e0", "fail: address ../../x is not as 0000:3b:00.0 [lspci -D | grep -i ethernet]");
}

static void test_interfaces(void **state)
{
	(void)state;
	put("sys/class/net/h0/mtu", "1500\n");
	expect(veth, "mtu-peer", "h0",
		"warn: the port's is 4200, that of h0, its other end, 1500 "
		"[ip link set h0 mtu 4200]");
	take("sys/class/net/h0");
	expect(veth, "mtu-peer", "h0",
		"warn: the other end of sw0 is in another network namespace: ip link show there");
	put("sys/class/net/sw0/iflink", "7\n");
	expect(veth, "mtu-peer", "h0", "not made");
	put("sys/class/net/sw0/mtu", "1500\n");
	expect(veth, "mtu", "h0",
		"fail: the port's is 4200, that of sw0 1500 [ip link set sw0 mtu 4200]");
	take("sys/class/net/sw0");
	expect(veth, "mtu", "h0", "fail: there is no interface sw0 here");
	expect("{\"ports\":[{\"name\":\"t\",\"type\":\"tap\",\"iface\":\"x\"}]}", "driver", "t",
		"fail: /dev/net/tun is not there [modprobe tun]");
}

/* Nothing at all; and what files, folders, links and configurations should not be. */
static void test_hostile(void **state)
{
	static const char *const configs[] = {nics, veth, "{}", "{\"ports\":7,\"port\":[]}",
		"{\"ports\":[1,null,{},{\"port\":{}},{\"type\":\"pci\"},{\"type\":\"af_packet\"}],"
		"\"lcores\":\"(0,1)@2\",\"memory_mb\":\"x\",\"hugepages\":true}",
		"{\"lcores\":\",,@,9@999999999999999999999,1@-4,2@x\",\"ports\":[{\"name\":\"a\","
		"\"type\":\"af_packet\",\"iface\":\"$(reboot)\",\"mtu\":-9}]}"};
	static const char *const files[] = {HUGE "nr_hugepages", HUGE "free_hugepages",
		"proc/mounts", "proc/cmdline", "proc/self/limits", CPU "online", CPU "isolated",
		CPU "nohz_full", CPU "cpu2/cpufreq/scaling_governor", NODE "node0/cpulist",
		NODE "node0/distance", NODE "node1/cpulist", CLOCK "current_clocksource",
		CLOCK "available_clocksource", E810 "vendor", E810 "current_link_speed",
		E810 "max_link_width", E810 "numa_node", "sys/class/net/sw0/mtu",
		"sys/class/net/sw0/iflink", "sys/class/net/h0/ifindex"};
	static const char *const contents[] = {"", "\n", "-", "99999999999999999999999\n",
		"-9223372036854775808\n", "0-99999999999999999999,5-,,-\n", "\033[2J\xff\xfe",
		"Max locked memory", "1e308 GT/s"};
	char big[70000];

	(void)state;
	memset(big, '7', sizeof(big));
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		for (size_t k = 0; k < sizeof(contents) / sizeof(contents[0]); k++) {
			put(files[f], contents[k]);
			json_decref(examine(nics));
			json_decref(examine(veth));
		}
		put_bytes(files[f], big, sizeof(big));
		json_decref(examine(nics));
		put_bytes(files[f], "a\0b", 3);
		json_decref(examine(nics));
		/* A pipe that nobody writes to, a folder, a link to itself. */
		char path[512];
		path_to(path, sizeof(path), files[f]);
		unlink(path);
		assert_int_equal(mkfifo(path, 0600), 0);
		json_decref(examine(nics));
		unlink(path);
		mkdir(path, 0700);
		json_decref(examine(nics));
		rmdir(path);
		put_link(files[f], strrchr(files[f], '/') + 1);
		json_decref(examine(nics));
	}
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
		json_decref(examine(configs[i]));
	/* No order to the terminal, and none to the shell that a command is pasted into. */
	put(CLOCK "current_clocksource", "a\033[2J\xff\x7f\n");
	put(CLOCK "available_clocksource", "");
	expect(NULL, "clocksource", NULL,
		"warn: a?[2J??; the kernel does not offer tsc, which it, or the hypervisor, found "
		"unsteady");
	expect("{\"ports\":[{\"name\":\"a\",\"type\":\"af_packet\",\"iface\":\"$(reboot)\"}]}",
		"mtu", "a", "fail: $(reboot) cannot be the name of an interface");
	take("sys");
	take("proc");
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
		json_decref(examine(configs[i]));
	expect_sum(NULL, "warn", 2, 2, 0);
}

static void test_words(void **state)
{
	(void)state;
	assert_true(tree_in_list("0-3,8,10-11", 3));
	assert_true(tree_in_list("0-3,8,10-11", 8));
	assert_true(tree_in_list("0-3,8,10-11", 11));
	assert_false(tree_in_list("0-3,8,10-11", 9));
	assert_false(tree_in_list("", 0));
	assert_false(tree_in_list("x,1", 1));
	assert_true(tree_has_word("a iommu=pt", "iommu=pt"));
	assert_false(tree_has_word("a iommu=pty xiommu=pt", "iommu=pt"));
}

/* ---- the command ---- */

static int setup_both(void **state)
{
	good_tree(NULL);
	return setup(state);
}

static int teardown_both(void **state)
{
	remove_tree(NULL);
	return teardown(state);
}

static void test_command(void **state)
{
	struct fixture *f = *state;
	char line[256], error[256];

	write_file(f,
		"{\"#\": \"a comment\", \"ports\": [{\"name\": \"h0\", \"type\": \"af_packet\", "
		"\"iface\": \"sw0\"}]}");
	snprintf(line, sizeof(line), "doctor -c %s --root %s", f->file, root);
	run_ok(f, line);
	assert_non_null(strstr(f->out, "verdict  ok\nok       6\nwarn     0\nfail     0\n"));
	assert_non_null(strstr(f->out, "mtu-peer     h0     ok  "));
	take("sys/class/net/sw0");
	assert_int_equal(run(f, line), CLI_FAILED);
	assert_string_equal(f->err, "");
	assert_non_null(strstr(f->out, "there is no interface sw0 here"));
	/* The running switch's, and nobody's. */
	snprintf(line, sizeof(line), "doctor --json --root %s", root);
	run_ok(f, line);
	assert_non_null(strstr(f->out, "\"config\": \"running\""));
	f->down = true;
	run_ok(f, line);
	assert_non_null(strstr(f->out, "\"config\": \"none\""));
	write_file(f, "[]");
	snprintf(line, sizeof(line), "doctor -c %s", f->file);
	snprintf(error, sizeof(error), "error: doctor: %s: must hold one object\n", f->file);
	run_bad(f, line, CLI_FAILED, error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_memory, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_iommu, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_cpus, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_nics, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_interfaces, good_tree, remove_tree),
		cmocka_unit_test_setup_teardown(test_hostile, good_tree, remove_tree),
		cmocka_unit_test(test_words),
		cmocka_unit_test_setup_teardown(test_command, setup_both, teardown_both)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
