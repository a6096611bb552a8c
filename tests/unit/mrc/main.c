/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mrc/mrc_test.h"

int main(void)
{
	return run_evset_tests() + run_rcv_tests() + run_req_tests() + run_rsp_tests() +
		       run_rsp_words_tests() + run_pair_tests() + run_ports_tests() +
		       run_snd_tests() + run_snd_fabrics_tests() + run_tail_tests() +
		       run_nscc_tests() !=
	       0;
}
