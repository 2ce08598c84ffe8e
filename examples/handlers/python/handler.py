#!/usr/bin/env python3
"""A discovery handler in Python: each file in a directory is a device.

It is a template: replace parse_details and find_devices, and the name.
The rest is what every handler needs: it serves the call Discover, registers
with the agent, registers again when the agent has restarted, and stops on
SIGTERM.
"""

import asyncio
import logging
import os
import signal
import sys

import grpc
import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
messages, services = grpc.protos_and_services("discovery.proto")

NAME = os.environ.get("HANDLER_NAME", "files")
DIRECTORY = os.environ.get("DISCOVERY_HANDLERS_DIRECTORY", "/var/lib/akri")
SCAN_SECONDS = 1.0
# The agent may have forgotten a handler that was offline for five minutes.
RENEW_SECONDS = 60.0
MAX_DEVICES = 1000
MAX_DETAILS_BYTES = 64 * 1024

log = logging.getLogger(NAME)


class InvalidDetails(Exception):
    """The author of the Configuration must correct discoveryDetails."""


def parse_details(text):
    """Returns the directory in discoveryDetails, or raises InvalidDetails."""
    if len(text.encode()) > MAX_DETAILS_BYTES:
        raise InvalidDetails(f"more than {MAX_DETAILS_BYTES} bytes")
    try:
        details = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidDetails(f"not valid YAML: {error}".replace("\n", " ")) from error
    if not isinstance(details, dict):
        raise InvalidDetails('want a map, such as "directory: /var/lib/cameras"')
    for key in details:
        if key != "directory":
            raise InvalidDetails(f"{key}: unknown key; the only key is directory")
    directory = details.get("directory")
    if not isinstance(directory, str) or not os.path.isabs(directory):
        raise InvalidDetails("directory: want an absolute path")
    return directory


def find_devices(directory):
    """Returns all devices, by id. A directory that does not exist has none."""
    try:
        names = sorted(entry.name for entry in os.scandir(directory) if entry.is_file())
    except FileNotFoundError:
        return {}
    return {name: {"FILE_NAME": name, "FILE_PATH": os.path.join(directory, name)} for name in names[:MAX_DEVICES]}


class Handler(services.DiscoveryHandlerServicer):
    async def Discover(self, request, context):
        """Sends the full list at once, even if it is empty, and when it has changed."""
        try:
            directory = parse_details(request.discovery_details)
        except InvalidDetails as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        sent = None
        try:
            while True:
                devices = await asyncio.to_thread(find_devices, directory)
                if devices != sent:
                    sent = devices
                    yield messages.DiscoverResponse(
                        devices=[messages.Device(id=id, properties=properties) for id, properties in devices.items()]
                    )
                await asyncio.sleep(SCAN_SECONDS)
        except asyncio.CancelledError:  # the agent no longer needs the devices
            return


def identity(path):
    """Identifies a socket: a restarted agent creates another one."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


async def register(agent, endpoint):
    request = messages.RegisterDiscoveryHandlerRequest(
        name=NAME, endpoint=endpoint, endpoint_type=messages.RegisterDiscoveryHandlerRequest.UDS, shared=False
    )
    async with grpc.aio.insecure_channel("unix:" + agent) as channel:
        await services.RegistrationStub(channel).RegisterDiscoveryHandler(request, timeout=5)


async def keep_registered(endpoint):
    """Registers with each new agent, and once a minute."""
    agent = os.path.join(DIRECTORY, "agent-registration.sock")
    registered, renew, failed = None, 0.0, False
    loop = asyncio.get_running_loop()
    while True:
        current = identity(agent)
        if current is not None and (current != registered or loop.time() >= renew):
            try:
                await register(agent, endpoint)
                if current != registered:
                    log.info("registered with the agent at %s", agent)
                registered, renew, failed = current, loop.time() + RENEW_SECONDS, False
            except grpc.aio.AioRpcError as error:
                if not failed:
                    log.warning("could not register with the agent; retrying: %s", error.details())
                registered, failed = None, True
        await asyncio.sleep(1)


async def main():
    endpoint = os.path.join(DIRECTORY, NAME + ".sock")
    if os.path.exists(endpoint):  # of an earlier run
        os.remove(endpoint)
    server = grpc.aio.server()
    services.add_DiscoveryHandlerServicer_to_server(Handler(), server)
    server.add_insecure_port("unix:" + endpoint)
    await server.start()
    log.info("listening at %s", endpoint)

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stop.set)
    registration = asyncio.create_task(keep_registered(endpoint))
    await stop.wait()
    registration.cancel()
    await server.stop(grace=0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    asyncio.run(main())
