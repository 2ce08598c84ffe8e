"""OPC UA servers of asyncua: a discovery server, and a server that registers with it.

Usage: opcua_servers.py HOST. The discovery server listens at port 4841, the other at port
4855. It listens at HOST but announces "localhost", as carelessly installed servers do.
"""

import asyncio
import sys

from asyncua import Server, ua


async def start(name, host, port, announced):
    server = Server()
    await server.init()
    server.set_endpoint(f"opc.tcp://{host}:{port}/{name.lower()}")
    server.set_server_name(name)
    await server.set_application_uri(f"urn:plant:{name.lower()}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    space = await server.register_namespace("urn:plant")
    value = await server.nodes.objects.add_variable(ua.NodeId("temperature", space), "temperature", 21.5)
    await value.set_read_only()
    await server.start()
    if announced:
        server.set_endpoint(f"opc.tcp://{announced}:{port}/{name.lower()}")
    return server


async def main():
    host = sys.argv[1]
    discovery = await start("Discovery", host, 4841, None)
    press = await start("Press", host, 4855, "localhost")
    await press.register_to_discovery(f"opc.tcp://{host}:4841", period=5)
    for description in await discovery.find_servers():
        print(description.ApplicationName.Text, description.ApplicationType, description.DiscoveryUrls, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
