/* SPDX-License-Identifier: BSD-3-Clause */
/* How large a group is made: mode, M, W and slots from bandwidth-delay product, loss and what
 * switches offer (EPIC F.3, F.4, section 6.1; the memory itself as docs/inc-protocol.md has it:
 * Mode-II a ring of 2 M W slots, Mode-III two rings of twice the hop's product, Mode-I W + 2
 * messages per endpoint and 2 W more). Heights are links from a rank to the root of the tree: H - 1
 * in the paper. Pure. */
#ifndef MGR_SIZE_H
#define MGR_SIZE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MGR_MAX_WINDOW = 32768, /* packets: M W */
	MGR_MAX_SLOTS = 65536,
	MGR_MAX_CHILDREN = 63,
	MGR_MAX_HEIGHT = 4, /* levels of switches */
	MGR_PPM = 1000000,
};

/* What a job's packets and the fabric are like. */
struct mgr_shape {
	unsigned mtu;      /* payload bytes of a full packet, 256 to 4096 */
	unsigned m;        /* packets per message; 0: MGR_DEFAULT_M */
	uint64_t hop_ns;   /* one link and one switch, one way; above 0 */
	unsigned loss_ppm; /* of packets, per hop */
	bool reproducible; /* add in endpoint order */
	bool half;         /* fp16 and bf16 too, which are summed in fp32 */
};

enum { MGR_DEFAULT_M = 4 };

struct mgr_size {
	unsigned mode; /* one of MGR_MODE_I, _II, _III (lib/mgr/graph.h) */
	unsigned m, w, slots;
};

/* -EINVAL: something out of range. */
int mgr_shape_check(const struct mgr_shape *s);

/* The least size that carries this rate over a tree of this height. -ERANGE: no window is large
 * enough. */
int mgr_size_for(const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bps,
	struct mgr_size *out);

/* Memory on a switch with so many endpoints. */
uint64_t mgr_size_bytes(const struct mgr_shape *s, const struct mgr_size *size, unsigned n_ep);

/* The highest rate for which a switch with so many endpoints and so much memory suffices; 0: none.
 */
uint64_t mgr_size_rate(
	const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bytes, unsigned n_ep);

/* What is left of a rate when packets get lost (F.4, with F(r) = r): each hop costs Modes I and III
 * once, Mode-II once per child. */
uint64_t mgr_size_goodput(
	const struct mgr_shape *s, unsigned mode, unsigned height, unsigned children, uint64_t bps);

/* "I", "II", "III" */
const char *mgr_mode_name(unsigned mode);

#endif
