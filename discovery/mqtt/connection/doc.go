// Package connection is a connection to an MQTT 3.1.1 broker that subscribes with QoS 0. It
// is small because it leaves out what a subscriber does not need, and because a broker must
// not be able to make the handler use much memory: the client of paho.mqtt.golang allocates
// whatever size a packet announces. What a packet says is left to paho's package packets.
//
// Always: a packet's size is checked before it is read, and a PUBLISH with too much payload
// is skipped. Never: a queue, a retry, a user name or a password in an error.
package connection
