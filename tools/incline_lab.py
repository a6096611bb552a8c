# SPDX-License-Identifier: BSD-3-Clause
"""A fabric (incline_fabric.py, incline_planes.py) brought to life on this machine: what tools/lab, tools/demo and the process tests
share. Switches are incline-switch processes; a host is a configuration of the software RNIC that any verbs program
takes over its environment, or a virtual machine with Soft-RoCE (incline_guest.py). Links are memif: the switch is the
server, what is behind it the zero-copy client; to a virtual machine they are vhost-user."""
import fcntl
import json
import os
import shutil
import shlex
import signal
import socket
import subprocess
import time

import incline_guest
import incline_netns
from incline_fabric import Folder, LabError, addresses
from incline_processes import Undisturbed, end_on_signals, process_start

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START_TIMEOUT = 30
STOP_TIMEOUT = 10
GUEST_BOOT_PORT = 9560


def default_dir():
    base = os.environ.get('XDG_RUNTIME_DIR') or '/tmp'
    return os.environ.get('INCLINE_LAB') or os.path.join(base, f'incline-lab-{os.getuid()}')


def build_dir():
    return os.environ.get('INCLINE_BUILD') or os.path.join(TOP, 'build')


def write_json(path, value):
    """All of it or nothing: others read meanwhile."""
    with open(path + '.new', 'w') as f:
        json.dump(value, f, indent=1)
        f.write('\n')
    os.replace(path + '.new', path)


def listening(port):
    """Does somebody listen at this TCP port?"""
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        with open(table) as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[1].endswith(f':{port:04X}') and fields[3] == '0A':
                    return True
    return False


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def several_paths(path):
    """Would LD_PRELOAD take it for more than one?"""
    return any(c.isspace() or c == ':' for c in path)


def preloadable(library, directory):
    """The path of a library for LD_PRELOAD: if need be, of a link to it in a directory."""
    if not several_paths(library):
        return library
    link = os.path.join(directory, os.path.basename(library))
    if not os.path.islink(link):
        os.symlink(library, link)
    return link


class Lab(Folder):
    def __init__(self, directory=None):
        super().__init__(directory or default_dir())
        self.processes = []  # switches that this object started
        self.netns = None    # incline_netns.Netns, if hosts have network namespaces

    # ---- group files ----

    def bootstrap(self, topo, name, key):
        """Where rank 0 listens: guests among themselves meet in the fabric."""
        if not topo.guests:
            return 'unix:' + self.path(f'{name}.boot')
        if topo.hosts[0] not in topo.guests and not self.netns:
            return f'tcp:127.0.0.1:{free_port()}'
        ip = topo.hosts[0][key]
        return f'tcp:[{ip}]:{GUEST_BOOT_PORT}' if ':' in ip else f'tcp:{ip}:{GUEST_BOOT_PORT}'

    def group_config(self, topo, name, reproducible, key='ip'):
        """key: ip or ip6, which of the nodes' addresses the group uses."""
        return topo.group_config(self, name, self.bootstrap(topo, name, key), reproducible, key)

    # ---- life ----

    def check_dir(self, topo):
        if several_paths(self.dir):
            raise LabError(f'{self.dir}: LD_PRELOAD and INCLINE_RNIC end a path at a blank or colon, set INCLINE_LAB to one without')
        longest = max(len(self.path(f"{a['name']}-{b['name']}.sock")) for a in topo.switches
                      for b in topo.ports + topo.switches)
        if longest > 100:
            raise LabError(f'{self.dir}: too long for socket paths, set INCLINE_LAB to a shorter one')

    def lock(self):
        """Who makes or ends a fabric has its folder for himself; a file to close then."""
        while True:
            try:
                f = open(self.path('lock'), 'a+')
            except FileNotFoundError:
                raise LabError('no fabric is up (tools/lab up FILE)') from None
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                f.seek(0)
                who = f.read().strip() or 'that has just begun'
                f.close()
                raise LabError(f'{self.dir}: process {who} makes or ends a fabric there') from None
            try:
                if os.path.samestat(os.fstat(f.fileno()), os.stat(self.path('lock'))):
                    break
            except FileNotFoundError:
                pass
            f.close()  # of a fabric that has ended meanwhile
        f.truncate(0)
        f.write(f'{os.getpid()}\n')
        f.flush()
        return f

    def up(self, topo, impair=None, netns=False):
        """netns: give each host a network namespace with a network interface on its RNIC's port."""
        for program in ('apps/incline-switch', 'lib/verbs/libincline_verbs.so'):
            if not os.path.exists(os.path.join(build_dir(), program)):
                raise LabError(f'{program} is not built; run tools/build')
        if netns and not topo.namespaces:
            raise LabError('--netns: hosts with a port in each of several planes have no network namespaces')
        self.check_dir(topo)
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        with self.lock():
            if os.path.exists(self.path('lab.json')):
                raise LabError(f'{self.dir}: a fabric is up there; take it down first (tools/lab down)')
            return self.make(topo, impair, netns)

    def make(self, topo, impair, netns):
        state = {'name': topo.name, 'build': build_dir(), 'switches': [], 'hosts': []}
        try:
            if netns:
                self.netns = incline_netns.Netns(self.dir)
            self.write_files(topo, state)
            if netns:
                self.netns.make(topo)
            # Servers of links first: parents of their children's.
            for s in sorted(topo.switches, key=lambda s: len(topo.path(s['name']))):
                row = {'name': s['name'], 'ip': s['ip']}
                state['switches'].append(row)
                self.start_switch(topo, row, impair, state)
            if netns:
                self.start_keepers(state)
            self.start_guests(topo, state)
        except (incline_guest.GuestError, incline_netns.NetnsError) as e:
            self.kill(state)
            raise LabError(str(e)) from None
        except BaseException:
            self.kill(state)
            raise
        return state

    def write_files(self, topo, state):
        """What is there before the first process; lab.json for down, should we be killed halfway."""
        write_json(self.path('topology.json'), topo.doc)
        state['shim'] = preloadable(os.path.join(build_dir(), 'lib/verbs/libincline_verbs.so'), self.dir)
        for i, h in enumerate(topo.hosts):
            devices = topo.devices(self, h, bool(self.netns))
            for name, config in devices if h not in topo.guests else ():
                write_json(self.path(f'{name}.json'), config)
            state['hosts'].append({'name': h['name'], 'ip': h['ip'], 'switch': h['switch'], 'rank': i,
                                   'nic': h['nic'], 'ports': [name for name, _ in devices]})
            if self.netns and h not in topo.guests:
                state['hosts'][-1]['netns'] = self.netns.name(h['name'])
            if topo.paths(h):
                write_json(self.path(f"{h['name']}.paths.json"), topo.paths(h))
        for file, name, reproducible in (('group', topo.name, False), ('group-reproducible', topo.name + '-r', True)):
            group = self.group_config(topo, name, reproducible)
            if group:
                write_json(self.path(file + '.json'), group)
        write_json(self.path('lab.json'), state)

    def start_keepers(self, state):
        """One process keeps the network interfaces of all hosts while no program of theirs does."""
        ports = [f"{self.path(h['name'] + '.json')}@{incline_netns.RUN_DIR}/{h['netns']}"
                 for h in state['hosts'] if 'netns' in h]
        if ports:
            row = {'name': 'netd'}
            state['keepers'] = [row]
            self.start_process(row, [os.path.join(build_dir(), 'apps/incline-netd'), *ports], state)

    def start_guests(self, topo, state):
        if not topo.guests:
            return
        why_not = incline_guest.why_not()
        if why_not:
            raise LabError(why_not)
        # One prefix for all: the switch answers ARP and ND for whoever is behind another port.
        for i, h in enumerate(topo.hosts):
            if h in topo.guests:
                self.record(state['hosts'][i], state, lambda: self.guest(h['name']).start(
                    self.link_socket(h['switch'], h['name']), topo.ports_of_host(h['name'])[0]['mac'],
                    [ip + ('/64' if ':' in ip else '/16') for ip in addresses(h)], topo.mtu))
        for h in topo.guests:
            self.guest(h['name']).await_ready()

    def guest(self, name):
        return incline_guest.Guest(name, self.path(f'{name}.guest'), self.dir)

    def record(self, row, state, start):
        """Starts a process and writes it down, whatever comes in between: down finds it."""
        with Undisturbed():
            process = start()
            self.processes.append(process)
            row['pid'], row['start'] = process.pid, process_start(process.pid)
            write_json(self.path('lab.json'), state)
        return process

    def start_switch(self, topo, row, impair, state):
        write_json(self.path(f"{row['name']}.json"), topo.switch_config(self, row['name'], impair))
        self.run_switch(row, state)

    def run_switch(self, row, state):
        config = self.path(f"{row['name']}.json")
        said = self.start_process(row, [os.path.join(build_dir(), 'apps/incline-switch'), '-c', config], state)
        if ' and tcp:' in said:
            row['tcp'] = said.split(' and ')[1].split()[0]
            write_json(self.path('lab.json'), state)

    def start_process(self, row, argv, state):
        """Starts it and waits until it says that it is ready: what it has said."""
        name = row['name']
        log = self.path(f'{name}.log')
        with open(log, 'w') as out:
            # Not a session of its own: docs/lab.md, "A crowded machine".
            process = self.record(row, state, lambda: subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                                                       stderr=out, process_group=0))
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            with open(log) as f:
                said = f.read()
            if ' ready' in said:
                return said
            if process.poll() is not None:
                raise LabError(f'{name} ended at once:\n{said}')
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise LabError(f'{name} is not ready after {START_TIMEOUT} s:\n{said}')
            time.sleep(0.02)

    def ctl(self, switch, *words):
        """What inclinectl says of a switch, as JSON."""
        done = subprocess.run([os.path.join(build_dir(), 'apps/inclinectl'), '-s', self.control_socket(switch), '--json',
                               *words], capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"{switch}: inclinectl {' '.join(words)}: exit status {done.returncode}: {done.stderr.strip()}")
        try:
            return json.loads(done.stdout)
        except ValueError as e:
            raise LabError(f"{switch}: inclinectl {' '.join(words)}: {e}") from None

    def impair(self, switch, weather):
        """Has this weather ("impair" of a port; None: fine) on all ports of a switch from now on, each of a seed of its own:
        when this returns all workers have it, and the switch tells of it."""
        ports = [port['name'] for port in self.ctl(switch, 'ports')['ports']]
        want = {name: {**weather, 'seed': weather.get('seed', 1) + i} if weather else None for i, name in enumerate(ports)}
        for name in ports:
            words = []
            for field, value in (want[name] or {}).items():
                rows = [(f"lose.{r['opcode']}", r['loss']) for r in value] if field == 'lose' else [(field, value)]
                words += [f'{row}={number}' for row, number in rows]
            self.ctl(switch, 'port', 'impair', name, *words)
        have = {p['name']: p.get('impair') for p in self.ctl(switch, 'config', 'get')['config']['ports']}
        if not ports or have != want:
            raise LabError(f'{switch}: the weather is {have}, not {want}')

    def restart_switch(self, topo, name, impair=None):
        """As after a crash: killed, and started anew. Programs on hosts behind it lose their links."""
        write_json(self.path(f'{name}.json'), topo.switch_config(self, name, impair))
        self.restart(name)

    def restart(self, name):
        """The same with the configuration that the switch has."""
        with self.lock():
            self.switch(name)
            state = self.state()
            row = next(s for s in state['switches'] if s['name'] == name)
            self.end(row)
            self.run_switch(row, state)

    def end(self, row):
        """A process of the fabric, by force; it is gone then."""
        self.signal(row, signal.SIGKILL)
        for process in self.processes:
            if process.pid == row['pid']:
                process.wait()
        deadline = time.monotonic() + STOP_TIMEOUT
        while self.alive(row):
            if time.monotonic() > deadline:
                raise LabError(f"{row['name']}: process {row['pid']} does not end")
            time.sleep(0.02)

    def kill_node(self, name):
        """A switch or a virtual machine, as a crash ends it."""
        with self.lock():
            state = self.state()
            rows = {r['name']: r for r in state['switches'] + state['hosts'] if 'pid' in r}
            if name not in rows:
                raise LabError(f'{name}: no process of the fabric; there are ' + ', '.join(rows))
            self.end(rows[name])

    def logs(self):
        """What processes of the fabric have said: {name: file}."""
        state = self.state()
        files = {r['name']: self.path(f"{r['name']}.log") for r in state['switches'] + state.get('keepers', [])}
        files.update({h['name']: self.guest(h['name']).path('console') for h in state['hosts'] if h['nic'] == 'soft-roce'})
        return {name: path for name, path in files.items() if os.path.exists(path)}

    def topology_doc(self):
        self.state()
        with open(self.path('topology.json')) as f:
            return json.load(f)

    def state(self):
        try:
            with open(self.path('lab.json')) as f:
                return json.load(f)
        except FileNotFoundError:
            raise LabError('no fabric is up (tools/lab up FILE)') from None

    def alive(self, row):
        """A row without a start time is of a process that had ended before it was looked at."""
        return row.get('start') is not None and process_start(row['pid']) == row['start']

    def signal(self, row, number):
        """To a process that may end meanwhile."""
        if self.alive(row):
            try:
                os.kill(row['pid'], number)
            except ProcessLookupError:
                pass

    def host_in_use(self, name):
        """A program started by exec holds the host's lock as long as it runs."""
        with open(self.path(f'{name}.lock'), 'a') as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def status(self):
        state = self.state()
        up = {s['name']: self.alive(s) for s in state['switches']}
        nodes = [{'name': s['name'], 'kind': 'switch', 'ip': s['ip'],
                  'state': 'up' if up[s['name']] else 'dead'} for s in state['switches']]
        for h in state['hosts']:
            what = 'dead' if 'pid' in h and not self.alive(h) else \
                'busy' if self.host_in_use(h['name']) else 'idle' if up[h['switch']] else 'no switch'
            nodes.append({'name': h['name'], 'kind': 'host', 'ip': h['ip'], 'state': what})
        return {'nodes': nodes}

    def host(self, name):
        hosts = self.state()['hosts']
        for h in hosts:
            if h['name'] == name:
                return h
        raise LabError(f"{name}: no such host; there are " + ', '.join(h['name'] for h in hosts))

    def switch(self, name):
        switches = self.state()['switches']
        for s in switches:
            if s['name'] == name:
                return s
        raise LabError(f"{name}: no such switch; there are " + ', '.join(s['name'] for s in switches))

    def host_env(self, name, group='group.json'):
        """Environment in which a verbs program runs on a host's RNIC."""
        host = self.host(name)
        env = dict(os.environ)
        shim = self.state()['shim']
        others = [p for p in env.get('LD_PRELOAD', '').split(':') if p != shim]
        env['LD_PRELOAD'] = ':'.join(filter(None, [env.get('INCLINE_PRELOAD_FIRST'), shim, *others]))
        env['INCLINE_RNIC'] = ':'.join(self.path(f'{port}.json') for port in host['ports'])
        if os.path.exists(self.path(group)):  # a fabric of planes has none
            env['INCLINE_GROUP'] = self.path(group)
        if os.path.exists(self.path(f'{name}.paths.json')):
            env['INCLINE_PATHS'] = self.path(f'{name}.paths.json')
        env['INCLINE_RANK'] = str(host['rank'])
        return env

    def hold(self, name):
        """A file descriptor: as long as it is open, or a program has it, the host is busy."""
        lock = os.open(self.path(f'{name}.lock'), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)  # who asks at this moment whether the host is busy lets go at once
        return lock

    def exec(self, name, argv):
        """Replaces this process by a program on a host."""
        guest = self.host(name)['nic'] == 'soft-roce'
        env = None if guest else self.host_env(name)
        lock = self.hold(name)
        if guest:
            end_on_signals()
            raise SystemExit(self.popen(name, argv, limit=3600).wait())
        os.set_inheritable(lock, True)
        if not shutil.which(argv[0]):
            raise LabError(f'exec: {argv[0]}: no such program')
        argv = self.within(name, argv)
        os.execvpe(argv[0], argv, env)

    def within(self, name, argv):
        """The command that runs this one in the host's network namespace, if it has one."""
        netns = self.host(name).get('netns')
        return incline_netns.within(netns, name, argv) if netns else argv

    def guest_group(self, name, group):
        """A group file as a guest needs it: its own, for it knows this machine by another address."""
        with open(self.path(group)) as f:
            config = json.load(f)
        tcp = {s['name']: s['tcp'] for s in self.state()['switches']}
        for s in config['switches']:
            s['socket'] = tcp[s['name']].replace('127.0.0.1', incline_guest.GATEWAY)
        config['bootstrap'] = config['bootstrap'].replace('127.0.0.1', incline_guest.GATEWAY)
        path = self.path(f'{name}.guest', os.path.basename(group))
        write_json(path, config)
        return path

    def popen_guest(self, host, argv, group, limit, **kwargs):
        """A guest has this lab's folder as /host. Programs of ours are copied into it."""
        name, own = host['name'], self.guest_group(host['name'], group)
        program = os.path.abspath(shutil.which(argv[0]) or argv[0])
        if program.startswith(self.state()['build']):
            os.makedirs(self.path('bin'), exist_ok=True)
            copy = self.path('bin', os.path.basename(program))
            if not os.path.exists(copy) or os.path.getmtime(copy) < os.path.getmtime(program):
                shutil.copy2(program, copy)
            argv = [copy, *argv[1:]]
        else:
            argv = [os.path.basename(argv[0]), *argv[1:]]
        words = [own if a == self.path(group) else a for a in argv]
        words = [shlex.quote(w.replace(self.dir + '/', '/host/')) for w in words]
        env = f"INCLINE_GROUP={own.replace(self.dir, '/host')} INCLINE_RANK={host['rank']} "
        return self.guest(name).popen(env + ' '.join(words), limit, **kwargs)

    def popen(self, name, argv, group='group.json', limit=600, **kwargs):
        """limit: seconds, of programs in guests. Those have their output when they end."""
        host = self.host(name)
        if host['nic'] == 'soft-roce':
            return self.popen_guest(host, argv, group, limit, **kwargs)
        return subprocess.Popen(self.within(name, argv), env=self.host_env(name, group), **kwargs)

    def kill(self, state):
        """Names of what did not stop by itself. Nothing interrupts it."""
        with Undisturbed():
            for h in state['hosts']:
                self.signal(h, signal.SIGKILL)  # a guest has no disk
            rows = [s for s in state['switches'] + state.get('keepers', []) if self.alive(s)]
            for s in rows:
                self.signal(s, signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT
            while rows and time.monotonic() < deadline:
                time.sleep(0.02)
                for process in self.processes:
                    process.poll()
                rows = [s for s in rows if self.alive(s)]
            for s in rows:
                self.signal(s, signal.SIGKILL)
            for process in self.processes:
                process.wait()  # nothing of ours heeds no SIGKILL
            if any('netns' in h for h in state['hosts']):
                incline_netns.Netns(self.dir).remove()
            shutil.rmtree(self.dir, ignore_errors=True)
        return [s['name'] for s in rows]

    def down(self):
        with self.lock():
            return self.kill(self.state())
