package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"

	"akri.sh/akri/e2e/akri"
)

// part is one example of the demo: devices, their discovery handler, and a Configuration.
type part struct {
	// Handler is the key of the discovery handler in the chart's values. Empty: debugEcho,
	// which is always there.
	Handler string
	// Manifests are applied before the Configuration: the devices, and what they need.
	Manifests []string
	// File has the Configuration, whose name is Configuration.
	File, Configuration string
	// Replace is a list of old and new texts in File, such as the addresses of devices.
	Replace []string
	// Devices is how many devices are found.
	Devices int
	// Pages are Services for people to look at. Each has a port with the name http.
	Pages []page
	// Device is a Deployment in the devices' namespace: without replicas, the device is
	// unplugged.
	Device string
}

// The parts of the demo. debugEcho needs no nodes; the others run only with nodes.
var (
	debugEcho = part{
		File: "examples/debug-echo/configuration.yaml", Configuration: "akri-debug-echo-foo", Devices: 2,
	}
	others = []part{
		{
			Handler:       "onvif",
			Manifests:     []string{"examples/devices/camera.yaml", "examples/cameras/credentials.yaml"},
			File:          "examples/cameras/configuration.yaml",
			Configuration: "cameras",
			Devices:       2,
			Pages: []page{
				{Title: "all cameras", Service: "cameras-wall", Port: 8800},
				{Title: "camera", Port: 8801, Shows: regexp.MustCompile(`<h1 id="name">([^<]+)</h1>`)},
			},
			Device: "camera-hall",
		},
		{
			Handler:       "opcua",
			Manifests:     []string{"examples/devices/plc.yaml"},
			File:          "examples/opcua/configuration.yaml",
			Configuration: "oven",
			Replace: []string{
				"opc.tcp://192.0.2.51:4840/", "opc.tcp://plc.devices.svc:4840/",
				"          - opc.tcp://192.0.2.52:4840/\n", "",
			},
			Devices: 1,
			Pages: []page{{
				Title: "metrics of the oven", Port: 8810, Path: "metrics", Shows: regexp.MustCompile(`(?m)^oven_temperature_celsius\{`),
			}},
			Device: "plc",
		},
	}
)

// apply creates the objects of a part. It does not wait: the parts start at the same time.
func (p part) apply(ctx context.Context, t demoTarget, programs akri.Programs) error {
	for _, file := range p.Manifests {
		manifest, err := t.adapt(filepath.Join(programs.Root, file))
		if err != nil {
			return err
		}
		if err := t.applyManifest(ctx, manifest); err != nil {
			return err
		}
	}
	logf("applying %s", filepath.Join(programs.Root, p.File))
	manifest, err := t.adapt(filepath.Join(programs.Root, p.File), p.Replace...)
	if err != nil {
		return err
	}
	return t.applyManifest(ctx, manifest)
}

// await waits until the devices are found and, with nodes, their objects are ready.
func (p part) await(ctx context.Context, t demoTarget) error {
	condition := "Ready"
	if !t.hasNodes {
		condition = "Applied" // no Pod becomes ready without nodes
	}
	// Applied is True before the first device is found, so wait for the devices too.
	return during(fmt.Sprintf("waiting until %s is %s", p.Configuration, condition), func() error {
		for _, wait := range []string{
			fmt.Sprintf("--for=jsonpath={.status.instances}=%d", p.Devices),
			"--for=condition=" + condition,
		} {
			_, err := t.Kubectl(ctx, "--namespace", t.namespace, "wait", "--timeout=90s", "configuration/"+p.Configuration, wait)
			if err != nil {
				return fmt.Errorf("wait for %s: %w", p.Configuration, err)
			}
		}
		return nil
	})
}
