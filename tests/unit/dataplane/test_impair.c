/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad weather: the same from the same seed, in the asked proportions, and nothing lost uncounted.
 */
#include <errno.h>
#include <string.h>

#include "ctrl/config/parts.h"
#include "harness.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"

enum { N = 2000 };

struct outcome {
	unsigned n, corrupt, late;
	uint64_t lost, doubled, overtaken, corrupted;
	uint32_t hash;
};

static struct outcome weather(const char *impair)
{
	char port[128];
	struct outcome o = {0};
	struct wire_ip a = h_host4(0), c = h_host4(1);
	uint32_t last = 0;
	struct frame f;
	struct sw *sw;

	snprintf(port, sizeof(port), "{'impair':%s}", impair);
	sw = h_start(2, NULL, port);
	for (uint32_t i = 0; i < N; i++) {
		uint8_t b[128], tag[64] = {0};

		put_be32(tag, i);
		h_inject(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, tag, sizeof(tag)));
		if (i % 7 == 0)
			h_run(sw);
		while (h_take(sw, 1, &f)) {
			uint32_t tagged = get_be32(f.b + 34);

			o.n++;
			o.late += tagged < last;
			last = tagged > last && tagged < N ? tagged : last;
			o.hash = o.hash * 31 + tagged;
			for (unsigned k = 38; k < f.len; k++)
				o.corrupt += f.b[k] != 0;
		}
	}
	/* What is held is let go after a millisecond, without further packets. */
	while (sw->impair[0][0].n_held > 0) /* port 0 is worker 0's */
		h_run(sw);
	h_run(sw);
	while (h_take(sw, 1, &f))
		o.n++;
	o.lost = h_drop(sw, "impair_loss");
	o.doubled = h_value(sw, "doubled");
	o.overtaken = h_value(sw, "overtaken");
	o.corrupted = h_value(sw, "corrupted");
	h_check_balance(sw);
	assert_int_equal(h_value(sw, "mbufs_free"), h_value(sw, "mbufs"));
	h_stop(sw);
	return o;
}

static void fine(void **state)
{
	struct outcome o = weather("{}");

	(void)state;
	assert_int_equal(o.n, N);
	assert_int_equal(o.late + o.corrupt + o.lost + o.doubled, 0);
	assert_int_equal(o.overtaken + o.corrupted, 0);
}

static void loss(void **state)
{
	struct outcome o = weather("{'loss':0.1,'seed':5}"), again, other;

	(void)state;
	assert_in_range(o.lost, N / 10 - 60, N / 10 + 60);
	assert_int_equal(o.n, N - o.lost);
	assert_int_equal(o.late + o.corrupt, 0);
	again = weather("{'loss':0.1,'seed':5}");
	assert_int_equal(o.hash, again.hash);
	other = weather("{'loss':0.1,'seed':6}");
	assert_int_not_equal(o.hash, other.hash);
	o = weather("{'tx_loss':0.1,'seed':5}");
	assert_in_range(o.lost, N / 10 - 60, N / 10 + 60);
	assert_int_equal(o.n, N - o.lost);
	o = weather("{'loss':1}");
	assert_int_equal(o.lost, N);
	assert_int_equal(o.n, 0);
}

static void dup(void **state)
{
	struct outcome o = weather("{'dup':0.2}");

	(void)state;
	assert_in_range(o.doubled, N / 5 - 80, N / 5 + 80);
	assert_int_equal(o.n, N + o.doubled);
	assert_int_equal(o.lost, 0);
	o = weather("{'dup':1}");
	assert_int_equal(o.n, 2 * N);
}

static void reorder(void **state)
{
	struct outcome o = weather("{'reorder':0.1}");

	(void)state;
	assert_int_equal(o.n, N);
	assert_in_range(o.late, 50, 400);
	assert_in_range(o.overtaken, N / 10 - 60, N / 10 + 60);
	assert_int_equal(o.corrupted, 0);
	o = weather("{'reorder':1}"); /* not everything can be held at a time */
	assert_int_equal(o.n, N);
}

static void corrupt(void **state)
{
	struct outcome o = weather("{'corrupt':0.2}");

	(void)state;
	/* 60 of a frame's 98 bytes can show it and still get through. */
	assert_in_range(o.corrupt, 100, 400);
	assert_in_range(o.corrupted, N / 5 - 80, N / 5 + 80);
	assert_int_equal(o.lost, 0);
	assert_true(o.n < N);
}

/* A copy goes past what is held, as any packet does. */
static void copies_overtake(void **state)
{
	struct sw *sw = h_start(2, NULL, NULL);
	struct rte_mbuf *in[2], *out[2 * 2 + IMPAIR_HELD];
	json_t *json = h_json("{'dup':1,'reorder':1}");
	struct impair_result r;
	char err[SW_ERR_LEN];
	struct impair im;

	(void)state;
	assert_int_equal(impair_parse(json, &im, err, sizeof(err)), 0);
	json_decref(json);
	for (unsigned i = 0; i < 2; i++) {
		in[i] = rte_pktmbuf_alloc(sw->pool);
		assert_non_null(in[i]);
		memset(rte_pktmbuf_append(in[i], 64), 0, 64);
	}
	r = impair_apply(&im, in, 2, out, sw->pool, 0);
	assert_int_equal(r.doubled, 2);
	assert_int_equal(r.no_mbuf, 0);
	assert_int_equal(r.out + im.n_held, 4);
	assert_int_equal(r.overtaken, 1); /* the first, by the copy of the second */
	for (unsigned i = 0; i < r.out; i++)
		rte_pktmbuf_free(out[i]);
	impair_free_held(&im);
	assert_int_equal(h_value(sw, "mbufs_free"), h_value(sw, "mbufs"));
	h_stop(sw);
}

/* Some ACKs, all WRITE ONLYs, nothing else. */
static void lose_by_opcode(void **state)
{
	static const uint8_t opcode[] = {ROCE_ACK, ROCE_WRITE_ONLY, ROCE_SEND_ONLY, ROCE_CNP};
	struct sw *sw = h_start(
		2, NULL, "{'impair':{'lose':[{'opcode':17,'loss':0.5},{'opcode':10,'loss':1}]}}");
	struct wire_ip a = h_host4(0), c = h_host4(1);
	unsigned got[4] = {0};
	struct frame f;

	(void)state;
	for (uint32_t i = 0; i < 800; i++) {
		uint8_t b[H_FRAME_MAX], payload[16] = {0};
		struct wire_flow flow = {.src = a, .dst = c, .ttl = 64, .sport = 0xc000};
		struct wire_hdr hdr = {.opcode = opcode[i % 4], .psn = i, .dqpn = 9};

		memcpy(flow.dmac, h_port_mac(sw, 0), 6);
		flow.smac[0] = 2;
		h_inject(sw, 0, b,
			(unsigned)wire_build_frame(b, sizeof(b), &flow, &hdr, payload,
				hdr.opcode == ROCE_ACK ? 0 : sizeof(payload)));
		h_run(sw);
		while (h_take(sw, 1, &f)) {
			struct wire_pkt pkt;

			assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
			assert_int_equal(pkt.opcode, opcode[pkt.psn % 4]);
			got[pkt.psn % 4]++;
		}
	}
	assert_in_range(got[0], 60, 140);
	assert_int_equal(got[1], 0);
	assert_int_equal(got[2], 200);
	assert_int_equal(got[3], 200);
	assert_int_equal(h_drop(sw, "impair_loss"), 400 - got[0]);
	h_check_balance(sw);
	h_stop(sw);
}

/* Every ICRC is right behind it, whatever it was before; what is no RoCE stays as it is. */
static void icrc_anew(void **state)
{
	(void)state;
	for (unsigned anew = 0; anew < 2; anew++) {
		struct sw *sw =
			h_start(2, NULL, anew ? "{'impair':{'icrc':true}}" : "{'impair':{}}");
		struct wire_ip a = h_host4(0), c = h_host4(1);
		struct frame f;

		for (uint32_t i = 0; i < 8; i++) {
			uint8_t b[H_FRAME_MAX], payload[16] = {0}, tag[64] = {7};
			struct wire_flow flow = {.src = a, .dst = c, .ttl = 64, .sport = 0xc000};
			struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY, .psn = i, .dqpn = 9};
			const bool roce = i % 4 != 3;
			struct wire_pkt pkt;
			int len;

			memcpy(flow.dmac, h_port_mac(sw, 0), 6);
			flow.smac[0] = 2;
			len = roce ? wire_build_frame(b, sizeof(b), &flow, &hdr, payload,
					     sizeof(payload) - i)
				   : (int)h_ip4(
					     b, h_port_mac(sw, 0), &a, &c, 99, 9, tag, sizeof(tag));
			if (roce && i % 2)
				b[len - 1] ^= 1; /* of the ICRC */
			h_inject(sw, 0, b, (unsigned)len);
			h_run(sw);
			assert_true(h_take(sw, 1, &f));
			assert_int_equal(f.len, len);
			assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
			if (roce)
				assert_int_equal(wire_icrc_ok(f.b, &pkt), anew || i % 2 == 0);
			else
				assert_memory_equal(f.b + f.len - sizeof(tag), tag, sizeof(tag));
		}
		h_stop(sw);
	}
}

static unsigned pass(struct sw *sw, unsigned n)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	unsigned got = 0;
	struct frame f;

	for (unsigned i = 0; i < n; i++) {
		uint8_t b[128], tag[64] = {0};

		h_inject(sw, 0, b, h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, tag, sizeof(tag)));
		h_run(sw);
		while (h_take(sw, 1, &f))
			got++;
	}
	return got;
}

static int change(struct sw *sw, const char *impair, char err[SW_ERR_LEN])
{
	json_t *json = impair ? h_json(impair) : NULL;
	int rc = switch_impair(sw, 0, json, err);

	json_decref(json);
	return rc;
}

/* The weather changes while the switch runs; what is refused changes nothing; the configuration
 * that is saved has it. */
static void changes(void **state)
{
	struct sw *sw = h_start(2, NULL, NULL);
	char err[SW_ERR_LEN];
	json_t *config = sw_config_json(sw);
	const json_t *port = json_array_get(json_object_get(config, "ports"), 0);

	(void)state;
	assert_int_equal(pass(sw, 50), 50);
	assert_int_equal(change(sw, "{'loss':1}", err), 0);
	assert_int_equal(pass(sw, 50), 0);
	assert_int_equal(h_drop(sw, "impair_loss"), 50);
	assert_true(json_is_integer(json_object_get(json_object_get(port, "impair"), "loss")));
	assert_int_equal(change(sw, "{'loss':1.5}", err), -EINVAL);
	assert_string_equal(err, "impair.loss: 1.5 is not in 0..1");
	assert_int_equal(sw_port_impair(sw, 2, NULL, err), -ENOENT);
	assert_string_equal(err, "port: there is no port 2");
	assert_int_equal(pass(sw, 50), 0);
	assert_int_equal(change(sw, "{'reorder':1}", err), 0);
	pass(sw, 1);
	assert_int_equal(sw->impair[0][0].n_held, 1);
	assert_int_equal(h_value(sw, "held_back"), 1);
	h_check_balance(sw);
	/* Nothing has lost what is held: it stays, whatever the weather, and goes its way. */
	assert_int_equal(change(sw, "{'loss':1}", err), 0);
	assert_int_equal(sw->impair[0][0].n_held, 1);
	assert_int_equal(change(sw, NULL, err), 0);
	assert_int_equal(sw->impair[0][0].n_held, 1);
	assert_int_equal(h_drop(sw, "impair_loss"), 100);
	assert_null(json_object_get(port, "impair"));
	assert_int_equal(pass(sw, 50), 51);
	assert_int_equal(h_drop(sw, "impair_loss"), 100);
	assert_null(sw->worker[0]->port[sw->ports[0].id].impair);
	assert_int_equal(h_value(sw, "held_back"), 0);
	json_decref(config);
	h_check_balance(sw);
	h_stop(sw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fine),
		cmocka_unit_test(loss),
		cmocka_unit_test(dup),
		cmocka_unit_test(reorder),
		cmocka_unit_test(copies_overtake),
		cmocka_unit_test(corrupt),
		cmocka_unit_test(lose_by_opcode),
		cmocka_unit_test(icrc_anew),
		cmocka_unit_test(changes),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
