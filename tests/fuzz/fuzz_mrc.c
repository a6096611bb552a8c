/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as what follows a UDP header, whole and trimmed: MRC's codec. The first byte of an
 * input says whether a switch has trimmed the packet. */
#include <string.h>

#include "lib/wire/mrc.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_PACKET = 128, ICRC_LEN = 4 };

static const struct mrc_codec *const codec = &mrc_codec_ocp_r1;

static const struct mrc_pkt seeds[] = {
	{.kind = MRC_KIND_DATA, .data = {.place = MRC_FIRST, .dqpn = 9, .pay_len = 4}},
	{.kind = MRC_KIND_DATA, .data = {.place = MRC_MIDDLE, .dqpn = 9, .has_ts = true}},
	{.kind = MRC_KIND_DATA,
		.data = {.place = MRC_ONLY, .has_imm = true, .dqpn = 9, .pay_len = 7}},
	{.kind = MRC_KIND_ACK, .ack = {.dqpn = 9, .syndrome = MRC_SYNDROME_ACK}},
	{.kind = MRC_KIND_ENDPOINT_REQUEST, .endpoint = {.op = MRC_EV_PROBE}},
	{.kind = MRC_KIND_ENDPOINT_RESPONSE, .endpoint = {.op = MRC_EV_PROBE}},
	{.kind = MRC_KIND_SACK, .sack = {.dqpn = 9, .bitmap = 5}},
	{.kind = MRC_KIND_NACK, .nack = {.dqpn = 9, .reason = MRC_NACK_TRIMMED}},
	{.kind = MRC_KIND_PROBE, .probe = {.dqpn = 9, .id = 3}},
};
enum { N_SEEDS = sizeof(seeds) / sizeof(*seeds) };

/* Every seed whole and trimmed. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	const struct mrc_pkt *pkt;
	int len;

	if (i >= 2 * N_SEEDS || cap < MAX_PACKET)
		return 0;
	pkt = &seeds[i / 2];
	memset(out, 0, MAX_PACKET);
	out[0] = i & 1;
	len = codec->encode(pkt, out + 1, cap - 1);
	fuzz_check(len > 0, "a seed encodes");
	if (pkt->kind == MRC_KIND_DATA)
		len += (pkt->data.pay_len + 3) & ~3;
	return (size_t)len + 1 + ICRC_LEN;
}

/* What a whole packet says is what its structure builds again, reserved fields apart. */
static void rebuild(const struct mrc_pkt *pkt)
{
	uint8_t bytes[MAX_PACKET] = {0}, twice[MRC_MAX_HEADERS];
	struct mrc_pkt again;
	size_t pay = 0;
	int len;

	if (pkt->kind == MRC_KIND_SACK && pkt->sack.mark > MRC_ALWAYS_SKIP)
		return; /* reserved: read, never written */
	if (pkt->kind == MRC_KIND_ENDPOINT_RESPONSE && pkt->endpoint.op > MRC_EV_PROBE)
		return;
	if (pkt->kind == MRC_KIND_DATA) {
		pay = (pkt->data.pay_len + 3u) & ~3u;
		if (pay > sizeof(bytes) - MRC_MAX_HEADERS - ICRC_LEN)
			return;
	}
	len = codec->encode(pkt, bytes, sizeof(bytes));
	fuzz_check(len > 0, "what was read can be written");
	fuzz_check(codec->decode(bytes, (size_t)len + pay + ICRC_LEN, false, &again) == MRC_OK,
		"and read again");
	fuzz_check(again.kind == pkt->kind && again.pay_off == pkt->pay_off &&
			   codec->encode(&again, twice, sizeof(twice)) == len &&
			   memcmp(bytes, twice, (size_t)len) == 0,
		"as the same packet");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mrc_pkt pkt;
	enum mrc_drop drop;
	bool trimmed;

	if (size == 0)
		return 0;
	trimmed = data[0] & 1;
	drop = codec->decode(data + 1, size - 1, trimmed, &pkt);
	fuzz_check(drop < MRC_N_DROPS, "a reason that has a name");
	if (drop)
		return 0;
	fuzz_check(!trimmed || pkt.kind == MRC_KIND_DATA, "only data is trimmed");
	if (!trimmed) {
		fuzz_check(pkt.kind != MRC_KIND_DATA ||
				   (size_t)pkt.pay_off + pkt.data.pay_len + ICRC_LEN <= size - 1,
			"the payload lies inside");
		rebuild(&pkt);
	}
	return 0;
}
