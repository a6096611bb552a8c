/* SPDX-License-Identifier: BSD-3-Clause */
/* Segment endpoints: the first byte says which SID the packet has matched, the rest is the packet.
 * And the head of a tunnel, whose other end gives back what went in. */
#include <string.h>

#include "lib/srv6/encap.h"
#include "lib/srv6/endpoint.h"
#include "lib/srv6/usid.h"
#include "tests/fuzz/fuzz.h"

static const struct srv6_sid sids[] = {{SRV6_UN, 48, false, false}, {SRV6_UN, 64, true, false},
	{SRV6_UA, 48, true, false}, {SRV6_END, 128, false, false}, {SRV6_END, 51, true, false},
	{SRV6_DT46, 48, false, false}, {SRV6_DT46, 128, false, true}};

static void check_done(
	const uint8_t *was, const uint8_t *is, size_t len, const struct srv6_done *done)
{
	const bool sent = done->verdict == SRV6_LOOKUP || done->verdict == SRV6_ADJACENT;

	fuzz_check(done->front < len, "something is left");
	if (done->verdict == SRV6_ARRIVED) {
		fuzz_check(done->upper <= len, "the upper layer is in the packet");
		fuzz_check(memcmp(was, is, len) == 0, "arriving changes nothing");
	}
	if (!sent)
		return;
	is += done->front;
	fuzz_check(len - done->front >= 40u + get_be16(is + 4), "the packet is whole");
	fuzz_check(ip_ttl(is) == ip_ttl(was) - 1 && ip_ttl(was) > 1, "one hop less");
	fuzz_check(memcmp(was + 8, is + 8, 16) == 0, "the source stays");
}

static void one_endpoint(const struct srv6_sid *sid, const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	struct srv6_done done = {0};
	enum srv6_drop drop;

	memcpy(copy, p, len);
	drop = srv6_endpoint(sid, copy, len, &done);
	fuzz_check(drop < SRV6_N_DROPS, "a reason has a name");
	if (drop != SRV6_OK)
		fuzz_check(memcmp(copy, p, len) == 0, "what is refused stays as it was");
	else
		check_done(p, copy, len, &done);
	free(copy);
}

static void there_and_back(unsigned n, const uint8_t *p, size_t len)
{
	struct srv6_encap e = {.n = (uint8_t)n, .src.b = {0xfd}};
	struct srv6_sid dt = {SRV6_DT46, 16, false, false}, end = {SRV6_END, 16, false, false};
	const unsigned own = 40 + (n > 1 ? 8 + 16 * (n - 1) : 0);
	uint8_t *copy = malloc(own + len), ttl;
	struct srv6_done done;

	for (unsigned i = 0; i < n; i++)
		e.segment[i].b[0] = 0xfc;
	memcpy(copy + own, p, len);
	fuzz_check(srv6_encap_len(&e) == own, "as long as it says");
	if (srv6_encap(&e, copy + own, len, copy) == SRV6_OK) {
		ttl = ip_ttl(p);
		fuzz_check(ip_ttl(copy + own) == ttl - 1, "one hop less");
		for (unsigned i = 1; i < n; i++)
			fuzz_check(srv6_endpoint(&end, copy, own + len, &done) == SRV6_OK,
				"each segment is good");
		if (srv6_endpoint(&dt, copy, own + len, &done) == SRV6_OK) {
			fuzz_check(done.verdict == SRV6_UNPACKED && done.front == own, "unpacked");
			ip_put_ttl(copy + own, ttl);
			fuzz_check(len < 12 || memcmp(copy + own + 12, p + 12, len - 12) == 0,
				"the same packet");
		}
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	one_endpoint(&sids[data[0] % (sizeof(sids) / sizeof(sids[0]))], data + 1, size - 1);
	there_and_back(1 + data[0] % SRV6_MAX_SEGMENTS, data + 1, size - 1);
	return 0;
}

/* Inner packets of both versions behind 1 to 4 segments, and a list with options before it. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t v4[] = {0x45, 2, 0, 28, 0, 0, 0x40, 0, 9, 17, 0, 0, 10, 0, 0, 1, 10, 0,
		0, 2, 0, 7, 0, 9, 0, 8, 0, 0};
	static const uint8_t v6[] = {0x60, [5] = 8, [6] = 58, [7] = 64, [8] = 0xfd, [24] = 0xfd,
		[39] = 2, [40] = 128, [47] = 0};
	struct srv6_encap e = {.n = (uint8_t)(1 + i / 2 % SRV6_MAX_SEGMENTS), .src.b = {0xfd}};
	const unsigned own = srv6_encap_len(&e);
	const uint8_t *inner = i & 1 ? v6 : v4;
	const size_t len = i & 1 ? sizeof(v6) : sizeof(v4);

	if (i >= 7 * 8 || 1 + own + len > cap)
		return 0;
	for (unsigned k = 0; k < e.n; k++)
		e.segment[k] = (struct wire_ip){{0xfc, 0xbb, 0xbb, 0, 0, 1, i / 8 == 0 ? 9 : 0}};
	out[0] = (uint8_t)(i / 8);
	memcpy(out + 1 + own, inner, len);
	return srv6_encap(&e, out + 1 + own, len, out + 1) == SRV6_OK ? 1 + own + len : 0;
}
