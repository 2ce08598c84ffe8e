"""Runs the network side of ipycam: WS-Discovery, the ONVIF services and the web server.

Its pictures need OpenCV, which is replaced by a fixed picture here.

usage: virtual_camera.py ADDRESS PORT UUID USER PASSWORD
"""
import socketserver
import sys
import threading
import types
from unittest import mock

cv2 = mock.MagicMock()
cv2.imencode.return_value = (True, types.SimpleNamespace(tobytes=lambda: b"picture of the gate"))
cv2.IMWRITE_JPEG_QUALITY = 1
sys.modules.update({"cv2": cv2, "numpy": mock.MagicMock()})

from ipycam.config import CameraConfig  # noqa: E402
from ipycam.discovery import WSDiscoveryServer  # noqa: E402
from ipycam.http import IPCameraHTTPHandler  # noqa: E402
from ipycam.onvif import ONVIFService  # noqa: E402

address, port, uuid, user, password = sys.argv[1:]
config = CameraConfig(name="gate", local_ip=address, onvif_port=int(port), username=user, password=password)
service = ONVIFService(config)
service.device_uuid = "urn:uuid:" + uuid
IPCameraHTTPHandler.camera = types.SimpleNamespace(
    config=config, onvif=service, get_snapshot_frame=lambda: "a frame")


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server(("", config.onvif_port), IPCameraHTTPHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
discovery = WSDiscoveryServer(service)
discovery.start()
print("camera at", config.onvif_url, flush=True)
threading.Event().wait()
