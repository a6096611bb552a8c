#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages, from tools/package to their purge, in a root of their own: a layer over this machine's, of which nothing
stays. The units' programs run under the units' own rules, as far as can be without systemd: read-only file system,
capabilities, group, umask, no new privileges. Run by meson test, or by hand:

  tests/integration/package.py [--clean-root] [TEST...]

With --clean-root the layer lies over a minimal Debian instead, made by mmdebstrap from the mirror of this machine, into
which apt has brought what the packages depend on. Takes root."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_netns  # noqa: E402

PATIENCE = 1500  # seconds: hangs only
PACKAGES = ['incline-dev', 'incline-doc', 'incline-host', 'incline-switch']
PROGRAMS = {'incline-switch': ['incline-dissect', 'incline-manager', 'incline-switch', 'inclinectl'],
            'incline-host': ['incline-map', 'incline-mrcperf', 'incline-perf', 'incline-train'],
            'incline-dev': ['incline-flowsim', 'incline-sim']}
# Of dpkg's, and of its triggers': everything else is a trace.
KEPT = re.compile(r'/(var/(lib/dpkg|log|cache|lib/systemd/deb-systemd-helper\S*)|etc/(g?shadow|group|passwd)-?|etc/\.pwd\.lock'
                  r'|etc/ld\.so\.cache|debs)(/|$)')


def output(*argv, **kwargs):
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, **kwargs)
    if done.returncode:
        raise AssertionError(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def readme():
    with open(os.path.join(TOP, 'deploy', 'README.md'), encoding='utf-8') as f:
        return f.read()


class Root:
    """A layer over another root, with proc, sys, dev and an empty run."""

    def __init__(self, lower, debs):
        self.layer = tempfile.mkdtemp(prefix='layer-')
        output('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', self.layer)
        self.upper, self.path = os.path.join(self.layer, 'upper'), os.path.join(self.layer, 'root')
        for name in 'upper', 'work', 'root':
            os.mkdir(os.path.join(self.layer, name))
        output('mount', '-t', 'overlay', 'overlay', '-o',
               f'lowerdir={lower},upperdir={self.upper},workdir={self.layer}/work', self.path)
        for name in 'dev', 'sys':
            output('mount', '--rbind', '/' + name, self.at(name))
        output('mount', '-t', 'proc', 'proc', self.at('proc'))
        output('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', self.at('run'))
        shutil.copytree(debs, self.at('debs'))

    def at(self, path):
        return os.path.join(self.path, path.lstrip('/'))

    def read(self, path):
        with open(self.at(path), encoding='utf-8') as f:
            return f.read()

    def run(self, *argv, env=None):
        return output('chroot', self.path, *argv,
                      env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'DEBIAN_FRONTEND': 'noninteractive', **(env or {})})

    def as_user(self, group, *argv):
        return self.run('setpriv', '--reuid', 'nobody', '--regid', group, '--clear-groups', *argv)

    def traces(self):
        """What the layer has that the root below has not, or not so."""
        found = []
        for folder, dirs, files in os.walk(self.upper):
            for name in dirs + files:
                path = os.path.join(folder, name)
                inside = path[len(self.upper):]
                is_new = not os.path.lexists(os.path.join(LOWER, inside[1:]))
                if not KEPT.match(inside) and (is_new or not stat.S_ISDIR(os.lstat(path).st_mode)):
                    found.append(inside)
        return found


class Unit:
    """A unit as it is installed, and its program as systemd would start it."""

    SANDBOX = """set -e
root=$1 writable=$2; shift 2
for path in $writable; do mount --bind "$root$path" "$root$path"; done
mount -o remount,bind,ro "$root"
mount -o remount,bind,ro "$root/run"
for path in /home /root; do mount -t tmpfs -o ro,mode=000 tmpfs "$root$path"; done
exec chroot "$root" "$@"
"""

    def __init__(self, name, instance=''):
        self.settings, self.commands = {}, {'ExecStartPre': [], 'ExecStart': [], 'ExecReload': []}
        for line in root.read(f'/lib/systemd/system/{name}.service').replace('%i', instance).splitlines():
            key, equals, value = line.partition('=')
            if key in self.commands:
                self.commands[key].append(value)
            elif equals and not line.startswith('#'):
                self.settings[key] = value
        self.address = f'/run/notify-{name}{instance}'
        self.notify = self.process = None

    def folder(self, path, mode):
        group = next(line.split(':')[2] for line in root.read('/etc/group').splitlines()
                     if line.startswith(self.settings['Group'] + ':'))
        os.makedirs(root.at(path), exist_ok=True)
        os.chown(root.at(path), 0, int(group))
        os.chmod(root.at(path), int(mode, 8))
        return path

    def sandboxed(self, command):
        writable = self.settings.get('ReadWritePaths', '').split()
        for what, where in ('Runtime', '/run/'), ('State', '/var/lib/'):
            if what + 'Directory' in self.settings:
                writable.append(self.folder(where + self.settings[what + 'Directory'], self.settings[what + 'DirectoryMode']))
        caps = ['-all'] + ['+' + cap[4:].lower() for cap in self.settings['CapabilityBoundingSet'].split()]
        bounds = ['--bounding-set', ','.join(caps), '--inh-caps', '-all', '--no-new-privs', '--regid', self.settings['Group'],
                  '--clear-groups']
        return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', self.SANDBOX, 'sh', root.path, ' '.join(writable),
                'setpriv', *bounds, *command.split()]

    def start(self):
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.settimeout(PATIENCE)
        self.notify.bind(root.at(self.address))
        env = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'NOTIFY_SOCKET': self.address,
               'WATCHDOG_USEC': str(int(self.settings['WatchdogSec']) * 1000000),
               'RUNTIME_DIRECTORY': '/run/' + self.settings['RuntimeDirectory']}
        umask = int(self.settings['UMask'], 8)
        for command in self.commands['ExecStartPre']:
            output(*self.sandboxed(command), env=env, umask=umask)
        self.process = subprocess.Popen(self.sandboxed(self.commands['ExecStart'][0]), env=env, umask=umask, text=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.expect('READY=1')
        self.expect('WATCHDOG=1')

    def expect(self, state):
        """The next thing that the program tells, but for its life."""
        said = ''
        while said != state and said in ('', 'WATCHDOG=1'):
            said = self.notify.recv(100).decode()
        assert said == state, (said, state)

    def reload(self):
        for command in self.commands['ExecReload']:
            root.run(*command.replace('$MAINPID', str(self.process.pid)).split())
        self.expect('RELOADING=1')
        self.expect('READY=1')

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=PATIENCE)[1]
        self.expect('STOPPING=1')
        self.notify.close()
        os.unlink(root.at(self.address))
        assert self.process.returncode == 0, said


def elf_files(package):
    for path in root.run('dpkg', '-L', package).split():
        if os.path.isfile(root.at(path)) and not os.path.islink(root.at(path)):
            with open(root.at(path), 'rb') as f:
                if f.read(4) == b'\x7fELF':
                    yield path


class Package(unittest.TestCase):
    """In the order of their numbers."""

    def test_1_installed(self):
        root.run('sh', '-c', 'dpkg -i /debs/*.deb')
        self.assertEqual(root.run('dpkg', '--verify', *PACKAGES), '')
        self.assertRegex(root.read('/etc/group'), r'(?m)^incline:x:\d+:$')
        for package, programs in PROGRAMS.items():
            for program in programs:
                self.assertIn(program, root.run(program, '--help'), package)
            for path in elf_files(package):
                if 'libincline_mpi' not in path:  # of the MPI that the host has
                    self.assertNotIn('not found', root.run('ldd', path), path)
        self.check_readme()
        shown = root.run('dpkg-query', '-W', '-f', '${Package} ${Depends}\n', 'incline-switch', 'incline-host')
        for driver in 'memif', 'af-packet', 'tap', 'vhost', 'pcap', 'null':
            self.assertEqual(shown.count(f'librte-net-{driver}23'), 2, driver)

    def check_readme(self):
        """What it says is in a package is there."""
        rows = re.findall(r'(?m)^\| `(incline-\w+)` \| (.*) \|$', readme())
        self.assertEqual(sorted(name for name, _ in rows), PACKAGES)
        for package, text in rows:
            there = root.run('dpkg', '-L', package).split()
            for name in re.findall(r'`([^`]+)`', text):
                if '.' in name or name.startswith(('/', 'incline')):
                    self.assertTrue([path for path in there if path == name or path.endswith('/' + name)], (package, name))

    def test_2_units(self):
        """systemd takes them, and nothing was started or enabled."""
        units = ['incline-switch.service', 'incline-switch@leaf0.service', 'incline-manager.service']
        if os.path.exists(root.at('/usr/bin/systemd-analyze')):
            self.assertEqual(root.run('systemd-analyze', 'verify', *units), '')
        self.assertEqual(glob.glob(root.at('/etc/systemd/system/**/*incline*'), recursive=True), [])
        self.assertIn('/etc/incline/leaf0.json', Unit('incline-switch@', 'leaf0').commands['ExecStart'][0])

    def device(self, **env):
        return root.run('ibv_devinfo', '-d', 'incline0',
                        env=dict(env, INCLINE_RNIC='/usr/share/incline/pmd-configs/rnic-memif.json'))

    def test_3_switch(self):
        switch = Unit('incline-switch')
        switch.start()
        self.assertEqual(stat.S_IMODE(os.stat(root.at('/run/incline/switch.sock')).st_mode), 0o660)
        self.assertIn('ports_up', root.as_user('incline', 'inclinectl', 'status'))
        with self.assertRaisesRegex(AssertionError, "permission denied: be root or in the socket's group"):
            root.as_user('nogroup', 'inclinectl', 'status')
        with urllib.request.urlopen('http://127.0.0.1:9111/metrics', timeout=PATIENCE) as answer:
            page = answer.read().decode()
        self.assertIn('incline_port_link{port="h0",', page)
        self.assertTrue(page.endswith('# EOF\n'))
        # The host's package on the switch's port, both ways.
        libdir = os.path.dirname(root.run('sh', '-c', 'dpkg -L incline-host | grep /libincline_verbs.so').strip())
        self.assertIn('PORT_ACTIVE', self.device(LD_PRELOAD='libincline_verbs.so'))
        self.assertIn('PORT_ACTIVE', self.device(LD_LIBRARY_PATH=libdir + '/incline'))
        self.check_reload(switch)
        self.check_others(switch)
        switch.stop()
        self.assertEqual([f for f in os.listdir(root.at('/run/incline')) if f.startswith('switch.sock')], [])

    def check_reload(self, switch):
        config = json.loads(root.read('/etc/incline/switch.json'))
        config['tables']['neigh'][0]['data']['mac'] = '02:00:00:00:00:0c'
        with open(root.at('/etc/incline/switch.json'), 'w', encoding='utf-8') as f:
            json.dump(config, f)
        switch.reload()
        said = []  # ports come up when they do
        while not said or 'tables loaded' not in said[-1]:
            said.append(switch.process.stderr.readline())
            self.assertTrue(said[-1], said)  # it has ended
        self.assertTrue(any('metrics at' in line for line in said), said)
        self.assertIn('tables loaded: 0 added, 1 changed, 0 removed, 1 kept', said[-1])
        root.run('inclinectl', 'config', 'save')  # /etc/incline may be written
        with open(root.at('/etc/incline/switch.json'), 'a', encoding='utf-8') as f:
            f.write('}')
        with self.assertRaisesRegex(AssertionError, r'switch\.json:\d+:\d+: '):
            switch.reload()
        root.run('inclinectl', 'config', 'save')

    def check_others(self, switch):
        """Another switch, and the manager, come and go beside it."""
        with open(root.at('/etc/incline/leaf0.json'), 'w', encoding='utf-8') as f:
            json.dump({'name': 'leaf0', 'control': '/run/incline/leaf0.sock', 'addresses': ['10.77.0.2'],
                       'ports': [{'name': 'p0', 'type': 'null'}]}, f)
        leaf, manager = Unit('incline-switch@', 'leaf0'), Unit('incline-manager')
        leaf.start()
        self.assertIn('leaf0', root.as_user('incline', 'inclinectl', '-s', '/run/incline/leaf0.sock', 'version'))
        manager.start()
        deadline = time.monotonic() + PATIENCE
        while ('switch', 'up') not in [
                (node['name'], node['state'])
                for node in json.loads(root.as_user('incline', 'inclinectl', '--json', 'topology'))['nodes']]:
            self.assertLess(time.monotonic(), deadline, 'the manager does not find the switch')
            time.sleep(0.1)
        manager.stop()
        leaf.stop()
        self.assertTrue(os.path.exists(root.at('/var/lib/incline/manager.db')))
        self.assertIsNone(switch.process.poll())
        root.run('inclinectl', 'ping')
        os.unlink(root.at('/etc/incline/leaf0.json'))

    def test_4_upgrade_keeps_what_was_changed(self):
        before = root.read('/etc/incline/switch.json')
        root.run('sh', '-c', 'dpkg -i /debs/incline-switch_*.deb')
        self.assertEqual(root.read('/etc/incline/switch.json'), before)
        self.assertIn('02:00:00:00:00:0c', before)

    def test_5_removed_and_purged(self):
        root.run('dpkg', '-r', *PACKAGES)
        self.assertTrue(os.path.exists(root.at('/etc/incline/switch.json')))
        self.assertFalse(os.path.exists(root.at('/usr/bin/incline-switch')))
        root.run('dpkg', '-P', *PACKAGES)
        self.assertRegex(root.read('/etc/group'), '(?m)^incline:')  # there may be files of it
        self.assertFalse(os.path.exists(root.at('/run/incline')))
        self.assertEqual(root.traces(), [])


def clean_root(path, debs):
    """A minimal Debian with what the packages depend on, which apt finds; they themselves are gone again, with their
    group."""
    output('mmdebstrap', '--variant=apt', '--include=ibverbs-utils,ibverbs-providers', 'bookworm', path)
    shutil.copytree(debs, os.path.join(path, 'debs'))
    os.environ.update(DEBIAN_FRONTEND='noninteractive')
    switch = re.search(r'sudo apt install \./build-package/(\S+\.deb)', readme()).group(1)
    for command in ('apt-get update -q', f'apt-get install -q -y --no-install-recommends /debs/{switch}',
                    'apt-get install -q -y --no-install-recommends /debs/*.deb', f"apt-get purge -q -y {' '.join(PACKAGES)}",
                    'groupdel incline'):
        output('chroot', path, 'sh', '-c', command)
    shutil.rmtree(os.path.join(path, 'debs'))


def main():
    """Builds, then goes on in namespaces that end with it."""
    os.umask(0o022)
    why = incline_netns.why_no_other_root()
    if why:
        Package.setUpClass = classmethod(lambda cls: cls.skipTest(cls, why))
        unittest.main(verbosity=2)
    arguments = [a for a in sys.argv[1:] if a != '--clean-root']
    with tempfile.TemporaryDirectory(prefix='package-') as d:
        debs, lower = os.path.join(d, 'debs'), '/'
        print(output(os.path.join(TOP, 'tools/package'), debs), file=sys.stderr)
        if '--clean-root' in sys.argv:
            lower = os.path.join(d, 'clean')
            clean_root(lower, debs)
        return subprocess.run(['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation',
                               'private', sys.executable, os.path.abspath(__file__), *arguments],
                              env=dict(os.environ, INCLINE_PACKAGES=debs, INCLINE_LOWER=lower, TMPDIR=d), check=False).returncode


if __name__ == '__main__':
    LOWER = os.environ.get('INCLINE_LOWER')
    if not LOWER:
        sys.exit(main())
    output('ip', 'link', 'set', 'lo', 'up')
    root = Root(LOWER, os.environ['INCLINE_PACKAGES'])
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as systemd starts programs, also below nohup
    unittest.main(verbosity=2)
