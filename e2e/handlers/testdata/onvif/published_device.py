"""Publishes an ONVIF device with the package WSDiscovery, with a device service that only
tells the time, until the file BYE exists. Then it says Bye.

usage: published_device.py ADDRESS PORT UUID BYE
"""
import http.server
import os
import sys
import threading
import time

from wsdiscovery.publishing import ThreadedWSPublishing
from wsdiscovery.qname import QName
from wsdiscovery.scope import Scope

address, port, uuid, bye = sys.argv[1:]


class Device(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        now = time.gmtime()
        if b"GetSystemDateAndTime" in request:
            status, content = 200, (
                "<t:GetSystemDateAndTimeResponse><t:SystemDateAndTime><tt:UTCDateTime>"
                f"<tt:Time><tt:Hour>{now.tm_hour}</tt:Hour><tt:Minute>{now.tm_min}</tt:Minute>"
                f"<tt:Second>{now.tm_sec}</tt:Second></tt:Time><tt:Date><tt:Year>{now.tm_year}</tt:Year>"
                f"<tt:Month>{now.tm_mon}</tt:Month><tt:Day>{now.tm_mday}</tt:Day></tt:Date>"
                "</tt:UTCDateTime></t:SystemDateAndTime></t:GetSystemDateAndTimeResponse>")
        else:
            status, content = 400, (
                "<s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>ter:ActionNotSupported"
                "</s:Value></s:Subcode></s:Code><s:Reason><s:Text>no</s:Text></s:Reason></s:Fault>")
        body = (
            '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:tt="http://www.onvif.org/ver10/schema"'
            f' xmlns:t="http://www.onvif.org/ver10/device/wsdl"><s:Body>{content}</s:Body></s:Envelope>').encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/soap+xml; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("", int(port)), Device)
threading.Thread(target=server.serve_forever, daemon=True).start()
publishing = ThreadedWSPublishing(uuid_="urn:uuid:" + uuid)
publishing.start()
publishing.publishService(
    types=[QName("http://www.onvif.org/ver10/network/wsdl", "NetworkVideoTransmitter")],
    scopes=[Scope("onvif://www.onvif.org/location/yard")],
    xAddrs=[f"http://{address}:{port}/onvif/device_service"])
print("published", flush=True)
while not os.path.exists(bye):
    time.sleep(0.02)
server.shutdown()
server.server_close()
publishing.clearLocalServices()  # says Bye; stop does not
time.sleep(1)  # a thread sends the copies
publishing.stop()
