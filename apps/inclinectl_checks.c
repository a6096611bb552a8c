/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine: memory, CPUs, clock, limits. */
#include "apps/inclinectl_checks.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/config.h"
#include "lib/ctl/tree.h"

/* ---- the result ---- */

static const char *const verdicts[] = {"ok", "warn", "fail", NULL};

static const struct ctl_field check_fields[] = {
	{"check", CTL_STRING, .required = true, .help = "what was looked at"},
	{"about", CTL_STRING, .help = "port or CPU that it is about"},
	{"verdict", CTL_STRING, .values = verdicts, .required = true,
		.help = "warn: works, but not as it could, or cannot be told; fail: will not work"},
	{"reason", CTL_STRING, .required = true, .help = "what was found"},
	{"mend", CTL_STRING, .help = "command that mends it"}, {0}};

const struct ctl_field checks_result[] = {
	{"config", CTL_STRING, .required = true,
		.help = "whose: a file, running (the switch's), or none"},
	{"verdict", CTL_STRING, .values = verdicts, .required = true, .help = "the worst"},
	{"ok", CTL_INT, .required = true, .help = "checks that are"},
	{"warn", CTL_INT, .required = true, .help = "checks that are"},
	{"fail", CTL_INT, .required = true, .help = "checks that are"},
	{"checks", CTL_LIST, .item = CTL_OBJECT, .fields = check_fields, .required = true,
		.help = "in the order in which they were made"},
	{0}};

void checks_add(struct checks *c, const char *check, const char *about, enum checks_verdict verdict,
	const char *mend, const char *reason, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, reason);
	vsnprintf(text, sizeof(text), reason, ap);
	va_end(ap);
	json_array_append_new(
		c->list, json_pack("{s:s,s:s*,s:s,s:s,s:s*}", "check", check, "about", about,
				 "verdict", verdicts[verdict], "reason", text, "mend", mend));
}

/* ---- what the configuration says ---- */

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

static void add_port(struct checks *c, const json_t *port, json_int_t mtu)
{
	const json_t *own = json_object_get(port, "mtu");

	if (!json_is_object(port) || c->n_ports == CHECKS_MAX_PORTS)
		return;
	c->port[c->n_ports++] = (struct checks_port){.name = text_of(port, "name"),
		.type = text_of(port, "type"),
		.iface = text_of(port, "iface"),
		.address = text_of(port, "address"),
		.mtu = json_is_integer(own) ? json_integer_value(own) : mtu};
}

/* A switch has "ports"; an RNIC "port", or "ports" with a "port" each, and the MTU outside. */
static void find_ports(struct checks *c)
{
	const json_t *ports = json_object_get(c->config, "ports"), *item;
	const json_int_t dflt = ctl_int(&ctl_port_config, NULL, "mtu");
	size_t i;

	if (json_object_get(c->config, "port")) {
		item = json_object_get(c->config, "mtu");
		add_port(c, json_object_get(c->config, "port"),
			item ? json_integer_value(item) : dflt);
	}
	json_array_foreach(ports, i, item)
	{
		const json_t *inner = json_object_get(item, "port");
		const json_t *mtu = json_object_get(item, "mtu");

		add_port(c, inner ? inner : item, mtu ? json_integer_value(mtu) : dflt);
	}
}

static void add_cpu(struct checks *c, json_int_t cpu)
{
	for (unsigned i = 0; i < c->n_cpus; i++)
		if (c->cpu[i] == cpu)
			return;
	if (cpu >= 0 && cpu < 65536 && c->n_cpus < CHECKS_MAX_CPUS)
		c->cpu[c->n_cpus++] = (int)cpu;
}

/* Those that run; else of "lcores", "0@0,1@2", all but the first. Sets "(1,2)@3" are not read. */
static void find_cpus(struct checks *c, const json_t *workers)
{
	const char *at = text_of(c->config, "lcores");
	const json_t *item;
	size_t i;

	json_array_foreach(workers, i, item)
	{
		const json_t *cpu = json_object_get(item, "cpu");

		if (cpu)
			add_cpu(c, json_integer_value(cpu));
	}
	while (!workers && *at && !strchr(at, '(') && (at = strchr(at, ',')) != NULL) {
		const size_t len = strcspn(++at, ",");
		const char *cpu = memchr(at, '@', len);

		add_cpu(c, strtol(cpu ? cpu + 1 : at, NULL, 10));
	}
}

static bool has_nic(const struct checks *c)
{
	for (unsigned i = 0; i < c->n_ports; i++)
		if (!strcmp(c->port[i].type, "pci"))
			return true;
	return false;
}

/* ---- memory ---- */

enum { MAX_SIZES = 8 };

/* Sizes of pages that this kernel has, in names; negative: it has none. */
static int hugepage_sizes(const char *root, char (*names)[TREE_NAME], int64_t *kb)
{
	const int n = tree_names(root, names, MAX_SIZES, "/sys/kernel/mm/hugepages");

	for (int i = 0; i < n; i++)
		if (sscanf(names[i], "hugepages-%" SCNd64 "kB", &kb[i]) != 1 || kb[i] < 1 ||
			kb[i] > 1 << 30)
			kb[i] = 0;
	return n;
}

static bool hugepage_count(const char *root, const char *size, const char *which, int64_t *pages)
{
	return !tree_number(root, pages, "/sys/kernel/mm/hugepages/%s/%s", size, which) &&
	       *pages >= 0 && *pages < 1 << 30;
}

static int64_t hugepages_mb(const char *root, const char *which)
{
	char sizes[MAX_SIZES][TREE_NAME];
	int64_t mb = 0, kb[MAX_SIZES], pages;
	const int n = hugepage_sizes(root, sizes, kb);

	for (int i = 0; i < n; i++)
		if (kb[i] && hugepage_count(root, sizes[i], which, &pages))
			mb += pages * kb[i] / 1024;
	return n < 0 ? n : mb;
}

/* The command that reserves so many MB more, in the smallest pages. It writes a sum: what others
 * have reserved stays. "": there is none. */
static void more_hugepages(const char *root, int64_t mb, char *mend, size_t cap)
{
	char sizes[MAX_SIZES][TREE_NAME];
	int64_t kb[MAX_SIZES], pages;
	const int n = hugepage_sizes(root, sizes, kb);
	int best = -1;

	mend[0] = '\0';
	for (int i = 0; i < n; i++)
		if (kb[i] && (best < 0 || kb[i] < kb[best]))
			best = i;
	if (best >= 0 && hugepage_count(root, sizes[best], "nr_hugepages", &pages))
		snprintf(mend, cap,
			"echo %" PRId64 " > /sys/kernel/mm/hugepages/hugepages-%" PRId64
			"kB/nr_hugepages",
			pages + (mb * 1024 + kb[best] - 1) / kb[best], kb[best]);
}

/* Whether pages can be mapped. Where that cannot be told nobody is told to mount over what is. */
static void hugetlbfs(struct checks *c, int64_t all, int64_t need)
{
	enum { CAP = 1 << 20 };
	char *mounts = malloc(CAP);
	const bool known = mounts && !tree_text(c->root, mounts, CAP, "/proc/mounts");

	if (known && tree_has_word(mounts, "hugetlbfs"))
		checks_add(c, "hugepages", NULL, CHECKS_OK, NULL,
			"%" PRId64 " MB are reserved, memory_mb is %" PRId64, all, need);
	else if (!known || strlen(mounts) == CAP - 1)
		checks_add(c, "hugepages", NULL, CHECKS_WARN, NULL,
			"%" PRId64 " MB are reserved; /proc/mounts does not say whether hugetlbfs "
			"is mounted",
			all);
	else
		checks_add(c, "hugepages", NULL, CHECKS_FAIL,
			"mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages",
			"%" PRId64 " MB are reserved, but no hugetlbfs is mounted", all);
	free(mounts);
}

/* memory_mb, whatever a file that nobody has checked says. */
static int64_t memory_mb(const struct checks *c)
{
	const json_t *memory = json_object_get(c->config, "memory_mb");
	const int64_t mb = memory ? json_integer_value(memory) : 256;

	return mb < 0 ? 0 : mb > 1 << 20 ? 1 << 20 : mb;
}

static void hugepages(struct checks *c)
{
	const bool wanted = json_is_true(json_object_get(c->config, "hugepages"));
	const int64_t need = memory_mb(c);
	const int64_t all = hugepages_mb(c->root, "nr_hugepages");
	/* A page may be free and yet promised to who has mapped it. */
	const int64_t unused =
		hugepages_mb(c->root, "free_hugepages") - hugepages_mb(c->root, "resv_hugepages");
	char mend[160];

	more_hugepages(c->root, need - (c->running || all < 0 ? all : unused), mend, sizeof(mend));
	if (!wanted && has_nic(c))
		checks_add(c, "hugepages", NULL, CHECKS_WARN, NULL,
			"the configuration has a NIC and not \"hugepages\": true: packets lie in "
			"pages of 4 KB");
	else if (!wanted)
		checks_add(c, "hugepages", NULL, CHECKS_OK, NULL, "not asked for");
	else if (all < 0)
		checks_add(c, "hugepages", NULL, CHECKS_FAIL, NULL,
			"/sys/kernel/mm/hugepages cannot be read: the kernel has none");
	else if (all < need)
		checks_add(c, "hugepages", NULL, CHECKS_FAIL, mend[0] ? mend : NULL,
			"%" PRId64 " MB are reserved, memory_mb is %" PRId64, all, need);
	else if (!c->running && unused < need)
		checks_add(c, "hugepages", NULL, CHECKS_FAIL, mend[0] ? mend : NULL,
			"%" PRId64 " of %" PRId64 " MB are free, memory_mb is %" PRId64, unused,
			all, need);
	else
		hugetlbfs(c, all, need);
}

static void memory_lock(struct checks *c)
{
	const int64_t need = memory_mb(c);
	const char *mend = "ulimit -l unlimited # of a unit: LimitMEMLOCK=infinity";
	char text[4096], soft[32] = "";
	const char *line;

	if (tree_text(c->root, text, sizeof(text), "/proc/self/limits") ||
		!(line = strstr(text, "Max locked memory")) ||
		sscanf(line, "Max locked memory %31s", soft) != 1) {
		checks_add(c, "memory-lock", NULL, CHECKS_WARN, mend,
			"/proc/self/limits does not say how much memory may be locked");
		return;
	}
	const bool unlimited = !strcmp(soft, "unlimited");
	const int64_t mb = strtoll(soft, NULL, 10) / (1 << 20);
	if (!has_nic(c))
		checks_add(c, "memory-lock", NULL, CHECKS_OK, NULL,
			"%s bytes, and no port is a NIC", soft);
	else if (unlimited || mb >= need)
		checks_add(c, "memory-lock", NULL, CHECKS_OK, NULL, "%s",
			unlimited ? "unlimited" : soft);
	else
		checks_add(c, "memory-lock", NULL, CHECKS_WARN, mend,
			"%" PRId64 " MB may be locked by who asks here, memory_mb is %" PRId64
			": NICs want all of it, unless the process has CAP_IPC_LOCK",
			mb, need);
}

static void iommu(struct checks *c)
{
	static const char mend[] = "add intel_iommu=on (or amd_iommu=on) and iommu=pt to the "
				   "kernel's command line";
	char units[MAX_SIZES][TREE_NAME], line[4096], unsafe[16] = "";
	const bool on = tree_names(c->root, units, MAX_SIZES, "/sys/class/iommu") > 0;
	bool vfio = false;

	for (unsigned i = 0; i < c->n_ports; i++)
		vfio |= checks_port_is_vfio(c, &c->port[i]);
	tree_line(c->root, unsafe, sizeof(unsafe),
		"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
	tree_line(c->root, line, sizeof(line), "/proc/cmdline");
	const bool through =
		tree_has_word(line, "iommu=pt") || tree_has_word(line, "iommu.passthrough=1");
	if (!has_nic(c))
		checks_add(c, "iommu", NULL, CHECKS_OK, NULL, "%s, and no port is a NIC",
			on ? "on" : "off");
	else if (!on && vfio && unsafe[0] != 'Y')
		checks_add(c, "iommu", NULL, CHECKS_FAIL, mend,
			"off, and a port's device is on vfio, which wants it");
	else if (!on && vfio)
		checks_add(c, "iommu", NULL, CHECKS_WARN, mend,
			"off, and vfio runs without it (enable_unsafe_noiommu_mode): the NIC may "
			"write anywhere");
	else if (!on || vfio || through)
		checks_add(c, "iommu", NULL, CHECKS_OK, NULL, "%s",
			!on ? "off, and no port's device is on vfio" : "on");
	else
		checks_add(c, "iommu", NULL, CHECKS_WARN, mend,
			"on without iommu=pt: a NIC that its kernel driver keeps has every access "
			"translated");
}

/* ---- CPUs ---- */

/* A list of CPUs as it is now, and all workers' CPUs. False: it is no list, or has no room. */
static bool with_workers(const struct checks *c, const char *now, char list[256])
{
	const int cap = 256;
	int len = snprintf(list, (size_t)cap, "%s", now);

	for (unsigned i = 0; i < c->n_cpus && len < cap; i++)
		if (!tree_in_list(now, c->cpu[i]))
			len += snprintf(
				list + len, (size_t)(cap - len), "%s%d", len ? "," : "", c->cpu[i]);
	return len < cap && strspn(list, "0123456789,-") == (size_t)len;
}

/* What isolcpus= has before its list now, each with its comma ("managed_irq,domain,"). False: there
 * is no room for it. */
static bool isolcpus_flags(const struct checks *c, char flags[64])
{
	static const char word[] = "isolcpus=";
	char line[4096] = " ";
	const char *at, *end;

	flags[0] = '\0';
	tree_line(c->root, line + 1, sizeof(line) - 1, "/proc/cmdline");
	at = strstr(line, " isolcpus=");
	if (at == NULL)
		return true;
	at += sizeof(word);
	for (end = at; islower((unsigned char)*end);) {
		end += strspn(end, "abcdefghijklmnopqrstuvwxyz_");
		if (*end++ != ',')
			return false;
	}
	if (end - at >= 64)
		return false;
	snprintf(flags, 64, "%.*s", (int)(end - at), at);
	return true;
}

/* What the kernel's command line should say: it takes each of them once, so that is what they have
 * now, and all workers' CPUs. "": that cannot be told, or has no room. */
static void isolation(const struct checks *c, const char *isolated, char *mend, size_t cap)
{
	char nohz[1024] = "", flags[64], list[2][256];

	/* Without CPUs the kernel says "(null)", or nothing. */
	if (tree_line(c->root, nohz, sizeof(nohz), "/sys/devices/system/cpu/nohz_full") < 0 ||
		!strcmp(nohz, "(null)"))
		nohz[0] = '\0';
	mend[0] = '\0';
	if (with_workers(c, isolated, list[0]) && with_workers(c, nohz, list[1]) &&
		isolcpus_flags(c, flags))
		snprintf(mend, cap, "set isolcpus=%s%s nohz_full=%s in the kernel's command line",
			flags, list[0], list[1]);
}

/* false: there is no such CPU. */
static bool cpu_isolated(struct checks *c, int cpu, const char *about)
{
	char isolated[1024], online[1024], mend[700];
	const bool known =
		!tree_line(c->root, isolated, sizeof(isolated), "/sys/devices/system/cpu/isolated");

	isolation(c, isolated, mend, sizeof(mend));
	if (!tree_line(c->root, online, sizeof(online), "/sys/devices/system/cpu/online") &&
		!tree_in_list(online, cpu)) {
		checks_add(c, "isolated", about, CHECKS_FAIL, NULL,
			"this CPU is not there: online are %.200s", online);
		return false;
	}
	if (!known)
		checks_add(c, "isolated", about, CHECKS_WARN, NULL,
			"/sys/devices/system/cpu/isolated cannot be read");
	else if (!tree_in_list(isolated, cpu))
		checks_add(c, "isolated", about, CHECKS_WARN, mend[0] ? mend : NULL,
			"other programs may run on this worker's CPU; isolated are %.200s",
			isolated[0] ? isolated : "none");
	else
		checks_add(c, "isolated", about, CHECKS_OK, NULL, "isolated");
	return true;
}

static void cpu_governor(struct checks *c, int cpu, const char *about)
{
	char governor[64], mend[128];

	snprintf(mend, sizeof(mend),
		"echo performance > /sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
	if (tree_line(c->root, governor, sizeof(governor),
		    "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
		checks_add(c, "governor", about, CHECKS_OK, NULL,
			"none: the kernel does not set this CPU's frequency");
	else if (strcmp(governor, "performance") != 0)
		checks_add(c, "governor", about, CHECKS_WARN, mend, "%s", governor);
	else
		checks_add(c, "governor", about, CHECKS_OK, NULL, "performance");
}

static void cpus(struct checks *c)
{
	char about[24];

	if (!c->n_cpus && strcmp(text_of(c->config, "workers"), "auto") == 0)
		checks_add(c, "isolated", NULL, CHECKS_OK, NULL,
			"the switch chooses CPUs when it starts (\"workers\": \"auto\")");
	else if (!c->n_cpus && has_nic(c))
		checks_add(c, "isolated", NULL, CHECKS_WARN, NULL,
			"no worker has a CPU of its own: set \"lcores\" in the configuration, or "
			"\"workers\" to \"auto\"");
	for (unsigned i = 0; i < c->n_cpus; i++) {
		snprintf(about, sizeof(about), "cpu%d", c->cpu[i]);
		if (cpu_isolated(c, c->cpu[i], about))
			cpu_governor(c, c->cpu[i], about);
	}
}

static void clocksource(struct checks *c)
{
	static const char dir[] = "/sys/devices/system/clocksource/clocksource0";
	char now[64], others[256] = "";

	tree_line(c->root, others, sizeof(others), "%s/available_clocksource", dir);
	if (tree_line(c->root, now, sizeof(now), "%s/current_clocksource", dir))
		checks_add(c, "clocksource", NULL, CHECKS_WARN, NULL,
			"%s/current_clocksource cannot be read", dir);
	else if (!strcmp(now, "tsc"))
		checks_add(c, "clocksource", NULL, CHECKS_OK, NULL, "tsc");
	else if (tree_has_word(others, "tsc"))
		checks_add(c, "clocksource", NULL, CHECKS_WARN,
			"echo tsc > /sys/devices/system/clocksource/clocksource0/"
			"current_clocksource",
			"%s: each look at the clock is slower than with tsc", now);
	else
		checks_add(c, "clocksource", NULL, CHECKS_WARN, NULL,
			"%s; the kernel does not offer tsc, which it, or the hypervisor, found "
			"unsteady",
			now);
}

/* ---- all of it ---- */

json_t *checks_run(const struct checks_about *about)
{
	struct checks *c = calloc(1, sizeof(*c));
	unsigned count[3] = {0};
	json_t *item, *out;
	size_t i;

	if (!c)
		return NULL;
	*c = (struct checks){.root = about->root,
		.config = about->config,
		.running = about->workers != NULL,
		.list = json_array()};
	find_ports(c);
	find_cpus(c, about->workers);
	hugepages(c);
	memory_lock(c);
	iommu(c);
	cpus(c);
	clocksource(c);
	checks_ports(c);
	json_array_foreach(c->list, i, item)
	{
		for (unsigned v = CHECKS_OK; v <= CHECKS_FAIL; v++)
			count[v] += !strcmp(verdicts[v], text_of(item, "verdict"));
	}
	out = json_pack("{s:s,s:i,s:i,s:i,s:o}", "verdict",
		verdicts[count[CHECKS_FAIL]   ? CHECKS_FAIL
			 : count[CHECKS_WARN] ? CHECKS_WARN
					      : CHECKS_OK],
		"ok", count[CHECKS_OK], "warn", count[CHECKS_WARN], "fail", count[CHECKS_FAIL],
		"checks", c->list);
	free(c);
	return out;
}
