package images

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Definition is what differs between the images.
type Definition struct {
	// Name is the last part of the image's name: Registry/Name.
	Name string
	// Program is the name of the executable, and the last part of its package.
	Program string
	// Dir is the directory of the package's directory. Empty: cmd.
	Dir string
	// Description is a sentence for people who look at a registry.
	Description string
	// User is the user ID that the program runs as, if a Pod does not say otherwise.
	User string
}

// pkg returns the package of the program, as the go command has it.
func (d Definition) pkg() string { return "./" + path.Join(cmp.Or(d.Dir, "cmd"), d.Program) }

// brokers is where the brokers of the examples are.
const brokers = "examples/brokers"

// Registry is what the names of images begin with in the manifests of this repository.
const Registry = "akri.sh"

// The users of images.
const (
	root    = "0"
	nonroot = "65532"
)

// All are the images, sorted by name.
var All = []Definition{
	{
		Name: "agent", Program: "akri-agent", User: root, // the kubelet's sockets belong to root
		Description: "Akri's agent discovers devices on a node and offers them to the kubelet",
	},
	{
		Name: "controller", Program: "akri-controller", User: nonroot,
		Description: "Akri's controller runs workloads for discovered devices; its subcommand webhook checks Configurations",
	},
	{
		Name: "discovery", Program: "akri-discovery", User: root, // the agent's directory of sockets belongs to root
		Description: "Akri's discovery handlers find devices: udev, ONVIF, OPC UA, MQTT, mDNS, HTTP",
	},
	{
		Name: "examples/camera-broker", Program: "camera", Dir: brokers, User: nonroot,
		Description: "A broker of Akri's examples: the live picture of an ONVIF camera",
	},
	{
		Name: "examples/opcua-broker", Program: "opcua", Dir: brokers, User: nonroot,
		Description: "A broker of Akri's examples: a value of an OPC UA server as a metric",
	},
	{
		Name: "examples/wall-broker", Program: "wall", Dir: brokers, User: nonroot,
		Description: "A broker of Akri's examples: a page with the pictures of all cameras",
	},
	{
		Name: "kubectl-akri", Program: "kubectl-akri", User: nonroot,
		Description: "kubectl akri explains what Akri does in a cluster, and tests Configurations without one",
	},
}

// Platforms are those that images are published for.
var Platforms = []string{"linux/amd64", "linux/arm64", "linux/arm/v7", "linux/riscv64"}

// Native returns the platform of this machine.
func Native() string {
	for _, platform := range Platforms {
		if strings.HasPrefix(platform+"/", "linux/"+runtime.GOARCH+"/") {
			return platform
		}
	}
	return "linux/" + runtime.GOARCH
}

// Select returns the definitions with these names, or all if there are none.
func Select(names []string) ([]Definition, error) {
	if len(names) == 0 {
		return All, nil
	}
	var selected, known []string
	var definitions []Definition
	for _, d := range All {
		known = append(known, d.Name)
		if slices.Contains(names, d.Name) {
			selected, definitions = append(selected, d.Name), append(definitions, d)
		}
	}
	for _, name := range names {
		if !slices.Contains(selected, name) {
			return nil, fmt.Errorf("there is no image %q: choose from %s", name, strings.Join(known, ", "))
		}
	}
	return definitions, nil
}
