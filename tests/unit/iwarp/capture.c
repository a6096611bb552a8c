/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a capture of a session on virtual time: each operation, a Terminate. iwarp_capture FILE;
 * prints what of it a dissector must find: OPCODE COUNT, for each opcode. */
#include <stdio.h>

#include "lib/pcapng/pcapng.h"
#include "tests/unit/iwarp/pair.h"

static FILE *file;

static void look(struct net *n, uint8_t *bytes, size_t len, int to)
{
	(void)to;
	pcapng_packet(file,
		&(struct pcapng_packet){
			.ns = n->now, .len = (uint32_t)len, .cap = (uint32_t)len, .data = bytes});
}

static void post(
	struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, size_t raddr, unsigned flags)
{
	struct ibv_wc wc;

	assert_int_equal(end_recv(&p->end[1], 1, 0, 8192), 0);
	assert_int_equal(end_post(&p->end[0], opcode, 1, 0, len, &p->end[1], raddr, flags), 0);
	pair_run(p, PAIR_SECOND / 100);
	wc = end_wc(p->end[0].scq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Segments of a message; the MTU of 1500 leaves 1434 and 1430 bytes to a tagged and an untagged
 * one. */
static unsigned segments(unsigned len, unsigned room)
{
	return (len + room - 1) / room;
}

int main(int argc, char **argv)
{
	const unsigned tagged = (unsigned)mpa_mulpdu(1440) - DDP_TAGGED_LEN;
	const unsigned untagged = (unsigned)mpa_mulpdu(1440) - DDP_UNTAGGED_LEN;
	struct pair p;

	file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	if (file == NULL) {
		fprintf(stderr, "usage: iwarp_capture FILE\n");
		return 2;
	}
	pcapng_section(file, NULL);
	pcapng_interface(file, "virtual", 0, NULL);
	pair_open(&p, &(struct pair_options){0});
	p.net->look = look;
	pair_connect(&p, &(struct mpa_offer){.ird = 2,
				 .ord = 2,
				 .private_len = 2,
				 .private_data = (const uint8_t *)"hi"});
	end_fill(&p.end[0], 0, 8192, 1);
	post(&p, IBV_WR_SEND, 5000, 0, 0);
	post(&p, IBV_WR_SEND, 11, 0, IBV_SEND_SOLICITED);
	post(&p, IBV_WR_RDMA_WRITE, 7001, 16384, 0);
	post(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 16384, 0);
	post(&p, IBV_WR_RDMA_READ, 6000, 16384, 0);
	assert_int_equal(
		end_post(&p.end[0], IBV_WR_RDMA_WRITE, 2, 0, 8, &p.end[1], END_BYTES - 7, 0), 0);
	pair_run(&p, PAIR_SECOND);
	pair_close(&p);
	/* WRITEs: the ready-to-receive one and the last, too. */
	printf("%u %u\n", RDMAP_WRITE, 1 + segments(7001, tagged) + 1 + 1);
	printf("%u 1\n", RDMAP_READ_REQUEST);
	printf("%u %u\n", RDMAP_READ_RESPONSE, segments(6000, tagged));
	printf("%u %u\n", RDMAP_SEND, segments(5000, untagged));
	printf("%u 1\n", RDMAP_SEND_SE);
	printf("%u 1\n", RDMAP_TERMINATE);
	printf("%u 1\n", RDMAP_IMM);
	return fclose(file) == 0 ? 0 : 1;
}
