package view

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSlots has the Pods and containers that can hold the slots, and how to request the device.
func TestSlots(t *testing.T) {
	const used, grouped = `{"name":"cam-1-0","instance":"cam-1","usage":"used on node1  by Pod one or Pod two","node":"node1",` +
		`"resource":"akri.sh/cam-1","holders":[{"namespace":"plant","pod":"one","containers":["broker"]},` +
		`{"namespace":"plant","pod":"two","containers":["first","broker"]}]}`,
		`{"name":"cam-1-1","instance":"cam-1","usage":"used on node1 through akri.sh/cam (id 0)  by Pod other/group","node":"node1",` +
			`"resource":"akri.sh/cam","holders":[{"namespace":"other","pod":"group","containers":["broker"]}]}`
	const invalid = `{"name":"cam-1-2","instance":"cam-1","usage":"invalid: `
	two := pod("two", "node1", "akri.sh/cam-1")
	two.Spec.InitContainers = []corev1.Container{two.Spec.Containers[0]}
	two.Spec.InitContainers[0].Name = "first"
	two.Spec.Containers = append(two.Spec.Containers, corev1.Container{Name: "sidecar"})
	ended, group := pod("ended", "node1", "akri.sh/cam-1"), pod("group", "node1", "akri.sh/cam")
	ended.Status.Phase, group.Namespace = corev1.PodSucceeded, "other"
	device := healthy(func(f *Facts) {
		f.Instance.Spec.Capacity = 4
		f.Instance.Spec.DeviceUsage["cam-1-1"] = "C:0:node1"
		f.Instance.Spec.DeviceUsage["cam-1-2"] = "C:"
		f.Pods = append(f.Pods, two, ended, group, pod("far", "node2", "akri.sh/cam-1"))
	})
	device.Conclude()
	text, err := json.Marshal(device.Slots)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	prefix, suffix := "["+used+","+grouped+","+invalid, `"},{"name":"cam-1-3","instance":"cam-1","usage":"free"}]`
	if len(got) < len(prefix)+len(suffix) || got[:len(prefix)] != prefix || got[len(got)-len(suffix):] != suffix {
		t.Errorf("got\n%s\nwant\n%s…%s", got, prefix, suffix)
	}

	configuration := served(nil)
	onPage := podFacts(two, nil)
	for want, facts := range map[string]*Facts{
		"resources:\n  limits: {akri.sh/cam-1: \"1\"}": device,
		"resources:\n  limits: {akri.sh/cam: \"1\"}":   configuration,
		"": onPage, // it requests its own
	} {
		facts.Conclude()
		if facts.Request != want {
			t.Errorf("the request is %q, want %q", facts.Request, want)
		}
	}
	if n := len(configuration.Slots); n != 2 {
		t.Errorf("the Configuration's devices have %d slots", n)
	}
	if len(onPage.Slots) != 0 || len(onPage.Requested[0].Slots) != 2 || onPage.Requested[0].Request == "" {
		t.Errorf("got %+v", onPage)
	}
}
