/* SPDX-License-Identifier: BSD-3-Clause */
/* Every packet of the captures must parse, and RoCE packets have a right ICRC.
 *	check_capture FILE...
 * Prints what it saw; exit status 0 only if all was right and there was something. */
#include <stdio.h>
#include <string.h>

#include "lib/wire/frame.h"
#include "tests/unit/wire/pcap_file.h"

static unsigned check(const char *path, unsigned long seen[256])
{
	struct pcap_file file;
	unsigned bad = 0;
	int rc = pcap_file_read(path, &file);

	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-rc));
		return 1;
	}
	for (size_t i = 0; i < file.n; i++) {
		const struct pcap_packet *p = &file.packets[i];
		struct wire_pkt pkt;
		enum wire_drop drop = wire_parse(p->data, p->len, &pkt);

		if (drop == WIRE_OK && pkt.kind != WIRE_ROCE)
			continue;
		if (drop == WIRE_OK && !wire_icrc_ok(p->data, &pkt))
			drop = WIRE_ICRC_BAD;
		if (drop == WIRE_OK) {
			seen[pkt.opcode]++;
			continue;
		}
		if (bad++ < 10)
			fprintf(stderr, "%s: packet %zu: %s\n", path, i + 1, wire_drop_name(drop));
	}
	pcap_file_free(&file);
	return bad;
}

int main(int argc, char **argv)
{
	unsigned long seen[256] = {0}, all = 0;
	unsigned bad = 0;

	for (int i = 1; i < argc; i++)
		bad += check(argv[i], seen);
	for (unsigned i = 0; i < 256; i++) {
		all += seen[i];
		if (seen[i])
			printf("%-28s %lu\n", roce_opcode_name((uint8_t)i), seen[i]);
	}
	printf("%lu RoCE packets, %u bad\n", all, bad);
	return all == 0 || bad > 0;
}
