/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/near.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned ctl_distance(const char *a, const char *b)
{
	unsigned char d[CTL_NEAR_LONGEST + 1][CTL_NEAR_LONGEST + 1];
	const size_t n = strlen(a), m = strlen(b);

	if (n > CTL_NEAR_LONGEST || m > CTL_NEAR_LONGEST)
		return CTL_NEAR_LONGEST;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= n; i++) {
		d[i][0] = (unsigned char)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned to = d[i - 1][j - 1] + (unsigned)(a[i - 1] != b[j - 1]);

			to = least(to, least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				to = least(to, d[i - 2][j - 2] + 1U);
			d[i][j] = (unsigned char)to;
		}
	}
	return d[n][m];
}

const char *ctl_nearer(const char *word, const char *best, const char *candidate)
{
	const unsigned most = best ? ctl_distance(word, best) : 3;
	const unsigned d = ctl_distance(word, candidate);

	return d < most && d < strlen(candidate) / 2 ? candidate : best;
}
