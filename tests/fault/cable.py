"""Cable: two network namespaces and the line between them, whose middle is this process: packets can be lost, late, or cut in two.

Each namespace has a TUN device; a thread carries IP packets from one to the other. Needs root."""
import fcntl
import heapq
import itertools
import os
import random
import select
import struct
import subprocess
import threading
import time

ADDRESSES = ("10.77.0.1", "10.77.0.2")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
TCP, RST, ACK = 6, 0x04, 0x10
_number = itertools.count()


def missing():
    """Why it cannot be had here; "" when it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    return ""


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


class Cable:
    """Up from the start; all is removed at the end of `with`. The attributes may be set at any time.

    down    until when (time.monotonic) nothing goes through
    loss    probability with which a packet is lost
    delay   seconds that a packet is on its way
    cut     True: the next segment with enough data comes through by half, and both ends get a reset; then False again
    """

    def __init__(self, seed):
        self.down, self.loss, self.delay, self.cut = 0.0, 0.0, 0.0, False
        self._random = random.Random(seed)
        self._late = []  # heap of (when, order, to, packet)
        self._order = itertools.count()
        self.names, self._devices = [], []
        for end, address in zip("ab", ADDRESSES):
            name = f"cairn{os.getpid()}-{next(_number)}{end}"
            ip("netns", "add", name)
            self.names.append(name)
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            interface = f"cf{os.getpid() % 100000}x{next(_number)}"
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", interface.encode(), IFF_TUN | IFF_NO_PI))
            self._devices.append(device)
            ip("link", "set", interface, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", interface)
            for link in ("lo", interface):
                ip("-n", name, "link", "set", link, "up")
        self._running = True
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._running = False
        self._thread.join()
        for device in self._devices:
            os.close(device)
        for name in self.names:
            ip("netns", "del", name)

    def inside(self, end):
        """What goes in front of a command that is to run at this end."""
        return ["ip", "netns", "exec", self.names[end]]

    def _carry(self):
        while self._running:
            ready, *_ = select.select(self._devices, [], [], 0.002 if self._late else 0.05)
            for device in ready:
                to = self._devices[1 - self._devices.index(device)]
                packet = os.read(device, 65536)
                if self._is_down() or self._random.random() < self.loss:
                    continue
                if self.cut and (parts := cut_in_two(packet)):
                    self.cut = False
                    half, onwards, back = parts
                    for end, what in ((to, half), (to, onwards), (device, back)):
                        self._put(end, what)
                elif self.delay:
                    heapq.heappush(self._late, (time.monotonic() + self.delay, next(self._order), to, packet))
                else:
                    self._put(to, packet)
            while self._late and self._late[0][0] <= time.monotonic():
                *_, to, packet = heapq.heappop(self._late)
                if not self._is_down():
                    self._put(to, packet)

    def _is_down(self):
        return time.monotonic() < self.down

    @staticmethod
    def _put(device, packet):
        try:
            os.write(device, packet)
        except BlockingIOError:
            pass  # its queue is full: one more that is lost


def cut_in_two(packet):
    """A TCP segment by half, a reset behind it, and one for its sender; None when it has less than 32 bytes of data."""
    if packet[0] >> 4 != 4 or packet[9] != TCP:
        return None
    ip_bytes = (packet[0] & 15) * 4
    data_at = ip_bytes + (packet[ip_bytes + 12] >> 4) * 4
    half = (len(packet) - data_at) // 2
    if half < 16:
        return None
    source, target = packet[12:16], packet[16:20]
    from_port, to_port, sequence, acknowledged = struct.unpack_from("!HHII", packet, ip_bytes)
    front = packet[:data_at + half]
    return (datagram(source, target, front[ip_bytes:]),
            datagram(source, target, segment(from_port, to_port, sequence + half, 0, RST)),
            datagram(target, source, segment(to_port, from_port, acknowledged, sequence + half, RST | ACK)))


def segment(from_port, to_port, sequence, acknowledged, flags):
    return struct.pack("!HHIIBBHHH", from_port, to_port, sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF, 5 << 4, flags, 0, 0, 0)


def datagram(source, target, tcp):
    """An IPv4 packet, with the sums of both headers."""
    pseudo = source + target + struct.pack("!BBH", 0, TCP, len(tcp))
    tcp = tcp[:16] + b"\0\0" + tcp[18:]
    tcp = tcp[:16] + internet_sum(pseudo + tcp) + tcp[18:]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, TCP, 0) + source + target
    return head[:10] + internet_sum(head) + head[12:] + tcp


def internet_sum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)
