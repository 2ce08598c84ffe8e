// Package debugecho is a discovery handler for trials and tests. It needs no
// hardware: it reports the devices that the Configuration lists.
//
// discoveryDetails is YAML with a list of descriptions. Each becomes a device with the
// description as its id and as its property DEBUG_ECHO_DESCRIPTION:
//
//	descriptions:
//	- foo0
//	- foo1
//
// While the availability file contains the word OFFLINE, it reports no devices.
package debugecho
