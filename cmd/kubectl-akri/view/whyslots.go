package view

import (
	"fmt"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
)

// Slot is one of an Instance's slots.
type Slot struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	// Usage says in words who uses it.
	Usage string `json:"usage"`
	// Node uses it, for a container that requests Resource. Both are empty if it is free.
	Node     string `json:"node,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Holders are the Pods on the node that have not terminated and request the resource.
	// Only the kubelet knows which of them uses which slot.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a Pod with the containers that request a device.
type Holder struct {
	Namespace  string   `json:"namespace"`
	Pod        string   `json:"pod"`
	Containers []string `json:"containers"`
}

// addSlots sets the slots of the devices, and how to request one.
func (f *Facts) addSlots() {
	f.Slots, f.Request = nil, ""
	if f.Instance != nil || f.Configuration != nil {
		f.Request = "resources:\n  limits: {" + f.Resources()[0] + `: "1"}`
	}
	for _, device := range f.Devices() {
		for i := range int(device.Spec.Capacity) {
			s := Slot{Name: v0.SlotName(device.Name, i), Instance: device.Name}
			value := device.Spec.DeviceUsage[s.Name]
			s.Usage = ownerText(value, device.Spec.ConfigurationName)
			if owner, err := v0.ParseOwner(string(value)); err == nil && !owner.Free() {
				s.Node, s.Resource = owner.Node, v0.ResourceName(device.Name)
				if owner.VirtualID != "" {
					s.Resource = v0.ResourceName(device.Spec.ConfigurationName)
				}
				f.addHolders(&s)
			}
			f.Slots = append(f.Slots, s)
		}
	}
}

func (f *Facts) addHolders(s *Slot) {
	for i := range f.Pods {
		pod := &f.Pods[i]
		if pod.Spec.NodeName != s.Node || Terminated(pod) {
			continue
		}
		var containers []string
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if advice.DevicesOf(&container)[s.Resource] > 0 {
				containers = append(containers, container.Name)
			}
		}
		if len(containers) > 0 {
			s.Holders = append(s.Holders, Holder{pod.Namespace, pod.Name, containers})
		}
	}
	if len(s.Holders) > 0 {
		s.Usage += "  by " + strings.Join(f.users(s), " or ")
	}
}

// users names the Pods that can use a slot.
func (f *Facts) users(s *Slot) (names []string) {
	for _, holder := range s.Holders {
		names = append(names, f.named(holder.Namespace, holder.Pod))
	}
	return names
}

func (f *Facts) writeSlots(b *strings.Builder) {
	for _, s := range f.Slots {
		fmt.Fprintf(b, "  slot       %s  %s\n", s.Name, s.Usage)
	}
}

// holders names the owners of the slots that are in use.
func (f *Facts) holders() []string {
	const maxShown = 10
	var holders []string
	for _, s := range f.Slots {
		if s.Node == "" {
			continue
		}
		if len(holders) == maxShown {
			return append(holders, "and others")
		}
		holders = append(holders, s.Name+" "+s.Usage)
	}
	return holders
}
