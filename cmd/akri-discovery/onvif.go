package main

import "akri.sh/akri/discovery/embeddable"

const onvifManual = `onvif runs the handler onvif, which finds network cameras and other devices that
implement ONVIF. It sends probes on each network interface that can multicast,
listens for Hello and Bye, and asks each device for its properties. Multicast needs
the host network; without it, list addresses.

    discoveryHandler:
      name: onvif
      discoveryDetails: |
        ipAddresses: {action: Exclude, items: []}     # also macAddresses, scopes, uuids
        discoveryTimeoutSeconds: 2    # how long to wait for answers to a probe
        intervalSeconds: 10           # time between probes
        misses: 3                     # probes without an answer before a camera is checked
        interfaces: [eth1]            # default: all whose network can have other hosts
        addresses: [10.0.0.5, 10.1.0.0/28]    # also probe these by unicast
        id: url                       # or uuid, mac, serial, which survive a new IP address
        details: [information, streams]       # additional properties
        allowForeignXAddrs: false     # accept URLs on other hosts than the one that answers
        insecureSkipVerify: false     # accept any certificate

All keys are optional. A filter admits devices with one of its items (Include), or with
none of them (Exclude).

The id of a device is URL-UUID, or what the key id says. Its properties are
ONVIF_DEVICE_SERVICE_URL, ONVIF_DEVICE_UUID, ONVIF_DEVICE_IP_ADDRESS and
ONVIF_DEVICE_MAC_ADDRESS; with "information", ONVIF_DEVICE_MANUFACTURER,
ONVIF_DEVICE_MODEL, ONVIF_DEVICE_SERIAL_NUMBER, ONVIF_DEVICE_FIRMWARE and
ONVIF_DEVICE_HARDWARE; with "streams", ONVIF_STREAM_URI and ONVIF_SNAPSHOT_URI.
What a device does not report is missing.

Credentials come from discoveryProperties: username_default and password_default;
username_UUID and password_UUID, with "_" for "-" in the UUID; device_credential_list
and device_credential_ref_list. They are never properties of a device.

A camera is gone when it has missed several probes, or has sent Bye, and does not
answer requests either.

The environment variables in parentheses are the defaults of the flags.`

func onvifCommand(func(string) string) command {
	return command{
		use: "onvif", short: "Find network cameras", manual: onvifManual, onNetwork: true,
		handler: func() (embeddable.Handler, error) { return embeddable.ONVIF(), nil },
	}
}
