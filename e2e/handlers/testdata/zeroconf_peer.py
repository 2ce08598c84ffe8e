"""Announces a service for each file NAME.json in a directory, with python-zeroconf.

A file that appears registers a service, one that changes updates it, and one that
disappears unregisters it. A file has "type", "port", "address", "properties" and,
optionally, "ttl" in seconds.
"""

import asyncio
import json
import pathlib
import socket
import sys

from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf


def info_of(name, fields):
    kind = fields["type"] + ".local."
    ttl = {"host_ttl": fields["ttl"], "other_ttl": fields["ttl"]} if "ttl" in fields else {}
    return AsyncServiceInfo(
        kind,
        f"{name}.{kind}",
        addresses=[socket.inet_aton(fields["address"])],
        port=fields["port"],
        properties=fields["properties"],
        server=name.replace(" ", "-") + "-zeroconf.local.",
        **ttl,
    )


async def main(directory, address):
    zeroconf = AsyncZeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
    known = {}
    while True:
        # What the functions of zeroconf return are its announcements, which take longer.
        found = {path.stem: path.read_text() for path in pathlib.Path(directory).glob("*.json")}
        for name in known.keys() - found.keys():
            await (await zeroconf.async_unregister_service(known.pop(name)[1]))
        added = []
        for name, text in found.items():
            if name not in known:
                info = info_of(name, json.loads(text))
                known[name] = (text, info)
                added.append(zeroconf.async_register_service(info, allow_name_change=True))
            elif known[name][0] != text:
                info = info_of(name, json.loads(text))
                known[name] = (text, info)
                await (await zeroconf.async_update_service(info))
        await asyncio.gather(*await asyncio.gather(*added))
        await asyncio.sleep(0.05)


asyncio.run(main(sys.argv[1], sys.argv[2]))
