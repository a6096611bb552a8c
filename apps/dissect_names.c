/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for what packets say. */
#include "apps/dissect.h"
#include "lib/wire/roce.h"

const char *dissect_syndrome(uint8_t syndrome, char buf[DISSECT_NAME])
{
	static const char *const naks[] = {"sequence error", "invalid request",
		"remote access error", "remote operational error", "invalid RD request"};
	const unsigned value = syndrome & ROCE_AETH_VALUE;

	switch (syndrome & ROCE_AETH_CLASS) {
	case ROCE_AETH_ACK:
		return "ACK";
	case ROCE_AETH_RNR:
		snprintf(buf, DISSECT_NAME, "RNR NAK, %g ms", (double)roce_rnr_ns(value) / 1e6);
		break;
	case ROCE_AETH_NAK:
		snprintf(buf, DISSECT_NAME, "NAK, %s", value < 5 ? naks[value] : "unknown code");
		break;
	default:
		snprintf(buf, DISSECT_NAME, "syndrome 0x%02x", syndrome);
	}
	return buf;
}

const char *dissect_primitive(unsigned prim)
{
	static const char *const prims[] = {"AllReduce", "Reduce", "Broadcast"};

	return prim < 3 ? prims[prim] : "?";
}

const char *dissect_mrc_op(const struct mrc_pkt *m)
{
	static const char *const writes[] = {[MRC_MIDDLE] = "MRC WRITE MIDDLE",
		[MRC_FIRST] = "MRC WRITE FIRST",
		[MRC_LAST] = "MRC WRITE LAST",
		[MRC_ONLY] = "MRC WRITE ONLY"};
	static const char *const kinds[] = {[MRC_KIND_ACK] = "MRC ACK",
		[MRC_KIND_ENDPOINT_REQUEST] = "MRC ENDPOINT REQUEST",
		[MRC_KIND_ENDPOINT_RESPONSE] = "MRC ENDPOINT RESPONSE",
		[MRC_KIND_SACK] = "MRC SACK",
		[MRC_KIND_NACK] = "MRC NACK",
		[MRC_KIND_PROBE] = "MRC PROBE"};

	return m->kind == MRC_KIND_DATA ? writes[m->data.place & 3] : kinds[m->kind];
}

const char *dissect_mark(unsigned mark)
{
	static const char *const marks[] = {"none", "skip once", "always skip", "reserved"};

	return marks[mark & 3];
}

const char *dissect_nack(unsigned reason)
{
	const char *name = mrc_nack_name((uint8_t)reason);

	return name ? name : "unknown";
}

const char *dissect_endpoint_op(unsigned op)
{
	return op == MRC_EV_PROBE ? "EV probe" : "port status";
}

bool dissect_is_trimmed(uint8_t tos)
{
	switch (tos >> 2) {
#define X(sym, name, dscp)                                     \
	case dscp:                                             \
		return MRC_CLASS_##sym == MRC_CLASS_TRIMMED || \
		       MRC_CLASS_##sym == MRC_CLASS_TRIMMED_LAST;
		MRC_CLASSES(X)
#undef X
	}
	return false;
}
