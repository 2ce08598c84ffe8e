// Package images builds, publishes and archives the container images of Akri's programs.
//
// An image is built from scratch: it contains the program, the root certificates of
// Mozilla, the users root and nonroot, the licenses of everything that is linked into the
// program, and its software bill of materials. An OCI layout holds an image for all
// platforms, and the bills of materials a second time, as referrers, for registries.
//
// Read catalog.go first, then describe.go, build.go, push.go.
//
// Always: the same commit, version and Go release produce the same digests, in any
// directory and on any machine.
// Never: a shell, a package manager, or a file that the program does not need.
package images
