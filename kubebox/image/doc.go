// Package image builds container images of static executables: in memory, for a registry
// or an OCI layout, or as archives that containerd and docker can load. It needs no
// registry and no daemon.
//
// Always: the same files produce the same image and archive, byte for byte.
// Never: a file time or owner in an image.
package image
