// Package sample generates Instances of devices that do not exist, so that templates
// can be rendered when a Configuration is written or admitted, before any device is
// discovered.
//
// Always: a sample has every property that the templates mention, and the
// properties known of real devices. Two samples differ in everything that can
// differ from device to device: name, nodes, properties. The same options give the
// same samples.
package sample
