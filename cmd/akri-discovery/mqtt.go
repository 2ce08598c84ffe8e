package main

import (
	"log/slog"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/mqtt"
)

const mqttManual = `mqtt runs the handler mqtt. It connects to a broker for each Configuration and finds
the devices that announce themselves there.

    discoveryHandler:
      name: mqtt
      discoveryDetails: |
        broker:
          url: tls://broker.plant:8883      # or tcp://HOST:1883
          clientIdPrefix: akri              # default
          caProperty: ca.crt                # the discoveryProperty with the CA, in PEM
          certProperty: tls.crt             # client certificate; default none
          keyProperty: tls.key
          serverName: broker                # name in the certificate; default the host
        convention: homie                   # homie, homeAssistant, sparkplug, tasmota,
                                            # zigbee2mqtt or topics; required
        prefix: homie                       # beginning of the topics; the default depends
                                            # on the convention
        filters:                            # default none; * stands for any text
          ids: {action: Exclude, items: ["test-*"]}
          names: {action: Include, items: ["Pump*"]}
          manufacturers: {action: Include, items: [Acme]}
          models: {action: Include, items: ["X*"]}
        offlineAfterSeconds: 0              # how long a device may be offline
        rebirth: false                      # Sparkplug: ask edge nodes for births
      discoveryProperties:
      - name: username
        value: akri
      - name: password
        valueFrom:
          secretKeyRef: {name: broker, namespace: plant, key: password}

Devices that follow no convention are described by their topics:

        convention: topics
        topics:
          announce: plant/+/+/info          # the texts of + are $1, $2
          id: $1/$2                         # or payload.serial
          online:                           # default: as long as it is retained
            topic: plant/$1/$2/status
            is: ["online", "1"]
            value: payload.state            # default: the whole payload
          properties: {LINE: $1, MODEL: payload.device.0.model}

After payload, a path consists of keys and indexes; \. is a period in a key.

Properties of all devices are MQTT_BROKER_URL, MQTT_BASE_TOPIC and MQTT_DEVICE_ID; if
they are known also MQTT_DEVICE_NAME, MQTT_DEVICE_MANUFACTURER, MQTT_DEVICE_MODEL and
MQTT_DEVICE_SW_VERSION; of Tasmota's MQTT_COMMAND_TOPIC; those in topics.properties; and
MQTT_AVAILABILITY, which is unknown if the handler does not understand it.

A device's id is the device id of Homie, the first identifier of a device of Home
Assistant, GROUP/NODE or GROUP/NODE/DEVICE of Sparkplug, the MAC address of Tasmota,
the IEEE address of Zigbee2MQTT, and topics.id.

A device is gone when its last will or its state says so, or when its announcement is
replaced by an empty one. While the broker is away, devices stay; after 30 s the stream
ends, and the grace period of the Configuration begins.

The environment variables in parentheses are the defaults of the flags.`

func mqttCommand(func(string) string) command {
	return command{
		use: "mqtt", short: "Find devices that announce themselves at an MQTT broker", manual: mqttManual, onNetwork: true,
		handler: func() (embeddable.Handler, error) {
			return embeddable.Handler{Name: mqtt.Name, New: func(metrics *monitor.Metrics, _ *slog.Logger) discovery.Handler {
				return mqtt.Handler{Metrics: metrics}
			}}, nil
		},
	}
}
