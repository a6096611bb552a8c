/* SPDX-License-Identifier: BSD-3-Clause */
/* Every number of MRC that the public texts leave open, once: its default, its limits, how sure it
 * is (docs/mrc.md: KNOWN, LIKELY, CHOSEN) and where the rules speak of it. Of this table are made
 * the "mrc" object of an RNIC's file with its checks (lib/ctl/rnic_config.c), what a device is
 * opened with (transport.h), the defaults of the mechanisms beside this file, and the tables of
 * docs/mrc.md and docs/rnic-config.md. Layouts of packets are not here: they are a codec's
 * (lib/wire/mrc.h). */
#ifndef MRC_SETTINGS_H
#define MRC_SETTINGS_H

#include <stdint.h>

/* X(name, unit, default, least, most, mark, section, meaning), of a device. Numbers are literals.
 */
#define MRC_WIRE_SETTINGS(X)                                                                      \
	X(udp_port, "", 4791, 1, 65535, LIKELY, "2.1",                                            \
		"UDP destination port; 4791 is taken in any case")                                \
	X(ev_order, "", 0, 0, 1, CHOSEN, "6.1",                                                   \
		"0: the EV's upper half is in the flow label, its lower half the UDP source "     \
		"port; 1: the reverse")                                                           \
	X(hop_limit, "hops", 64, 1, 255, CHOSEN, "2.1",                                           \
		"TTL of endpoint requests and responses; a queue pair's is its address vector's") \
	X(dscp_no_trim, "", 0, 0, 63, CHOSEN, "2.2", "of data that switches must not trim")       \
	X(dscp_trimmable, "", 4, 0, 63, CHOSEN, "2.2", "of first transmissions")                  \
	X(dscp_trimmable_retx, "", 8, 0, 63, CHOSEN, "2.2",                                       \
		"of retransmissions that may be trimmed")                                         \
	X(dscp_trimmed, "", 12, 0, 63, CHOSEN, "2.2", "that a switch writes when it trims")       \
	X(dscp_trimmed_lasthop, "", 16, 0, 63, CHOSEN, "2.2",                                     \
		"the same, on the port that faces the receiver")                                  \
	X(dscp_control, "", 46, 0, 63, CHOSEN, "2.2", "of SACK, NACK, ACK, endpoint responses")   \
	X(wimm_syndrome, "", 101, 100, 127, CHOSEN, "3.9",                                        \
		"AETH syndrome of a NAK for more immediates than are held: none of RoCE's own")

#define MRC_TIME_SETTINGS(X)                                                                    \
	X(base_rtt_us, "us", 200, 1, 1000000, CHOSEN, "9.2",                                    \
		"round trip of an idle fabric, in which its timers count")                      \
	X(mbps, "Mb/s", 25000, 1, 16000000, CHOSEN, "9.2",                                      \
		"rate of all ports together, for congestion control")                           \
	X(stamps_us, "us", 8000, 1, 8300, CHOSEN, "3.3",                                        \
		"reflected time stamps of older packets are not believed; 1: none is, where a " \
		"round trip can pass 4 ms")                                                     \
	X(sack_bytes, "bytes", 16384, 256, 16777216, CHOSEN, "5.2",                             \
		"a SACK for so many that arrived")                                              \
	X(sack_least_bytes, "bytes", 1024, 1, 65535, CHOSEN, "5.2",                             \
		"as which a smaller packet counts there")                                       \
	X(guard_rtts, "base RTTs", 1, 0, 1000, CHOSEN, "5.2",                                   \
		"a SACK so long after an arrival that had none; 0: never")                      \
	X(oor_rtts, "base RTTs", 1, 0, 1000, CHOSEN, "5.1",                                     \
		"at most one NACK of PSNs beyond the window in so long; 0: none, they are "     \
		"dropped silently")                                                             \
	X(later_rtts, "base RTTs", 1, 1, 1000, CHOSEN, "3.6",                                   \
		"after which a packet goes again that the responder had no room for")           \
	X(tail_rtts, "RTTs", 1, 1, 1000, CHOSEN, "5.5",                                         \
		"as measured (base RTTs before the first is), after which the oldest packet "   \
		"goes again where nothing is left to send that would tell of it, or a probe "   \
		"asks about it; then after 2, 4, up to late_rtts")                              \
	X(tail_again, "packets", 8, 0, 255, CHOSEN, "5.5",                                      \
		"on their way, and the oldest goes again; more, and a probe asks")              \
	X(late_rtts, "base RTTs", 4, 1, 1000, CHOSEN, "5.5",                                    \
		"after which what a SACK misses is lost, whatever came on its path: longer "    \
		"than a queue holds it; and silence after which a probe asks in any case")      \
	X(tail_probes, "probes", 8, 1, 255, CHOSEN, "5.5",                                      \
		"in a row that nobody answers, or repetitions of a packet; then the timeout "   \
		"is waited for")                                                                \
	X(loss_percent, "% of cwnd", 150, 10, 1000, CHOSEN, "5.5",                              \
		"worth of packets sent later that have arrived: a packet is lost")              \
	X(loss_least, "packets", 5, 1, 1024, CHOSEN, "5.5", "of these at least")

#define MRC_PATH_SETTINGS(X)                                                                      \
	X(auto_evs, "EVs", 128, 8, 256, CHOSEN, "6.3",                                            \
		"of a queue pair to which nobody gives any")                                      \
	X(active_evs, "EVs", 128, 8, 256, CHOSEN, "6.4", "of a set; the rest is backup")          \
	X(probe_cap_ms, "ms", 100, 1, 60000, CHOSEN, "6.5",                                       \
		"longest time between probes of a bad EV")                                        \
	X(probes_to_return, "probes", 3, 1, 255, CHOSEN, "6.5",                                   \
		"answered in a row, and a bad EV is good again")                                  \
	X(reverse_silent, "probes", 3, 1, 255, CHOSEN, "6.6",                                     \
		"of reverse paths in a row that nobody answers: the plane carries no words")      \
	X(status_rtts, "base RTTs", 8, 1, 1000, CHOSEN, "7",                                      \
		"until a port status update that nobody answers is repeated, then twice as long") \
	X(status_cap_ms, "ms", 100, 1, 60000, CHOSEN, "7", "longest time until that")             \
	X(status_again_ms, "ms", 1000, 1, 60000, CHOSEN, "7",                                     \
		"between updates that are answered, while a port is down")                        \
	X(answers_per_s, "1/s", 100000, 1, 1000000000, CHOSEN, "7",                               \
		"endpoint requests that are answered")                                            \
	X(answers_burst, "requests", 256, 1, 65535, CHOSEN, "7", "of them at once")

#define MRC_NSCC_SETTINGS(X)                                                                       \
	X(nscc_adjust_mtus, "MTUs", 8, 1, 1000, KNOWN, "9.2", "adjust_bytes_threshold is so many") \
	X(nscc_alpha_permille, "1/1000", 4000, 1, 1000000, KNOWN, "9.2",                           \
		"alpha is so much of scaling_a * scaling_b * MTU / target_delay")                  \
	X(nscc_eta_permille, "1/1000", 150, 1, 1000000, KNOWN, "9.2",                              \
		"eta is so much of MTU * scaling_a")                                               \
	X(nscc_fi_permille, "1/1000", 5000, 1, 1000000, KNOWN, "9.2",                              \
		"fi is so much of MTU * scaling_a")                                                \
	X(nscc_fi_scale_permille, "1/1000", 250, 1, 1000000, KNOWN, "9.2",                         \
		"fi_scale is so much of scaling_a")                                                \
	X(nscc_gamma_permille, "1/1000", 800, 1, 1000, KNOWN, "9.2", "gamma")                      \
	X(nscc_md_permille, "1/1000", 500, 1, 1000, KNOWN, "9.2", "max_md_jump")                   \
	X(nscc_cwnd_permille, "1/1000", 1500, 1, 1000000, KNOWN, "9.2",                            \
		"max_cwnd is so much of the BDP")                                                  \
	X(nscc_qa_gate, "shift", 3, 1, 31, KNOWN, "9.2", "qa_gate")                                \
	X(nscc_qa_targets, "target_delay", 4, 1, 1000, KNOWN, "9.2", "qa_threshold is so many")    \
	X(nscc_target_permille, "1/1000", 1000, 1, 1000000, KNOWN, "9.2",                          \
		"target_delay is so much of the base RTT")                                         \
	X(nscc_target_trim_permille, "1/1000", 750, 1, 1000000, KNOWN, "9.2",                      \
		"the same where switches trim")                                                    \
	X(nscc_fast_ns, "ns", 1000, 1, 1000000000, KNOWN, "9.4",                                   \
		"delay below which the window grows fast")                                         \
	X(nscc_low_bytes, "bytes", 16384, 1, 1073741824, KNOWN, "9.4",                             \
		"window below which every packet asks for a SACK")                                 \
	X(nscc_shared, "", 0, 0, 1, CHOSEN, "9",                                                   \
		"1: queue pairs between two addresses share a window, those with the parameters "  \
		"of the first")

#define MRC_SETTINGS(X)      \
	MRC_WIRE_SETTINGS(X) \
	MRC_TIME_SETTINGS(X) \
	MRC_PATH_SETTINGS(X) \
	MRC_NSCC_SETTINGS(X)

/* The same of what the API sets of a queue pair (its names; docs/libmrc.md): what holds that nobody
 * sets, and the limits. */
#define MRC_QP_SETTINGS(X)                                                                  \
	X(mpr, "128 packets", 8, 1, 255, CHOSEN, "5.1", "mpr and mpr_dest")                 \
	X(max_wimm, "immediates", 32, 1, 1024, CHOSEN, "5.4", "max_wimm and max_wimm_dest") \
	X(timeout, "1.024 us << n", 12, 0, 24, CHOSEN, "5.5", "0 is the default")           \
	X(linear_cnt, "tries", 7, 0, 7, CHOSEN, "5.5", "timeouts of that length")           \
	X(exp_cnt, "doublings", 7, 0, 25, CHOSEN, "5.5", "of it, after those; 25: for ever")

enum {
#define X(name, unit, dflt, least, most, mark, section, help) \
	MRC_DFLT_##name = dflt, MRC_LEAST_##name = least, MRC_MOST_##name = most,
	MRC_SETTINGS(X) MRC_QP_SETTINGS(X)
#undef X
};

struct mrc_settings {
#define X(name, unit, dflt, least, most, mark, section, help) uint32_t name;
	MRC_SETTINGS(X)
#undef X
};

static inline struct mrc_settings mrc_settings_default(void)
{
	return (struct mrc_settings){
#define X(name, unit, dflt, least, most, mark, section, help) .name = dflt,
		MRC_SETTINGS(X)
#undef X
	};
}

/* 0, or -EINVAL: the first field that is out of its limits, or a DSCP by which a packet that no
 * switch has trimmed would seem to be, has the name *field; *other has that of the DSCP that it is
 * the same as, NULL for limits. Both may be NULL. */
int mrc_settings_check(const struct mrc_settings *s, const char **field, const char **other);

#endif
