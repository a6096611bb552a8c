# SPDX-License-Identifier: BSD-3-Clause
"""Linux hosts with Soft-RoCE (rdma_rxe), each a small virtual machine: for fabrics of tools/lab whose hosts
have "nic": "soft-roce". Their Ethernet port is a vhost-user port of a switch. A second one leads to the
machine that they run on (10.0.2.2 there), and nowhere else: what a management network is to real hosts."""
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GATEWAY = '10.0.2.2'  # the guests' name for this machine's 127.0.0.1
BOOT_TIMEOUT = 90
MEMORY_MB = 256
# QEMU does no offloads: frames look as they would on a wire.
PLAIN = ','.join(f'{f}=off' for f in ('csum', 'gso', 'guest_csum', 'guest_tso4', 'guest_tso6', 'guest_ecn',
                                      'guest_ufo', 'host_tso4', 'host_tso6', 'host_ecn', 'host_ufo', 'mq'))


class GuestError(Exception):
    pass


def cache_dir():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.environ.get('HOME') or '/tmp', '.cache')
    return os.environ.get('INCLINE_GUEST') or os.path.join(base, 'incline', 'guest')


def why_not():
    """Why guests cannot run here, or None. Builds what they boot if need be (minutes if downloads are slow)."""
    if os.uname().machine != 'x86_64':
        return f'guests are built for x86_64 only, this is {os.uname().machine}'
    for program in ('qemu-system-x86_64', 'apt-get', 'dpkg'):
        if not shutil.which(program):
            return f'{program} is not installed (tools/setup --interop)'
    try:
        done = subprocess.run([os.path.join(HERE, 'guest/build'), cache_dir()], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f'tools/guest/build: {e}'
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def has_kvm():
    """/dev/kvm alone does not say so: without VMX or SVM a guest runs in it far slower than emulated."""
    with open('/proc/cpuinfo') as f:
        flags = f.read().split()
    return os.access('/dev/kvm', os.R_OK | os.W_OK) and ('vmx' in flags or 'svm' in flags)


class GuestProcess:
    """A program in a guest, with what is needed of subprocess.Popen's interface. Its output is there as soon
    as it has ended."""
    serial = 0

    def __init__(self, guest, command, limit, show):
        GuestProcess.serial += 1
        self.guest, self.returncode, self.show = guest, None, show
        self.name = f'job{os.getpid()}-{GuestProcess.serial}'
        with open(self.file('sh'), 'w') as f:
            f.write(command + '\n')
        guest.ring(f'{self.name} {limit}')

    def file(self, ending):
        return self.guest.path(f'{self.name}.{ending}')

    def read(self, ending):
        try:
            with open(self.file(ending), errors='replace') as f:
                return f.read()
        except FileNotFoundError:
            return ''  # the guest has not come to it

    def poll(self):
        if self.returncode is None:
            try:
                with open(self.file('rc')) as f:
                    self.returncode = int(f.read())
                for ending, to in ('out', sys.stdout), ('err', sys.stderr):
                    if self.show[ending]:
                        to.write(self.read(ending))
                        to.flush()
            except FileNotFoundError:
                if not self.guest.alive():
                    raise GuestError(f'{self.guest.name}: the guest has ended\n{self.guest.console()}') from None
        return self.returncode

    def wait(self, timeout=None):
        deadline = time.monotonic() + (timeout if timeout is not None else 1e9)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.name, timeout)
            time.sleep(0.02)
        return self.returncode

    def communicate(self, timeout=None):
        self.wait(timeout)
        return self.read('out'), self.read('err')

    def kill(self):
        if self.poll() is None:
            self.guest.ring(f'{self.name} 0')


class Guest:
    """One guest: all that is known of it is in its folder, so that another process can find it there."""

    def __init__(self, name, directory, share):
        """directory: of its own, within share, which the guest sees as /host."""
        self.name, self.dir, self.share = name, directory, share

    def path(self, name):
        return os.path.join(self.dir, name)

    def pid(self):
        with open(self.path('pid')) as f:
            return int(f.read())

    def alive(self):
        try:
            with open(f'/proc/{self.pid()}/stat') as f:
                return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
        except (OSError, ValueError):
            return False

    def console(self):
        text = ''
        for name in ('qemu.log', 'console'):
            try:
                with open(self.path(name), errors='replace') as f:
                    text += f.read()[-2000:]
            except OSError:
                pass
        return text

    def ring(self, line):
        if not self.alive():
            raise GuestError(f'{self.name}: the guest has ended\n{self.console()}')
        with open(self.path('bell.in'), 'w') as f:
            f.write(line + '\n')

    def start(self, socket, mac, addresses, mtu):
        """Boots; returns at once, see await_ready. socket: of the switch's vhost-user port. addresses: with
        prefix lengths. The process is left running when ours ends."""
        os.makedirs(self.dir)
        for end in ('bell.in', 'bell.out'):
            os.mkfifo(self.path(end))
        accel = ['kvm', '-cpu', 'host'] if has_kvm() else ['tcg,tb-size=128']
        # Rings of 256 overflow. Without KVM, MSI-X on vhost-user crashes QEMU 7.2: vectors=0.
        data = (f'virtio-net-pci,netdev=n0,mac={mac},host_mtu={mtu},{PLAIN},rx_queue_size=1024,tx_queue_size=1024'
                + ('' if len(accel) > 1 else ',vectors=0'))
        words = f'HOST={self.name} JOBS=/host/{os.path.relpath(self.dir, self.share)} MAC={mac} IP={",".join(addresses)} MTU={mtu}'
        argv = ['qemu-system-x86_64', '-name', self.name, '-nodefaults', '-no-user-config', '-display', 'none',
                '-no-reboot', '-machine', 'q35,hpet=off,memory-backend=m0', '-accel', *accel, '-smp', '1',
                '-m', str(MEMORY_MB), '-object', f'memory-backend-memfd,id=m0,share=on,size={MEMORY_MB}M',
                '-kernel', os.path.join(cache_dir(), 'vmlinux'), '-initrd', os.path.join(cache_dir(), 'initrd.cpio'),
                '-append', 'console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check mitigations=off ' + words,
                '-serial', 'file:' + self.path('console'),
                '-chardev', 'pipe,id=bell,path=' + self.path('bell'), '-serial', 'chardev:bell',
                '-virtfs', f'local,path={self.share},mount_tag=host,security_model=none',
                '-chardev', f'socket,id=c0,path={socket}', '-netdev', 'vhost-user,id=n0,chardev=c0', '-device', data,
                '-netdev', 'user,id=n1,ipv6=off', '-device', 'virtio-net-pci,netdev=n1']
        with open(self.path('qemu.log'), 'w') as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            process_group=0)  # docs/lab.md, "A crowded machine"
        with open(self.path('pid'), 'w') as f:
            f.write(str(self.process.pid))
        return self.process

    def await_ready(self):
        deadline = time.monotonic() + BOOT_TIMEOUT
        while not os.path.exists(self.path('ready')):
            if not self.alive():
                raise GuestError(f'{self.name} did not start:\n{self.console()}')
            if time.monotonic() > deadline:
                raise GuestError(f'{self.name} is not up after {BOOT_TIMEOUT} s:\n{self.console()}')
            time.sleep(0.05)

    def popen(self, command, limit=60, stdout=None, stderr=None):
        """Runs a line of shell; it is killed after limit seconds. stdout, stderr: None to show them when it
        has ended; communicate() has them in any case."""
        return GuestProcess(self, command, limit, {'out': stdout is None, 'err': stderr is None})

    def run(self, command, limit=60):
        """(exit status, stdout, stderr)"""
        process = self.popen(command, limit, subprocess.PIPE, subprocess.PIPE)
        out, err = process.communicate(limit + 10)
        return process.returncode, out, err

    def stop(self):
        if self.alive():
            os.kill(self.pid(), signal.SIGKILL)  # it has no disk
