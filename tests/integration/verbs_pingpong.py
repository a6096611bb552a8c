#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified verbs programs of the distribution on two software RNICs, joined by a memif between
two processes: ibv_devices, ibv_devinfo, ibv_rc_pingpong.

usage: verbs_pingpong.py path/to/libincline_verbs.so
Exit 77 (skipped) without ibverbs-utils."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
from incline_lab import preloadable  # noqa: E402

LIBRARY = BUILD = None
PATIENCE = 60  # seconds, for what must happen sooner or later


# A program that opens the first device, by the names in the process (ctypes.CDLL(None)).
OPEN = """
import ctypes, os, sys, time
lib = ctypes.CDLL(None)
for name in ("ibv_get_device_list", "ibv_open_device", "ibv_alloc_pd"):
    getattr(lib, name).restype = ctypes.c_void_p
def open_device():
    n = ctypes.c_int()
    devices = lib.ibv_get_device_list(ctypes.byref(n))
    assert devices and n.value == 1
    device = ctypes.cast(devices, ctypes.POINTER(ctypes.c_void_p))[0]
    context = lib.ibv_open_device(ctypes.c_void_p(device))
    lib.ibv_free_device_list(ctypes.c_void_p(devices))
    return context and ctypes.c_void_p(context)
def port_state(context):
    attr = (ctypes.c_int * 32)()
    assert lib.ibv_query_port(context, 1, attr) == 0
    return attr[0]
"""

WATCH = OPEN + """
context, last = open_device(), None
while True:
    state = port_state(context)
    if state != last:
        print({1: "down", 4: "active"}[state], flush=True)
    last = state
    time.sleep(0.01)
"""


def free_tcp_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


class Programs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="incline-verbs-")
        self.library = preloadable(LIBRARY, self.dir)
        self.running = []

    def tearDown(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def config(self, name, **fields):
        host = {"server": "0a", "client": "0b"}.get(name, "0c")
        config = {
            "mac": f"02:00:00:00:00:{host}",
            "ip": [f"10.77.0.{int(host, 16)}", f"fd77::{host}"],
            "mtu": 4200,
            "port": {"name": "p0", "type": "memif", "socket": self.path("memif.sock"),
                     "role": name},
        }
        config.update(fields)
        self.write(name, config)

    def write(self, name, config):
        with open(self.path(name + ".json"), "w", encoding="utf-8") as f:
            json.dump(config, f)

    def two_ports(self, name):
        host = {"server": 10, "client": 11}[name]
        self.write(name, {"ports": [
            {"mac": f"02:00:00:00:0{i}:{host:02x}", "ip": [f"10.77.{i}.{host}"],
             "port": {"name": f"p{i}", "type": "memif", "role": name,
                      "socket": self.path(f"memif{i}.sock")}} for i in range(2)]})

    def start(self, name, *args, **settings):
        env = dict(os.environ, LD_PRELOAD=self.library, INCLINE_RNIC=self.path(name + ".json"),
                   INCLINE_STATS=self.path(name + ".stats"), INCLINE_VERBS_DEBUG="1")
        env.update(settings)
        p = subprocess.Popen(args, env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        self.running.append(p)
        return p

    def run_one(self, name, *args):
        p = self.start(name, *args)
        return p.communicate(timeout=PATIENCE)[0], p.returncode

    def start_pair(self, *args, program="ibv_rc_pingpong", config=None):
        """A pingpong server, and the client as soon as the server listens."""
        port = free_tcp_port()
        for name in ("server", "client"):
            (config or self.config)(name)
        server = self.start("server", program, "-p", str(port), *args)
        end = time.monotonic() + PATIENCE
        while not listening(port):
            self.assertIsNone(server.poll(), "the server has ended")
            self.assertLess(time.monotonic(), end, "the server does not listen")
            time.sleep(0.01)
        return server, self.start("client", program, "-p", str(port), *args,
                                  "127.0.0.1")

    def pingpong(self, *args, iters=1000, program="ibv_rc_pingpong", config=None):
        server, client = self.start_pair("-n", str(iters), *args, program=program,
                                         config=config)
        outs = [client.communicate(timeout=PATIENCE)[0]]
        if client.returncode:
            server.kill()  # it may wait for ever
            self.fail(outs[0] + server.communicate()[0])
        outs.append(server.communicate(timeout=PATIENCE)[0])
        for p, out in zip((client, server), outs):
            self.assertEqual(p.returncode, 0, out)
            self.assertIn(f"{iters} iters in", out)
            print(f"  {program} {' '.join(args)}: {out.splitlines()[-1]}", file=sys.stderr)
        for name in ("server", "client"):
            with open(self.path(name + ".stats"), encoding="utf-8") as f:
                stats = json.load(f)
            self.assertGreaterEqual(stats["counters"]["rx_accepted"], iters)
            for reason in ("icrc_bad", "parse_short", "rnic_opcode_seq", "rnic_length",
                           "rnic_access"):
                self.assertEqual(stats["drops"][reason], 0, reason)

    def test_devices_needs_no_port(self):
        # No server at the socket: listing must not open anything.
        self.config("client", device="rnic7", wait_ms=0)
        out, code = self.run_one("client", "ibv_devices")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"rnic7\s+000000fffe00000b")
        out, code = self.run_one("client", "ibv_devinfo")
        self.assertNotEqual(code, 0)
        self.assertIn("rnic7", out)

    def test_devinfo(self):
        self.config("null", port={"name": "p0", "type": "null"})
        out, code = self.run_one("null", "ibv_devinfo", "-v")
        self.assertEqual(code, 0, out)
        for text in ("incline0", "InfiniBand (0)", "PORT_ACTIVE (4)", "4096 (5)", "Ethernet",
                     "LINK_UP (5)", "::ffff:10.77.0.12, RoCE v2", "fd77::c, RoCE v2",
                     "ATOMIC_HCA"):
            self.assertIn(text, out)

    def test_second_port(self):
        self.pingpong("-i", "2", "-g", "1", config=self.two_ports)
        for name in ("server", "client"):
            with open(self.path(name + ".stats"), encoding="utf-8") as f:
                ports = json.load(f)["ports"]
            self.assertEqual(len(ports), 2)
            self.assertEqual((ports[0]["tx_frames"], ports[0]["rx_frames"]), (0, 0))
            self.assertGreaterEqual(ports[1]["tx_frames"], 1000)
            self.assertGreaterEqual(ports[1]["rx_frames"], 1000)
            self.assertEqual(ports[1]["rx_drops"], 0)

    def test_bad_file_is_said_once(self):
        self.config("client", ipp=[])
        out, code = self.run_one("client", "ibv_devices")
        self.assertNotEqual(code, 0)
        self.assertEqual(out.count("ipp"), 1, out)
        self.assertIn("client.json", out)

    def test_without_file_nothing_changes(self):
        env = dict(os.environ, LD_PRELOAD=self.library)
        env.pop("INCLINE_RNIC", None)
        plain = dict(env)
        del plain["LD_PRELOAD"]
        outs = [subprocess.run(["ibv_devices"], env=e, text=True, capture_output=True,
                               timeout=PATIENCE) for e in (env, plain)]
        self.assertEqual(outs[0].returncode, outs[1].returncode)
        self.assertEqual(outs[0].stdout + outs[0].stderr, outs[1].stdout + outs[1].stderr)
        env["INCLINE_VERBS_DEBUG"] = "1"
        asked = subprocess.run(["ibv_devices"], env=env, text=True, capture_output=True, timeout=PATIENCE)
        self.assertIn("incline: INCLINE_RNIC is not set", asked.stderr)

    def test_open_close_open(self):
        self.config("null", port={"name": "p0", "type": "null"})
        script = OPEN + """
for i in range(3):
    contexts = [open_device() for _ in range(2)]
    assert all(contexts)
    assert lib.ibv_alloc_pd(contexts[0])
    for context in contexts:
        assert lib.ibv_close_device(context) == 0
print("done")
"""
        out, code = self.run_one("null", sys.executable, "-c", script)
        self.assertEqual(code, 0, out)
        self.assertEqual(out.strip(), "done")

    def test_fork(self):
        self.config("null", port={"name": "p0", "type": "null"})
        script = OPEN + """
assert open_device()
pid = os.fork()
if pid == 0:
    sys.exit(0 if open_device() is None else 9)  # its exit handlers leave the parent's device
assert os.waitpid(pid, 0)[1] == 0
assert port_state(open_device()) == 4
print("done")
"""
        out, code = self.run_one("null", sys.executable, "-c", script)
        self.assertEqual(code, 0, out)
        self.assertIn("opened by the parent", out)
        self.assertIn("done", out)

    def test_client_reconnects(self):
        self.config("server")
        self.config("client", port={"name": "p0", "type": "memif", "role": "client",
                                    "socket": self.path("memif.sock"), "zero_copy": False})
        first = self.start("server", sys.executable, "-c", WATCH)
        self.assertEqual(first.stdout.readline(), "down\n")
        client = self.start("client", sys.executable, "-c", WATCH)
        self.assertEqual(client.stdout.readline(), "active\n")
        first.kill()
        self.assertEqual(client.stdout.readline(), "down\n")
        self.start("server", sys.executable, "-c", WATCH)
        self.assertEqual(client.stdout.readline(), "active\n")

    def test_ipv4(self):
        self.pingpong("-g", "1")

    def test_ipv6(self):
        self.pingpong("-g", "2", "-m", "4096", "-s", "100000", "-r", "50", iters=200)

    def test_link_local(self):
        self.pingpong("-g", "0", "-s", "1")

    def test_events(self):
        self.pingpong("-g", "1", "-e")

    def test_new_send_interface(self):
        self.pingpong("-g", "1", "-N")

    def test_validated_buffers(self):
        self.pingpong("-g", "1", "-c", "-s", "5000", iters=200)

    def test_unreliable_connection(self):
        self.pingpong("-g", "1", program="ibv_uc_pingpong")
        self.pingpong("-g", "2", "-e", "-s", "100000", iters=200, program="ibv_uc_pingpong")

    def test_datagrams(self):
        self.pingpong("-g", "1", program="ibv_ud_pingpong")
        self.pingpong("-g", "2", "-e", program="ibv_ud_pingpong")

    def test_shared_receive_queue(self):
        self.pingpong("-g", "1", program="ibv_srq_pingpong")
        self.pingpong("-g", "2", "-e", program="ibv_srq_pingpong")

    def test_survives_killed_peer(self):
        for dies in (0, 1):
            pair = self.start_pair("-g", "1", "-n", "100000000")
            time.sleep(0.5)  # into the traffic; any other moment would do as well
            pair[dies].kill()
            pair[dies].wait()
            survivor = pair[1 - dies]
            try:
                # It reports an exhausted retry, or waits for a message that never comes.
                code = survivor.wait(2)
            except subprocess.TimeoutExpired:
                survivor.terminate()
                code = survivor.wait(PATIENCE)
            self.assertIn(code, (1, -signal.SIGTERM), survivor.stdout.read())

    # Not preloaded: found by the names of rdma-core's libraries.

    def drop_in(self, name, *args, **settings):
        return self.start(name, *args, LD_PRELOAD="",
                          LD_LIBRARY_PATH=os.path.join(os.path.dirname(LIBRARY), "dropin"), **settings)

    def test_drop_in_is_loaded(self):
        self.config("server", port={"name": "near", "type": "ring"})
        self.config("client", port={"name": "far", "type": "ring", "peer": "near"})
        both = self.path("server.json") + ":" + self.path("client.json")
        p = self.drop_in("server", os.path.join(BUILD, "tests/integration/loader"),
                         INCLINE_RNIC=both, INCLINE_DEVICES="2")
        out = p.communicate(timeout=PATIENCE)[0]
        self.assertEqual(p.returncode, 0, out)
        self.assertEqual(out.splitlines()[-1], "ok", out)

    def test_drop_in_without_file_changes_nothing(self):
        outs = []
        for start in (lambda: self.drop_in("none", "ibv_devices", INCLINE_RNIC=""),
                      lambda: self.start("none", "ibv_devices", LD_PRELOAD="")):
            p = start()
            outs.append((p.communicate(timeout=PATIENCE)[0], p.returncode))
        said = "incline: INCLINE_RNIC is not set: the devices are those of the kernel, if it has any\n"
        self.assertIn(said, outs[0][0])  # as self.start sets INCLINE_VERBS_DEBUG
        self.assertEqual((outs[0][0].replace(said, ""), outs[0][1]), outs[1])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    LIBRARY = os.path.abspath(sys.argv.pop(1))
    os.environ.pop("LD_LIBRARY_PATH", None)  # meson names the drop-in libraries there
    BUILD = os.path.dirname(os.path.dirname(os.path.dirname(LIBRARY)))
    if not shutil.which("ibv_rc_pingpong"):
        sys.exit(77)
    unittest.main(verbosity=2)
