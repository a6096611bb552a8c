/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: an interface per link with its name, a packet per frame. */
#include "lib/pcapng/pcapng.h"

#include <errno.h>

#include "lib/sim/priv.h"

int sim_capture(struct sim *sim, const char *path)
{
	char name[2 * SIM_NAME_LEN + 2];

	sim->pcap = fopen(path, "wb");
	if (!sim->pcap)
		return -errno;
	pcapng_section(sim->pcap, NULL);
	for (unsigned i = 0; i < sim->n_links; i++) {
		sim_link_name(sim, i, name, sizeof(name));
		pcapng_interface(sim->pcap, name, 0, NULL);
	}
	return 0;
}

void sim_capture_frame(struct sim *sim, unsigned link, const struct sim_frame *f)
{
	pcapng_packet(sim->pcap, &(struct pcapng_packet){.interface = link,
					 .ns = sim->now,
					 .len = f->len,
					 .cap = f->len,
					 .data = f->data});
}
