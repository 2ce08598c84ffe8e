package main

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// twinConfig is the content of the ConfigMap, as far as the twin uses it.
type twinConfig struct {
	// instructions lead to what the device knows them by: for OPC UA the ID of a node, for
	// HTTP a path.
	instructions map[string]string
	timeout      time.Duration // of an instruction
	// telemetries are the instructions that are read periodically.
	telemetries                []string
	interval, telemetryTimeout time.Duration
}

func (c twinConfig) names() []string { return slices.Sorted(maps.Keys(c.instructions)) }

// readConfig reads the files "instructions" and "telemetries" for a protocol. Unknown keys
// are ignored, as Shifu does.
func readConfig(files fs.FS, protocol string) (twinConfig, error) {
	var instructions struct {
		Settings struct {
			TimeoutSeconds int `json:"defaultTimeoutSeconds"`
		} `json:"instructionSettings"`
		Instructions map[string]*struct {
			Properties map[string]string `json:"protocolPropertyList"`
		} `json:"instructions"`
	}
	var telemetries struct {
		Settings struct {
			IntervalMilliseconds int `json:"telemetryUpdateIntervalInMilliseconds"`
			TimeoutMilliseconds  int `json:"telemetryTimeoutInMilliseconds"`
		} `json:"telemetrySettings"`
		Telemetries map[string]*struct {
			Properties struct {
				Instruction string `json:"instruction"`
			} `json:"properties"`
		} `json:"telemetries"`
	}
	instructions.Settings.TimeoutSeconds = 3
	telemetries.Settings.IntervalMilliseconds, telemetries.Settings.TimeoutMilliseconds = 3000, 3000
	for name, into := range map[string]any{"instructions": &instructions, "telemetries": &telemetries} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return twinConfig{}, fmt.Errorf("read the ConfigMap: %w", err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			return twinConfig{}, fmt.Errorf("%s of the ConfigMap: %w", name, err)
		}
	}
	c := twinConfig{
		instructions:     map[string]string{},
		timeout:          time.Duration(instructions.Settings.TimeoutSeconds) * time.Second,
		interval:         max(time.Duration(telemetries.Settings.IntervalMilliseconds)*time.Millisecond, 100*time.Millisecond),
		telemetryTimeout: time.Duration(telemetries.Settings.TimeoutMilliseconds) * time.Millisecond,
	}
	for name, each := range instructions.Instructions {
		switch {
		case protocol == protocolHTTP:
			c.instructions[name] = "/" + name
		case each == nil || each.Properties["OPCUANodeID"] == "":
			return twinConfig{}, fmt.Errorf("the instruction %s has no OPCUANodeID in its protocolPropertyList", name)
		default:
			c.instructions[name] = each.Properties["OPCUANodeID"]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(telemetries.Telemetries)) {
		each := telemetries.Telemetries[name]
		if each == nil || c.instructions[each.Properties.Instruction] == "" {
			return twinConfig{}, fmt.Errorf("the telemetry %s refers to no instruction", name)
		}
		c.telemetries = append(c.telemetries, each.Properties.Instruction)
	}
	return c, nil
}
