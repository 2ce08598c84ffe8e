// Package debugecho is a discovery handler without devices: it finds what the
// Configuration tells it to find. It is for trying out and for tests.
//
// discoveryDetails is YAML with a list of texts; each becomes a device whose id
// is the text and whose property DEBUG_ECHO_DESCRIPTION is the text again:
//
//	descriptions:
//	- foo0
//	- foo1
//
// While the availability file holds the word OFFLINE, nothing is found.
package debugecho
