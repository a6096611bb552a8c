/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done to the bytes of a frame on its way: hashed, marked. */
#include "lib/sim/priv.h"
#include "lib/wire/mrc.h"

/* Where the BTH of a RoCEv2 frame is; 0: it is none. */
static unsigned bth_of(const struct sim_frame *f)
{
	const uint8_t *d = f->data;
	unsigned udp;

	if (f->len < 62 || d[12] == 0x81)
		return 0;
	udp = d[12] == 0x08 ? 34 : 54;
	return d[udp + 2] == 0x12 && d[udp + 3] == 0xb7 ? udp + 8 : 0;
}

/* RETH and AtomicETH begin with an address of this process's memory. */
static bool has_address(uint8_t opcode)
{
	switch (opcode) {
	case ROCE_WRITE_FIRST:
	case ROCE_WRITE_ONLY:
	case ROCE_WRITE_ONLY_IMM:
	case ROCE_READ_REQUEST:
	case ROCE_CMP_SWAP:
	case ROCE_FETCH_ADD:
		return true;
	default:
		return false;
	}
}

/* What MRC's switches let go ahead (docs/mrc.md, 2.2). */
static bool is_control(const struct sim_frame *f)
{
	const unsigned tc = f->len < 54 || f->data[12] != 0x86 || f->data[13] != 0xdd
				    ? 0
				    : (f->data[14] & 0xfu) << 4 | f->data[15] >> 4;

	switch (tc >> 2) {
	case MRC_DSCP_CONTROL:
	case MRC_DSCP_TRIMMED:
	case MRC_DSCP_TRIMMED_LAST:
		return true;
	default:
		return false;
	}
}

bool sim_is_answer(const struct sim_frame *f)
{
	const unsigned bth = bth_of(f);

	return is_control(f) ||
	       (bth && (f->data[bth] == ROCE_CNP || (f->data[bth] & ROCE_OP_MASK) == ROCE_ACK));
}

static void mix(struct sim *sim, uint64_t v)
{
	uint64_t h = sim->hash ^ v;

	sim->hash = sim_random(&h);
}

void sim_hash_frame(struct sim *sim, unsigned link, const struct sim_frame *f)
{
	enum { BTH = 12, ADDRESS = 8, CRC = 4 };
	const unsigned bth = bth_of(f);
	uint32_t crc;

	if (bth && f->len >= bth + BTH + ADDRESS + CRC && has_address(f->data[bth])) {
		const unsigned rest = bth + BTH + ADDRESS;

		crc = icrc_append(0, f->data, bth + BTH);
		crc = icrc_append(crc, f->data + rest, f->len - rest - CRC);
	} else {
		crc = icrc_append(0, f->data, f->len);
	}
	mix(sim, sim->now);
	mix(sim, (uint64_t)link << 32 | crc);
}

void sim_hash_bytes(struct sim *sim, unsigned where, const char *data, size_t len)
{
	mix(sim, sim->now);
	mix(sim, ~((uint64_t)where << 32 | icrc_append(0, (const uint8_t *)data, len)));
}

/* ECT becomes CE; what is not ECN-capable stays (its queue does not drop it for that). */
void sim_mark_ce(uint8_t *d, unsigned len)
{
	if (len >= 34 && d[12] == 0x08 && d[13] == 0 && (d[15] & IP_ECN_MASK)) {
		uint32_t sum =
			(uint32_t)(d[24] << 8 | d[25]) + (d[15] & IP_ECN_MASK) + 0xffff - IP_ECN_CE;

		d[15] |= IP_ECN_CE;
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		d[24] = (uint8_t)(sum >> 8);
		d[25] = (uint8_t)sum;
	} else if (len >= 54 && d[12] == 0x86 && d[13] == 0xdd && (d[15] & 0x30)) {
		d[15] |= 0x30;
	}
}
