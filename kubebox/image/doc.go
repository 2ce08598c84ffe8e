// Package image makes container images from static executables, as archives
// that containerd and docker load. No registry and no daemon takes part.
//
// The same files give the same archive, byte for byte, whoever makes it and
// whenever.
package image
