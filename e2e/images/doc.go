// Package images tests the container images that are published: a registry serves them, a
// kubelet pulls them, Akri runs from them, and programs for other processors run under
// emulation.
//
// Always: what runs comes from the OCI layouts that package images of the release module
// wrote. Never: a request to another machine.
package images
