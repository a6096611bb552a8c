/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the placement engine writes nothing for a packet. Counters and documentation are made of it.
 */
#ifndef PLACE_DROPS_H
#define PLACE_DROPS_H

/* X(symbol, name, meaning) */
#define PLACE_DROPS(X)                                                                         \
	X(OLD, "place_old", "all of it was taken before")                                      \
	X(WINDOW, "place_window", "lies, or reaches, outside of the window")                   \
	X(FLOW, "place_flow", "the flow has been removed")                                     \
	X(MEMORY, "place_memory", "the memory that was posted for it is no longer registered") \
	X(MESSAGE, "place_message", "belongs to a message that is complete")                   \
	X(OVERRUN, "place_overrun", "longer than the buffer that was posted for its message")

enum place_drop {
	PLACE_OK = 0,
#define X(sym, name, text) PLACE_DROP_##sym,
	PLACE_DROPS(X)
#undef X
		PLACE_N_DROPS
};

#endif
