// Package image writes container images of static executables, as archives that
// containerd and docker can load. It needs no registry and no daemon.
//
// Always: the same files produce the same archive, byte for byte.
// Never: a file time or owner in an archive.
package image
