package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/agent"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/hostpaths"
)

func parseFlags(t *testing.T, arguments ...string) (agent.Options, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	return parse(append([]string{"--kubeconfig=" + file}, arguments...), func(string) string { return "" }, &out, &out)
}

func TestPathFlags(t *testing.T) {
	onDev := device.File{ContainerPath: "/dev/a", HostPath: "/dev/a", Permissions: "rw"}
	onOpt := device.File{ContainerPath: "/dev/a", HostPath: "/opt/a", Permissions: "rw"}
	mount := device.Mount{ContainerPath: "/a", HostPath: "/opt/a", ReadOnly: true}
	for name, tc := range map[string]struct {
		arguments         []string
		dev, opt, mounted bool
	}{
		"default":           {nil, true, false, false},
		"nothing":           {[]string{"--allow-device-files="}, false, false, false},
		"restricted":        {[]string{"--allow-device-files=udev=/opt"}, false, true, false},
		"another handler":   {[]string{"--allow-device-files=files=/dev"}, true, false, false},
		"on the network":    {[]string{"--allow-device-files=udev@network=/opt"}, true, false, false},
		"all handlers":      {[]string{"--allow-device-files=*=/opt"}, false, true, false},
		"all, later":        {[]string{"--allow-device-files=files=/dev", "--allow-device-files=*=/opt"}, false, true, false},
		"none for it":       {[]string{"--allow-device-files=files=/dev,udev="}, false, false, false},
		"nothing and more":  {[]string{"--allow-device-files=", "--allow-device-files=files=/dev"}, false, false, false},
		"more and nothing":  {[]string{"--allow-device-files=files=/dev", "--allow-device-files="}, false, false, false},
		"none, then a rule": {[]string{"--allow-device-files=", "--allow-device-files=udev=/opt"}, false, true, false},
		"a list":            {[]string{"--allow-device-files=udev=/opt,*=/dev"}, true, true, false},
		"twice":             {[]string{"--allow-device-files=udev=/opt", "--allow-device-files=udev=/dev"}, true, true, false},
		"mounts":            {[]string{"--allow-mounts=udev=/opt:ro"}, true, false, true},
		"no mounts":         {[]string{"--allow-mounts=", "--allow-mounts=files=/opt"}, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := parseFlags(t, tc.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			udev := hostpaths.Handler{Name: "udev"}
			_, dev := options.HostPaths.DeviceFile(udev, onDev)
			_, opt := options.HostPaths.DeviceFile(udev, onOpt)
			_, mounted := options.HostPaths.Mount(udev, mount)
			if (dev == nil) != tc.dev || (opt == nil) != tc.opt || (mounted == nil) != tc.mounted {
				t.Errorf("/dev: %v; /opt: %v; mount: %v", dev, opt, mounted)
			}
		})
	}
	options, err := parseFlags(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.HostPaths.DeviceFile(hostpaths.Handler{Name: "other"}, onDev); err == nil {
		t.Error("the default permits device files to every handler")
	}
	if _, err := parseFlags(t, "--allow-mounts=/opt"); err == nil || !strings.Contains(err.Error(), "want HANDLER=DIRECTORY") {
		t.Errorf("a rule without a handler: %v", err)
	}
}

func TestNetworkFlags(t *testing.T) {
	options, err := parseFlags(t)
	if err != nil || len(options.NetworkHandlers.Addresses) != 0 {
		t.Errorf("default: %v, %v; want no addresses", options.NetworkHandlers, err)
	}
	options, err = parseFlags(t, "--allow-network-handlers=10.244.1.0/16,fd00::/64", "--network-handlers-ca-file=/ca")
	if err != nil || len(options.NetworkHandlers.Addresses) != 2 || options.NetworkHandlers.Addresses[0].String() != "10.244.0.0/16" ||
		options.NetworkHandlers.CAFile != "/ca" {
		t.Errorf("got %+v, %v", options.NetworkHandlers, err)
	}
	if _, err := parseFlags(t, "--allow-network-handlers=10.244.0.1"); err == nil || !strings.Contains(err.Error(), "want a CIDR") {
		t.Errorf("an address: %v", err)
	}
}

func TestStaticHandlers(t *testing.T) {
	options, err := parseFlags(t, "--static-handlers=onvif=onvif.svc:1+shared, opcua=10.0.0.1:2", "--static-handlers=http=h:3")
	if want := "[onvif@onvif.svc:1 opcua@10.0.0.1:2 http@h:3]"; err != nil || fmt.Sprint(options.StaticHandlers) != want ||
		!options.StaticHandlers[0].Shared || options.StaticHandlers[1].Shared {
		t.Errorf("got %v, %v", options.StaticHandlers, err)
	}
	if _, err := parseFlags(t, "--static-handlers=onvif"); err == nil || !strings.Contains(err.Error(), "want NAME=HOST:PORT") {
		t.Errorf("without an address: %v", err)
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--kubeconfig", file, "--node-name=n", "--discovery-handlers-dir=" + t.TempDir(), "--static-handlers=a=b:1"}
	err = run(t.Context(), arguments, func(string) string { return "" }, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "handlers on the network are off") {
		t.Errorf("without a permission: %v", err)
	}
}

func TestEmbeddedHandlers(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		shared    string // DEBUG_ECHO_INSTANCES_SHARED
		want      string // the names of shared handlers have a plus sign
		err       string
	}{
		"default":            {nil, "", "", ""},
		"empty":              {[]string{"--embedded-handlers="}, "", "", ""},
		"a list":             {[]string{"--embedded-handlers=udev,debugEcho"}, "true", "udev debugEcho+", ""},
		"spaces":             {[]string{"--embedded-handlers", "onvif, opcua"}, "", "onvif+ opcua+", ""},
		"several flags":      {[]string{"--embedded-handlers=udev", "--embedded-handlers=debugEcho"}, "false", "udev debugEcho", ""},
		"unknown":            {[]string{"--embedded-handlers=udev,doors"}, "", "", `"doors": not a handler that agents can run: use debugEcho`},
		"twice in a list":    {[]string{"--embedded-handlers=udev,udev"}, "", "", "listed twice"},
		"twice in two flags": {[]string{"--embedded-handlers=udev", "--embedded-handlers=udev"}, "", "", "listed twice"},
		"a comma at the end": {[]string{"--embedded-handlers=udev,"}, "", "", `"": not a handler`},
		"no variable":        {[]string{"--embedded-handlers=debugEcho"}, "", "", "DEBUG_ECHO_INSTANCES_SHARED"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			options, err := parse(append(tc.arguments, "--kubeconfig="+file), func(variable string) string {
				return map[string]string{"DEBUG_ECHO_INSTANCES_SHARED": tc.shared}[variable]
			}, &out, &out)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want an error that contains %q", err, tc.err)
				}
				return
			}
			var got []string
			for _, each := range options.EmbeddedHandlers {
				if each.Shared {
					each.Name += "+"
				}
				got = append(got, each.Name)
			}
			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}
