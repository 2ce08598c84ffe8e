"""Sends the message on standard input to the multicast group of WS-Discovery, and prints
the answers of three seconds.

usage: probe.py INTERFACE_ADDRESS
"""
import socket
import sys
import time

message = sys.stdin.buffer.read()
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind((sys.argv[1], 0))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[1]))
for _ in range(2):
    sender.sendto(message, ("239.255.255.250", 3702))
    time.sleep(0.1)
end = time.monotonic() + 3
while (left := end - time.monotonic()) > 0:
    sender.settimeout(left)
    try:
        print(sender.recv(65535).decode())
    except TimeoutError:
        break
