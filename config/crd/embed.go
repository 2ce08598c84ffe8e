// Package crd holds the definitions of Akri's kinds for programs that need them
// without a cluster.
package crd

import _ "embed"

// Configurations is the CustomResourceDefinition of Configuration, as YAML.
//
//go:embed akri.sh_configurations.yaml
var Configurations []byte

// Instances is the CustomResourceDefinition of Instance, as YAML.
//
//go:embed akri.sh_instances.yaml
var Instances []byte
