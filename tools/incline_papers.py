# SPDX-License-Identifier: BSD-3-Clause
"""What EPIC, NetReduce, the MRC paper, ZeroNIC and that of multicast AllGather say, and what of it is here: the rows of docs/papers.md, whose tables are made from them, and
of tools/papers, which runs what shows them.

A row shows itself by tests (names of tools/test) and commands (from the top of the repository). `short`: a command of
seconds that no test runs. A state other than "shown" has a reason."""
from dataclasses import dataclass

STATES = 'shown', 'partly', 'not built'
BEGIN = '<!-- generated: tools/papers --markdown -->\n'
END = '<!-- end of generated part -->'


@dataclass(frozen=True)
class Row:
    name: str
    place: str  # in the paper
    claim: str
    code: tuple = ()
    tests: tuple = ()
    commands: tuple = ()
    state: str = 'shown'
    why: str = ''
    short: bool = False

    def shows(self):
        """What is run, as one types it."""
        return ((f"tools/test {' '.join(self.tests)}",) if self.tests else ()) + self.commands


def row(name, place, claim, **more):
    return Row(name, place, claim, **{k: tuple(v.split()) if k in ('code', 'tests') else v for k, v in more.items()})


HARDWARE = 'hardware that is not here'
STREAM_COST = 'tools/bench stream --cost --quick'
EPIC = [
    # ---- architecture and life of a group ----
    row('inctree', '3.1', 'IncTree: ranks as leaves, switches as nodes, state per endpoint', code='dataplane/inc/group.c dataplane/inc/route.c',
        tests='inc_test_group collectives'),
    row('collectives', '3.1', 'Six collectives, any root, over trees of several levels', code='lib/ccl/coll.c', tests='collectives types'),
    row('commlib', '3.2', 'CommLib on plain verbs', code='lib/ccl', tests='ccl_engine ccl_setup processes'),
    row('host-daemon', '3.2', 'A daemon on each host that reports its state', state='partly', tests='ccl_managed', code='lib/ccl/managed.c',
        why='the job itself says it is alive, on a connection to the manager; no daemon beside it'),
    row('agent', '3.2', 'IncAgent programs tables, reports capabilities, ports, memory and events', code='ctrl/agent', tests='ctl-rpc ctl-node ctl-server'),
    row('manager', '3.2', 'IncManager', code='ctrl/manager lib/mgr', tests='manager mgr managed'),
    row('discovery', '3.3.1, 6.1', 'All instances report at boot, the manager learns the topology from link states', state='partly', code='ctrl/manager/discover.c ctrl/manager/cabling.c lib/mgr/graph.c',
        tests='mgr manager-cabling manager-discover managed', why='links and hosts are learnt by LLDP, or a file has them and LLDP is compared with it; '
        'the switches themselves are listed, the manager dials them'),
    row('init-group', '3.3.1', 'InitGroup: the tree is computed, mapped onto the fabric and installed', code='ctrl/manager lib/ccl/install.c',
        tests='manager ccl_setup managed'),
    row('rule-sets', '3.3.1', '2N + 1 sub-groups, computed ahead', code='lib/ccl/install.c', tests='collectives'),
    row('destroy-group', '3.3.1', 'DestroyGroup gives everything back, whoever dies', code='ctrl/manager lib/mgr/job.c ctrl/agent/owners.c',
        tests='manager manager-kills failing_mode2 managed'),
    row('control', '3.3.2', 'A Send with Immediate starts an operation; ranks that disagree are told', code='dataplane/inc/control.c',
        tests='inc_test_mode2 inc_test_mode3 model-ci'),
    row('host-failure', '3.4', 'A host fails: the group is made anew, or the job falls back', state='partly', code='lib/ccl/managed.c lib/ccl/resume.c ctrl/manager',
        tests='failing_mode2 failing_mode3 managed ccl_renew resume', why='the communicator ends with an error and the program has it renewed in place (ccl_comm_renew), once somebody has taken the rank; '
        'a job that has lost no host but its groups goes on by a ring, where its group file says "resume"'),
    row('fabric-failure', '3.4', 'A switch or link fails: the manager places another tree', code='lib/mgr/job_run.c lib/ccl/renew.c lib/ccl/resume.c',
        tests='failures manager managed ccl_renew resume failing_resume'),
    # ---- engine ----
    row('modules', '4.1', 'One engine of modules that the modes share', code='dataplane/inc', tests='inc_share', commands=('tools/share',)),
    row('mode-1', '4.2', 'Mode-I: connections end at the switch, whole messages', state='partly', code='dataplane/inc/mode1.c',
        tests='inc_test_mode1 inc_test_mode1_failures', why='no WRITE, and no leases (inc-protocol.md, 13.2); 512 queue pairs and seven addresses per switch'),
    row('mode-2', '4.3', 'Mode-II (algorithm 1, repaired)', code='dataplane/inc/mode2.c', tests='inc_test_mode2 inc_test_mode2_roots model-bugs'),
    row('psn-subgroups', '4.3', 'PSNs in step, first way: a sub-group per primitive and root', code='lib/ccl/install.c', tests='collectives'),
    row('psn-skip', '4.3', 'PSNs in step, second way: the NIC leaves PSNs out', code='lib/rnic/requester.h', tests='rnic_skip collectives'),
    row('psn-resync', '4.3, footnote 3', 'PSNs in step, third way: unmodified NICs set anew between operations', state='partly',
        code='lib/ccl/resync.c dataplane/inc/group.c', tests='inc_test_resync sim_test_resync ccl_lease dataplane-memory processes',
        why='with our RNIC, which leaves nothing out then; not on a NIC that is bought (inc-protocol.md, 3.7)'),
    row('reproducible', 'footnote 4', 'The same bits every time', code='dataplane/inc/aggregate_data.c', tests='types collectives'),
    row('write', 'footnote 5', 'The switch knows address and key for WRITE', code='dataplane/inc/translate_header.c', tests='types inc_test_translate'),
    row('mode-3', '4.4', 'Mode-III: a pipe each way, acknowledged hop by hop', code='dataplane/inc/mode3.c dataplane/inc/pipe.c', tests='inc_test_mode3 model-ci'),
    row('window-sync', '4.4, 5.1', 'Nobody runs ahead of the pipes', code='dataplane/inc/acknowledge.c', tests='inc_test_mode3 model-ci'),
    row('rate-sync', '4.4, 7.4', 'CNPs to ranks that run ahead heal the collapse', state='partly', code='dataplane/inc/mode3.c', tests='inc_test_mode3',
        commands=('build/apps/incline-sim epic-table 35 --max-bytes 4194304',),
        why='the mechanism is there, its effect is not: pipes as long as what a queue pair has in flight heal it'),
    row('root-local', 'H.4', 'The root answers itself', code='dataplane/inc/mode3.c', tests='inc_test_mode3 model-bugs'),
    row('app-c-filter', 'C', 'Mode-II drops what comes ahead of the PSN that it expects', state='not built',
        why='tried: each loss then costs a timer of its sender, for no receiver sees the gap (inc-protocol.md, 9, row 31)'),
    row('app-c-sr', 'C', 'Mode-II with hosts that repeat selectively', state='partly', code='dataplane/inc/mode2.c dataplane/inc/send_ack.c', tests='inc_test_selective sim_test_world model-ci',
        why='AllReduce and Barrier, where every rank hears its own acknowledgements; the maps of several receivers are not merged for Reduce and Broadcast'),
    row('app-d', 'D', 'Variants of the modes', state='not built', why='none is needed by the others'),
    row('algorithms', 'B', 'The listings, and what breaks them as printed', code='docs/inc-protocol.md tests/model', tests='model-bugs model-traces'),
    row('icrc', '4', 'ICRC checked on the way in, made on the way out', code='lib/wire', tests='wire captures'),
    # ---- correctness and formulas ----
    row('model', '5.1, H', 'Every state of a tree 1-2-4, three packets a client, at most one loss', state='partly', code='tests/model', tests='model-ci model-long',
        why="Mode-II's AllReduce there has a window of one message, Mode-III's rings are N = MW: docs/model-checking.md"),
    row('model-manager', '3.4, 5.1', 'A failure reaches every switch of the tree, by the manager', code='lib/mgr tests/model/manager.c', tests='model-manager model-manager-mute',
        state='partly', why='the decisions (`lib/mgr`), of one job on three switches; connections and store are tested at random'),
    row('model-hosts', '5.1', "The model's hosts are those that ship", code='tests/model/conform.c tests/model/real_comm.c', tests='model-conform model-conform-mutants', state='partly',
        why='`lib/rnic`, and CommLib on it, in Modes II and III, packet by packet; Mode-I and rings are not compared'),
    row('latency-model', '5.2, F.1, F.3, F.4', 'Time, memory and loss of the modes as formulas', code='lib/sim/epic_cost.c', tests='sim_test_epic_cost sim_epic_model',
        commands=('build/apps/incline-sim epic-model',)),
    # ---- resources ----
    row('edt', '6.2', 'Edge-disjoint trees', code='lib/mgr/edt.c', tests='mgr mgr_optimum flowsim'),
    row('spatial', '6.2', 'Spatial multiplexing: the frontier of depth and width', code='lib/mgr/spatial.c lib/mgr/frontier.c', tests='mgr mgr_optimum'),
    row('temporal', '6.2', 'Temporal multiplexing: placed by duty, memory per invocation, by turns or by contention', code='lib/mgr/temporal.c lib/mgr/windows.c lib/ccl/lease.c dataplane/leases.c',
        tests='mgr mgr_optimum manager-windows ccl_managed_turn dataplane-leases ccl_lease ccl_lease_wait leases model-leases'),
    row('indirection', '6.1', 'Payload memory by pointer, moved without touching tables', state='partly', code='dataplane/leases.c', tests='dataplane-leases',
        why='Modes II and III only, not with reproducible sums'),
    # ---- evaluation ----
    row('table-3', 'T3, 19-24', 'Emulation of every collective, three modes, 4 KB to 1 GB, beside Open MPI with and without ICRC', code='tools/incline_paper.py tools/incline_epic.py',
        tests='ucx-mpi tools-paper', commands=('tools/demo --paper --sizes 4K,1M -n 3',), state='partly',
        why='the command here is of two sizes; all of them (`tools/demo --paper`) take hours, and 1 GB 16 GB of free memory: docs/lab.md'),
    row('table-18', 'T18', 'How much code the modes share', code='tools/share', tests='inc_share', commands=('tools/share',)),
    *(row(f'table-{n}', f'T{n}', f'{what}, eight ranks, packet by packet', code='apps/sim_tables.c lib/sim', state='partly',
          tests='sim_epic_tables', commands=(f'build/apps/incline-sim epic-table {n} --max-bytes 67108864',),
          why=f"to 64 MB in the page, the paper has 1 GB; the differences are traced there{', but that Mode-III has less at 64 MB than at 4' if n == 29 else ''}")
      for n, what in ((25, 'AllReduce'), (26, 'Reduce'), (27, 'ReduceScatter'), (28, 'Broadcast'), (29, 'AllGather'))),
    row('table-30', 'T30', 'Barriers per second', code='apps/sim_tables.c', tests='sim_epic_tables', commands=('build/apps/incline-sim epic-table 30',), short=True),
    *(row(f'table-{n}', f'T{n}', what, code='apps/sim_tables.c', state='partly', tests='sim_test_world sim_epic_tables',
          commands=(f'build/apps/incline-sim epic-table {n}',), why='the curves need selective repeat at the hosts and priority; plain RC falls far below, and Mode-II with several links that lose stays below the paper')
      for n, what in ((31, 'AllReduce over a link that loses'), (32, 'AllReduce over several that lose'))),
    row('tables-33-34', 'T33, 34', 'Training, by SimAI', state='partly', code='lib/sim/step_cost.c apps/sim_training.c', tests='sim_test_step_cost sim_epic_tables',
        commands=('build/apps/incline-sim epic-table 33', 'build/apps/incline-sim epic-table 34'),
        why="a model of a step in SimAI's place, with one rate that the paper does not say; the network is simulated"),
    row('table-35', 'T35', 'Ranks that run ahead', code='apps/sim_tables.c', tests='sim_epic_tables', state='partly', why='as 4.4: pipes heal it, CNPs do not',
        commands=('build/apps/incline-sim epic-table 35 --max-bytes 1048576',)),
    *(row(f'table-{n}', f'T{n}', what, code='lib/flowsim', tests='flowsim', commands=(f'build/apps/incline-flowsim table {n}',))
      for n, what in [(6, 'Policies on 128 GPUs')] + [(n, 'One job, 4 to 32 groups a switch') for n in range(36, 44)]),
    *(row(f'table-{n}', f'T{n}', 'Many jobs', code='lib/flowsim', tests='flowsim_orders', state='partly', commands=(f'build/apps/incline-flowsim table {n} --jobs 50 --quiet',),
          why='trace 2 is private to its owners; a substitute, named in the page') for n in (44, 45)),
    *(row(f'figure-{n}', f'F{n}', what, code='lib/flowsim/many.c', tests='flowsim_figures', commands=(f'build/apps/incline-flowsim figure {n} --jobs 50 --quiet',), state='partly',
          why=why)
      for n, what, why in ((16, 'Many jobs, the slowest 15 % of trace 2', 'the trace is a substitute; Temporal is ahead of EDT at 99 %, but not behind it from 88 to 98 %'),
                           (20, 'Many jobs, trace 1', "the paper's points are not to be had: shapes that its text and tables tell; jobs are made up to its sizes"),
                           (21, 'Many jobs, trace 2', 'as figure 20; the trace is a substitute'),
                           (22, 'Many jobs, trace 3: half the cores', 'as figure 21'),
                           (23, 'Jobs of 8 GPUs, scale-up', "as figure 21; the paper's 1 to 2 % between policies are not there, as no policy has anything to do"),
                           (24, 'Jobs of 8 GPUs, scale-up that reduces', 'as figure 23'))),
    row('figure-14', 'F14', 'Groups that work at the same time', state='partly', code='tests/unit/sim', tests='sim_soak', why='checked for results; of speed only Mode-II, single groups'),
    row('training', '7, T4', 'Training applications in the network, against rings', code='apps/trainer.c apps/incline-train.c', tests='ccl_training training_sim', state='partly',
        why="networks of ten thousand weights; the paper's models need GPUs"),
    row('testbed', 'T1, 4, 5, 9-17, 46-48, F12, 13', 'Tofino and FPGA testbeds, NCCL and models on GPUs', state='not built', why=HARDWARE),
    row('capabilities', 'N', 'Types, operations, groups at a time', code='lib/reduce dataplane/groups.c', tests='types reduce dataplane-groups'),
]

NETREDUCE = [
    row('ring', '3.1', 'The switch sums inside connections from host to host', code='dataplane/netreduce', tests='netreduce netreduce_tasks'),
    row('header', '3.1', 'INA header', code='dataplane/netreduce/frames.c', tests='netreduce-star'),
    row('aggregators', '3.1', 'Window of N messages, 2N aggregators', code='dataplane/netreduce/ring.c', tests='netreduce-ring'),
    row('preserved', '3.2', 'Connections are preserved; the table of connections is learnt', state='partly', code='dataplane/netreduce/clt.c', tests='netreduce-ring model-ci',
        why='keys are installed; first PSNs are learnt if they are not configured'),
    row('idempotent', '3.2', 'Aggregation may be repeated', code='dataplane/netreduce/ring.c', tests='netreduce model-ci'),
    row('go-back-n', '3.2', "RoCE's own reliability is enough", code='dataplane/netreduce/engine.c', tests='netreduce model-ci model-bugs'),
    row('flow-control', '3.2', 'The window follows results (and sends: repaired)', code='lib/ccl/ring.c', tests='ring netreduce model-ci'),
    row('congestion', '3.2', 'ECN and CNP as between hosts', code='dataplane/netreduce/engine.c', tests='netreduce-star'),
    row('icrc-ring', '3.2', 'ICRC in the switch', code='dataplane/netreduce/frames.c', tests='captures'),
    row('tenants', '3.2, 3.3', 'Several rings at a time', code='dataplane/rings.c', tests='dataplane-rings'),
    row('racks', '3.3', 'Several racks, connections between switches', state='partly', code='dataplane/netreduce/clt.c', tests='netreduce-racks netreduce_tasks',
        why='rows are installed, not learnt'),
    row('parallel', '3.4', 'Parallel NetReduce: a ring per GPU of a machine, by a field of the group file', code='lib/ccl/nodes.c lib/ccl/over_nodes.c lib/ccl/rings.c lib/sim/nodes.c',
        tests='netreduce_tasks ccl_group sim_test_nodes', commands=('build/apps/incline-sim nodes --quick',)),
    row('baselines', '3.4, F6', 'Flat ring and hierarchical baselines', code='lib/ccl/over_ring.c lib/ccl/nodes.c', tests='ring sim_test_nodes',
        commands=('build/apps/incline-sim nodes',)),
    row('cost-model', '3.4, A, F7', 'Cost model, equations 1 to 6', code='lib/sim/ring_cost.c', tests='sim_test_ring_cost',
        commands=('build/apps/incline-sim netreduce-model',), short=True),
    row('failed-ring', '-', 'A ring whose ranks disagree ends with an error that says on what (the paper is silent)', code='dataplane/netreduce/fail.c', tests='netreduce-fail netreduce model-ci'),
    row('fpga', '4, F8-10', 'FPGA accelerator', state='not built', why=HARDWARE),
    row('throughput', 'T6', 'Throughput, latency, CPU', state='partly', commands=('tools/bench inc --quick',), code='tests/bench', why='one core of the switch; no latency of hosts and no CPU column'),
    row('evaluation', 'T1, 2, 5, 7-10, F2, 11-14', 'Testbeds, training, cost', state='not built', why=HARDWARE),
    row('nccl', '5', 'Integration into NCCL', state='partly', code='lib/nccl/coll.c', tests='nccl_collnet nccl-network', why='a plug-in that a program calls in place of NCCL, which needs GPUs; `mpi-network` does as much for MPI'),
]

MRC_FIGURE = 'build/apps/incline-sim mrc-figure '
MRC = [
    # ---- the transport ----
    row('mrc-placement', '2.1', 'Writes alone, with and without immediate; every packet says where it goes and is placed on arrival, in any order',
        code='lib/mrc/rsp.c lib/mrc/transport_rx.c', tests='mrc mrc_transport_flow'),
    row('mrc-codec', '2.1', 'All headers in one codec, which another can replace', code='lib/wire/mrc_ocp.c', tests='wire mrc mrc_transport_flow'),
    row('mrc-ev', '2.1', 'An EV of 32 bits in UDP source port and flow label, in either order, echoed in SACK and NACK', code='lib/wire/mrc.c', tests='wire mrc_transport_flow'),
    row('mrc-ev-set', '2.1', '128 to 256 EVs and a backup, another for each packet, planes equal in every lap', code='lib/mrc/evset.c', tests='mrc mrc_transport_flow'),
    row('mrc-best-effort', '2.1', 'No PFC', code='dataplane/egress', tests='dataplane-queues sim_mrc_figure_18'),
    row('mrc-sack', '2.1', 'SACK: what is missing goes again, on another EV, marked; a window of PSNs', code='lib/mrc/snd.c lib/mrc/rcv.c', tests='mrc mrc_transport_flow mrc_transport_soak'),
    row('mrc-trimming', '2.1', 'Switches trim, what is left overtakes, the receiver refuses by NACK; an incast has no timeout',
        code='dataplane/egress lib/mrc/transport_look.c', tests='dataplane-queues mrc_transport_flow mrc_transport_switch sim_test_srv6 sim_mrc_figure_18'),
    row('mrc-ecn', '2.1', 'ECN in the fabric, off on the last hop; a marked EV is passed over once', code='dataplane/egress lib/mrc/evset.c', tests='dataplane-queues tools-planes mrc sim_mrc_figure_14'),
    row('mrc-bad-ev', '2.1', 'A loss takes its EV out at once, one of its plane comes in; probes bring it back', code='lib/mrc/evset.c',
        tests='mrc mrc_transport_paths sim_mrc_figure_12'),
    row('mrc-denylist', '2.4', 'What a controller denies is never used', code='lib/mrc/evset.c lib/libmrc/ev_op.c', tests='mrc mrc_transport_ports libmrc-control'),
    row('mrc-reverse', '2.4', 'Words take an EV per plane that is known to work; who only receives probes one per RTT', code='lib/mrc/reverse.c', tests='mrc mrc_transport_flow'),
    row('mrc-ports', '3, 5.2.2', 'A NIC of several ports, each a plane; the peer is told of one that goes', code='lib/mrc/ports.c lib/mrc/transport_dev.c', tests='mrc mrc_transport_ports sim_mrc_figure_9a'),
    row('mrc-nscc', '2.1', 'NSCC, a window for each queue pair or, with `nscc_shared`, for each destination', code='lib/mrc/nscc.c lib/mrc/transport_window.c',
        tests='mrc mrc_transport_window sim_mrc_figure_18 sim_mrc_figure_21'),
    # ---- SRv6 ----
    row('mrc-usid', '2.2', 'uN: match of 48 bits, shift, static table, at line rate', state='partly', code='dataplane/srv6 lib/srv6', tests='srv6 srv6-packets dataplane-srv6 srv6_kernel',
        commands=('tools/bench srv6 --quick',), why="0.4 to 0.6 of testpmd's rate on one core, the aim is half: docs/srv6.md"),
    row('mrc-encap', '2.2', 'The NIC packs and unpacks; DSCP and ECN are the outer header\'s, the ICRC covers the inner', code='lib/srv6/encap.c lib/mrc/transport_look.c', tests='srv6-packets mrc_transport_flow'),
    row('mrc-templates', '2.3', 'From EV to address by a template of the destination, and back', code='lib/srv6/template.c lib/srv6/paths.c', tests='srv6 srv6-paths dataplane-planes'),
    row('mrc-ecmp', '2.3', 'Or by ECMP, evenly over 256 paths', state='partly', code='dataplane/ip/ecmp.h', tests='dataplane-ecmp sim_test_ecmp', why='a route has eight next hops at most: evenness is shown over 64 paths of two tiers'),
    row('mrc-static', '2.2', 'Routes are static', code='tools/incline_planes.py', tests='dataplane-planes tools-planes planes'),
    # ---- operation ----
    row('mrc-map', '3', 'Every node probes every T0 and T1 by packets that come back to it, and tells which link or switch is bad', state='partly', code='lib/map apps/incline-map.c',
        tests='map planes', why='a probe per link and ms on virtual time; with real switches, twelve processes on two cores, 170 to 380 in a second: docs/map.md'),
    row('mrc-flapping', '3', 'A link that flaps stays out until enough probes succeed', code='lib/map lib/mrc/evset.c', tests='map mrc'),
    row('mrc-dead-but-up', '3', 'A switch that forwards nothing while its links are up, or is started again', code='lib/mrc/evset.c',
        tests='sim_mrc_figure_8 sim_mrc_figure_10 sim_mrc_figure_11', commands=('tools/demo --mrc',)),
    row('mrc-same-plane', '4', 'An EV is replaced by one of its plane; what that means beside traffic of one path is said', code='lib/mrc/evset.c docs/mrc.md', tests='mrc model-mrc-bugs'),
    row('mrc-api', '2.1', "The OCP's API for programs and controllers", state='partly', code='lib/libmrc', tests='libmrc libmrc-versions libmrc-objects libmrc-qp libmrc-control libmrc-traffic mrc-programs',
        why='written from the facts of the interface: neither its headers nor its benchmark and tests were at hand to compare and to run'),
    row('mrc-model', '-', 'Two queue pairs, three EVs, two losses: every state; every header fuzzed', code='tests/model/mrc_explore.c tests/fuzz', tests='model-mrc model-mrc-bugs fuzz-mrc fuzz-mrc_qp fuzz-mrc_ctl fuzz-srv6'),
    # ---- numbers, tables, figures ----
    row('mrc-topology', '2', 'NICs, optics and switches of two tiers', code='lib/sim/clos.c', tests='sim_test_clos sim_mrc_figure_2', commands=(MRC_FIGURE + '2',)),
    row('mrc-table-1', 'T1', 'Four platforms', state='not built', why=HARDWARE + '; what ours is, docs/simulator.md says'),
    row('mrc-latency', '5.2.1', 'Latency and rate within and across racks', code='apps/sim_mrc_racks.c', tests='sim_mrc_figure_5.2.1', commands=(MRC_FIGURE + '5.2.1',)),
    row('mrc-figure-4', 'F4', 'Losses at the start, with links down that nobody has denied', code='apps/sim_mrc_links.c', tests='sim_mrc_figure_4 mrc_transport_paths', commands=(MRC_FIGURE + '4',)),
    row('mrc-figures-5-8', 'F5-8', 'Flaps and reboots in production', state='partly', code='apps/sim_mrc_job.c', tests='sim_mrc_figure_5 sim_mrc_figure_6 sim_mrc_figure_8',
        commands=tuple(MRC_FIGURE + f for f in ('5', '6', '8')), why=HARDWARE + ': the like in the simulator, on few hosts'),
    row('mrc-figures-9-11', 'F9a-d, 10, 11', 'Links and switches go one by one and at once, and come back', code='apps/sim_mrc_links.c',
        tests='sim_mrc_figure_9a sim_mrc_figure_9b sim_mrc_figure_9c sim_mrc_figure_9d sim_mrc_figure_10 sim_mrc_figure_11',
        commands=tuple(MRC_FIGURE + f for f in ('9a', '9b', '9c', '9d', '10', '11'))),
    row('mrc-figures-12-13', 'F12, 13', 'An EV that loses 20 %', code='apps/sim_mrc_paths.c', tests='sim_mrc_figure_12 mrc_transport_paths', commands=(MRC_FIGURE + '12',)),
    row('mrc-figure-14', 'F14', 'Two flows on one EV', code='apps/sim_mrc_paths.c', tests='sim_mrc_figure_14', commands=(MRC_FIGURE + '14',)),
    row('mrc-figure-15', 'F15', "NCCL's sendrecv on 42 000 GPUs", state='partly', code='apps/sim_mrc_job.c', tests='sim_mrc_figure_15', commands=(MRC_FIGURE + '15',),
        why=HARDWARE + ': 64 simulated hosts, 128 in the long form'),
    row('mrc-figures-16-17', 'F16, 17', 'Ring all-reduce and all-to-all at 0, 0.1 and 1 % of loss beside RoCE on 1 and 16 queue pairs', state='partly', code='apps/sim_mrc_coll.c lib/sim/loss_cost.c lib/mrc/tail.c lib/mrc/doubt.c',
        tests='sim_test_loss_cost mrc sim_mrc_figure_16 sim_mrc_figure_17', commands=(MRC_FIGURE + '16', MRC_FIGURE + '17'), why='at 16 MB; at 64 KB MRC is ahead of RoCE with 1 % of loss and behind it without any; with 0.1 % it has 93 % of that, where the best that waits for word has 94 and 93 %: docs/simulator.md#64-kb says why'),
    row('mrc-figures-18-21', 'F18, 21', 'Incast 7:1 and a victim, beside RoCE with PFC and with DCQCN', state='partly', code='apps/sim_mrc_incast.c', tests='sim_mrc_figure_18 sim_mrc_figure_21',
        commands=(MRC_FIGURE + '18', MRC_FIGURE + '21'), why='shares within 5 % in the long form alone, with a `qa_gate` of 5'),
    row('mrc-figures-19-20', 'F19, 20', 'Failures between racks; a permutation', code='apps/sim_mrc_racks.c', tests='sim_mrc_figure_19 sim_mrc_figure_20', commands=(MRC_FIGURE + '19', MRC_FIGURE + '20')),
    row('mrc-figure-22', 'F22', "DCQCN's queue at 15:1", state='partly', code='apps/sim_mrc_incast.c', tests='sim_mrc_figure_22', commands=(MRC_FIGURE + '22',),
        why="the paper gives no profile's values: ours are held to an order, and to a length of the queue"),
    row('mrc-inc', '-', 'Collectives in the network over MRC, trees that SRv6 chooses (the paper has none)', state='not built', why='collectives take RC; nobody has asked for it'),
]

MULTICAST = [
    row('mcast-switch', 'II-B', 'Switches forward to groups: replicas that share payload, trees over several switches', code='dataplane/mcast lib/sim/multicast.c',
        tests='dataplane-mcast dataplane-mcast_rows multicast multicast_sim'),
    row('mcast-members', 'II-B', 'Membership: rows, IGMP and MLD learnt at ports, `rdma_cm`; a member that leaves or dies', code='dataplane/mcast/membership.c lib/rnic/mcast.c lib/ccl/member.c',
        tests='dataplane-membership wire-membership multicast soft-roce'),
    row('mcast-mgid', 'II-B', 'MGIDs, MAC addresses, GRH, on IPv4 and IPv6; hosts with Soft-RoCE as members, captures read by tshark', code='lib/wire/multicast.h lib/rnic/ud.c lib/ccl/member.c',
        tests='multicast rnic_ud ccl_member soft-roce', commands=('tests/interop/run --full --fabric mixed4 --modes multicast',)),
    row('mcast-weather', 'III-C', 'Exact under loss, doubles and any order', code='lib/mcast lib/sim', tests='mcast multicast_sim multicast'),
    row('mcast-root', 'III-A', "A root sends fragments as they lie there, the chunk's number in the immediate data", code='lib/mcast/post.c lib/ccl/mcast_run.c', tests='mcast multicast_sim'),
    row('mcast-id', 'III-C', "The immediate data's other bits are the collective's: late datagrams are not taken", code='lib/mcast/blocks.c lib/rnic/mcast_window.c', tests='mcast mcast-errors rnic_bitmap'),
    row('mcast-staging', 'III-B', 'Receives are posted ahead into a staging ring; chunks are copied to their places', code='lib/ccl/mcast_run.c lib/rnic/mcast_window.c',
        tests='multicast_sim rnic_bitmap multicast'),
    row('mcast-bitmap', 'III-C', 'A bitmap of chunks by number', code='lib/mcast/blocks.c lib/rnic/mcast_window.c', tests='mcast rnic_bitmap fuzz-mcast'),
    row('mcast-barrier', 'III-C', 'A barrier by recursive doubling before the first datagram', code='lib/mcast/barrier.c', tests='mcast'),
    row('mcast-cutoff', 'III-C', 'The cutoff timer, N/B + alpha', code='lib/mcast/mcast.c', tests='mcast'),
    row('mcast-fetch', 'III-C', 'The fetch ring: ask left, READ what is missing, recursively; at worst the ring', code='lib/mcast/post.c', tests='mcast multicast_sim'),
    row('mcast-handshake', 'III-C', 'The final handshake before a buffer is released', code='lib/mcast/mcast.c', tests='mcast'),
    row('mcast-footprint', 'III-D, F7', 'Queue pairs, staging, bitmap, communicators', code='lib/mcast/schedule.h lib/ccl/mcast_qp.c', tests='mcast-errors multicast_sim multicast'),
    row('mcast-chains', 'IV-A, A', 'AllGather as M chains of P/M, with activation', code='lib/mcast/schedule.h lib/mcast/post.c', tests='mcast multicast_sim'),
    row('mcast-workers', 'IV-B', 'Workers of their own for receiving and for sending', state='partly', code='lib/rnic/worker.c lib/verbs/workers.c',
        tests='rnic_workers rnic_workers_threads verbs-workers multicast', why="the device's thread sends, its workers receive beside it; which chunk is next is decided by the communicator's caller, no thread of its own"),
    row('mcast-subgroups', 'IV-C', 'Subgroups, one for each receive worker, with bitmaps of their own', code='lib/ccl/mcast_marks.c', tests='multicast_sim multicast'),
    row('mcast-library', 'V-A', 'A back end of a library of collectives: of CommLib (`incline-perf --algorithm multicast`), as UCC is not in Debian', code='lib/ccl/over_hosts.c', tests='multicast'),
    row('mcast-batches', 'V-A', 'Registrations kept, requests pooled, only the last of a batch signalled', code='lib/ccl/mcast_run.c', tests='multicast_sim'),
    row('mcast-communicators', 'V-C', 'Several communicators at a time, in turn on the receive workers', code='lib/ccl/mcast_run.c lib/ccl/mcast_qp.c', tests='multicast_sim mcast-errors'),
    row('mcast-offload', 'V-B', 'The NIC judges, marks and places; the application sleeps until all is there', code='lib/rnic/mcast_window.c lib/ccl/mcast_marks.c', tests='rnic_bitmap multicast_sim'),
    row('mcast-uc', 'V-B, C', 'Multicast of WRITEs, without staging', state='partly', code='lib/rnic/uc_mcast.c lib/ccl/mcast_uc.c', tests='rnic_uc_mcast rnic_bitmap multicast_sim multicast',
        why='messages of one packet'),
    row('mcast-fsdp', 'B', 'AllGather and ReduceScatter at the same time: 2 - 2/P', state='partly', why='4 to 64 ranks on virtual time, of 64 the AllGather 20 us ahead; in the lab exact and measured, where cores are short and no gain shows', code='apps/sim_multicast.c tests/integration/fsdp_job.c', tests='sim_multicast_fsdp sim_multicast_fsdp_long multicast',
        commands=('build/apps/incline-sim multicast fsdp',)),
    row('mcast-traffic', 'F2, 12', 'Bytes at the ports of 188 and 1024 hosts: 1.5 to 2 times less', code='apps/sim_multicast.c', tests='sim_multicast_traffic sim_multicast_traffic_long',
        commands=('build/apps/incline-sim multicast traffic',)),
    row('mcast-figure-10', 'F10', 'Where the time goes', state='partly', code='apps/sim_multicast_time.c lib/mcast/mcast.h', tests='sim_multicast_time',
        commands=('build/apps/incline-sim multicast time',), why='on virtual time, where hosts take none: the share of multicast grows with sizes and ranks; 99 % with 16 ranks of 1 MiB'),
    row('mcast-figure-11', 'F11', 'Throughput beside ring, k-nomial and binary tree, with its spread', state='partly', code='apps/sim_multicast.c', tests='sim_multicast_throughput',
        commands=('build/apps/incline-sim multicast throughput',), why='orders from 64 KiB on, not factors: hosts take no time in the simulator, and only when ranks begin differs'),
    row('mcast-table-1', 'T1, F5, 13-16', 'Instructions and throughput for each receive worker', state='partly', code='tests/bench/multicast.py tests/bench/bench_multicast_workers.c', commands=('tools/bench multicast',),
        why="instructions below the paper's 113 and 66, Gb/s for 1 to 4 workers by CPU time: two cores show no more by the clock; messages of several packets (figure 15) are not built; DPA is " + HARDWARE),
    row('mcast-death', '-', 'A leaf or a root dies: all end in time, with an error (the paper is silent)', code='lib/mcast/mcast.c', tests='mcast-errors multicast_sim multicast'),
]

ZERONIC = [
    # ---- data path ----
    row('zeronic-split', '3.2', 'Payload goes to the program\'s memory, headers and a verdict to the control path, which never touches payload', code='lib/stream/path.c lib/place/packet.c',
        tests='stream stream-process stream-threads'),
    row('zeronic-regions', '3.2, F7', 'A table of memory regions', state='partly', code='lib/place/region.c', tests='place place-orders place-oracle', why='no address translation: memory is the process\'s own'),
    row('zeronic-segments', '3.2', 'Memory segments (region, offset, length), a list per flow and direction, spanned by packets, retired behind the cursor alone', code='lib/place/list.c', tests='place place-oracle place-orders fuzz-place'),
    row('zeronic-flows', '3.2', 'A flow table by five-tuple, with cursor', code='lib/place/flow.c', tests='place place-scale'),
    row('zeronic-cases', '3.2, F8', 'Cases a to e: next, old, partly old, behind a hole, nothing posted', code='lib/place/decide.c lib/place/packet.c', tests='place place-oracle rnic_placement'),
    row('zeronic-defer', '3.2', 'What is not posted goes the copying path, beside what is placed', state='partly', code='lib/stream/path.c', tests='stream-limits stream-loss stream-fair',
        why='a flow without an entry in the table is refused, not deferred: no second stack is behind this one'),
    row('zeronic-cursor', '3.2', 'The control path moves the cursor by what it acknowledges', code='lib/stream/out.c lib/place/list.c', tests='stream-threads place-orders'),
    row('zeronic-overwrite', '3.2', 'Future data may be written again; the program hears of it late enough', code='lib/place/packet.c lib/stream/conn.c', tests='place-oracle place-orders stream-attack'),
    row('zeronic-send', '3.2', 'Sending: segments in order, merged with the headers of the control path', state='partly', code='lib/stream/path.c lib/stream/out.c', tests='stream-loss place-oracle', why='no TSO: no NIC, a header per frame'),
    # ---- control path ----
    row('zeronic-queues', '3.3', 'Queues in shared memory between program, control path and data path; no system call per operation', code='lib/place/ring.h lib/stream/stream.h', tests='stream-system stream-event stream-process stream-threads'),
    row('zeronic-tcp', '3.3', 'An arbitrary transport: a real TCP', code='lib/stream', tests='stream-kernel stream-loss stream-recover'),
    row('zeronic-environments', '3.3', 'The transport in any environment', state='partly', code='lib/stream/stream.c', tests='stream stream-threads stream-process', why='the data path\'s thread, another thread, another process; not the kernel'),
    row('zeronic-verbs', '3.4', 'Messages: libibverbs over TCP, unmodified programs', code='lib/iwarp lib/verbs', tests='iwarp-transport iwarp-link iwarp-lies iwarp-programs'),
    row('zeronic-streaming', '3.4', 'Streams: asynchronous send and receive, memory registered by the call', code='lib/stream/stream.h lib/stream/event.h', tests='stream stream-event stream-limits'),
    row('zeronic-programs', '3.4', 'Unmodified programs', state='partly', code='lib/sockets lib/iwarp', tests='stream-programs stream-recall iwarp-programs', why='iperf3, redis, curl and perftest; a byte is touched once where recv waits for it; NCCL and PyTorch with GPUs: ' + HARDWARE),
    row('zeronic-retransmit', '3.5', 'What is sent stays readable until it is acknowledged; what a receiver may retire', code='lib/stream/recover.c lib/place/list.c', tests='stream-recover stream-loss place-orders'),
    row('zeronic-exclusive', '3.5', 'Two flows never meet: a queue per flow in the NIC, its rule before it is bound', state='partly', code='lib/place/flow.c', tests='place place-oracle', why='an entry per five-tuple before a connection is told of, and one ring of headers for all: queues are what a NIC has'),
    row('zeronic-messages', '3.5', 'Message numbers in an option; a segment retires when its message ends early', state='partly', code='lib/place/packet.c', tests='place-messages',
        why='in the engine alone: lib/stream carries bytes, and iWARP brings its own boundaries (MPA)'),
    row('zeronic-offloads', '3.5', 'GRO, LRO, TSO', state='not built', why='offloads of NICs; an acknowledgement per burst is what is left of them in software'),
    row('zeronic-scale', '3.2', '10 000 flows in 9.77 MB of segments, 700 KB of flows, 100 KB of regions', state='partly', code='lib/place/place.h', tests='place-scale stream-most', why='12.4 MB for 11.0 in all: entries hold IPv6 addresses and two lists'),
    # ---- evaluation ----
    row('zeronic-endpoints', '4', 'Endpoints in CPU and GPU memory', state='partly', code='tests/bench/bench_stream.c', tests='stream-process', commands=(STREAM_COST,), why='GPUs are ' + HARDWARE + ': the second domain is memory that the control path\'s process does not have'),
    row('zeronic-table-1', 'T1', 'Set-up: 100 Gb/s, 9K MTU, BBR', state='partly', code='lib/stream/bbr.c', tests='stream-bbr', why=HARDWARE + '; BBR and the MTU are the same, the link on virtual time'),
    row('zeronic-tables-2-3', 'T2, T3', '96.4 Gb/s at 17 % and 34 % of a hyperthread, beside the kernel and RoCE', state='partly', code='tests/bench/bench_stream.c tests/bench/stream_cost.py', commands=(STREAM_COST,),
        why='one core of a virtual machine: CPU seconds per GB beside the kernel, RC and copying in the same run; the control path takes 0.018 s per GB at the receiver, the paper\'s 0.014'),
    row('zeronic-figures-1-2', 'F1, 2', 'Emulated zero-copy in the kernel: what copies take', state='partly', code='tests/bench/bench_tcp.c tests/bench/stream_cost.py', commands=(STREAM_COST,),
        why='by MSG_TRUNC and sendfile over a veth, not over a NIC'),
    row('zeronic-figure-9', 'F9', 'MTUs of 1024 to 9000', state='partly', code='tests/unit/stream/test_drops.c', tests='stream-drops', commands=('tools/bench stream --virtual',), why='on virtual time, where DMA costs nothing'),
    row('zeronic-figure-10', 'F10, T4', 'NCCL 2.66 times the copying path; PyTorch within 2 % of RoCE', state='not built', why='GPUs are ' + HARDWARE),
    row('zeronic-figure-11', 'F11', 'Redis: 3.71 times the kernel\'s rate, 89 % of RoCE\'s', state='partly', code='tests/bench/stream_redis.py', tests='stream-programs', commands=('tools/bench stream --redis --quick',),
        why='beside the kernel through the same switch 1.2 to 3.6 times, 2.3 on average; beside it over a veth, which has no switch and moves no packets, 0.5 to 0.9; no RC: Debian\'s Redis has no libibverbs'),
    row('zeronic-figure-12', 'F12', 'Up to 8 long flows share evenly, a short one\'s p50 does not change', state='partly', code='tests/unit/stream/test_fair.c tests/bench/bench_stream.c', tests='stream-fair', commands=(STREAM_COST,),
        why='on virtual time; the short one\'s median changes from eight flows on, whose queue a 10 Gb/s link\'s buffer does not hold'),
    row('zeronic-figure-13', 'F13', 'Drops of 0.1 to 10 %: full rate at 1 %', code='tests/unit/stream/test_drops.c tests/bench/stream.py', tests='stream-drops', commands=('tools/bench stream --virtual',)),
]

PAPERS = {'EPIC': EPIC, 'NetReduce': NETREDUCE, 'MRC over SRv6': MRC, 'Multicast Broadcast and AllGather': MULTICAST, 'ZeroNIC': ZERONIC}


def all_rows():
    return [r for rows in PAPERS.values() for r in rows]


def markdown():
    """The tables of docs/papers.md."""
    out = []
    for paper, rows in PAPERS.items():
        counts = ', '.join(f'{sum(r.state == s for r in rows)} {s}' for s in STATES)
        out += [f'## {paper}\n', f'{counts}.\n', '| row | in the paper | claim | code | shown by | state |', '|---|---|---|---|---|---|']
        for r in rows:
            code = ', '.join(f'`{c}`' for c in r.code)
            shows = ', '.join(f'`{c}`' for c in r.shows())
            out.append(f"| {r.name} | {r.place} | {r.claim} | {code} | {shows} | {r.state}{': ' if r.why else ''}{r.why} |")
        out.append('')
    return '\n'.join(out)
