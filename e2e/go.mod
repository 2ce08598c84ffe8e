module akri.sh/akri/e2e

go 1.26.0

require (
	github.com/google/go-containerregistry v0.22.1 // indirect
	github.com/vishvananda/netlink v1.3.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

require (
	akri.sh/akri/kubebox v0.0.0
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
)

replace akri.sh/akri/kubebox => ../kubebox
