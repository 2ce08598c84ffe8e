package handlers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/image"
)

// opcuaImages maps the programs of the OPC UA examples to the images that they use. The
// stand-in for Shifu's twin has the name of Shifu's image.
var opcuaImages = map[string]string{
	"./examples/devices/plc":   "akri.sh/examples/plc:dev",
	"./examples/brokers/opcua": "akri.sh/examples/opcua-broker:dev",
	"./examples/shifu/twin":    "edgehub/deviceshifu-http-opcua:v0.101.0",
}

// opcuaPrograms is the directory of the programs, built once.
var opcuaPrograms = sync.OnceValues(func() (string, error) {
	root, err := build.Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "examples", "opcua")
	for source, name := range opcuaImages {
		program := filepath.Join(dir, filepath.Base(source))
		if filepath.Base(source) == "opcua" {
			program += "-broker"
		}
		command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w: %s", source, err, output)
		}
		err := image.Write(program+".tar", image.Image{
			Name: name, Files: map[string]string{"/program": program}, Entrypoint: []string{"/program"},
		})
		if err != nil {
			return "", fmt.Errorf("write the image of %s: %w", source, err)
		}
	}
	return dir, nil
})

// loadOPCUA loads the images of the OPC UA examples into the nodes, and returns the path
// of the virtual PLC.
func (w *world) loadOPCUA() (plc string) {
	w.t.Helper()
	dir, err := opcuaPrograms()
	if err != nil {
		w.t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.Load(context.WithoutCancel(w.ctx), archives...); err != nil {
		w.t.Fatal(err)
	}
	return filepath.Join(dir, "plc")
}
