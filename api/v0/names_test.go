package v0

import (
	"strings"
	"testing"
)

// TestInstanceName checks that the names are those of the original Akri.
func TestInstanceName(t *testing.T) {
	cases := []struct {
		device, node string
		shared       bool
		want         string
	}{
		{device: "foo0", shared: true, want: "c-8120fe"},
		{device: "foo0", node: "ignored", shared: true, want: "c-8120fe"},
		{device: "foo1", shared: true, want: "c-a19705"},
		{device: "my_shared_device", shared: true, want: "c-4294ea"},
		{device: "my_local_device", node: "my_node", want: "c-e77db4"},
		{device: "my_local_device", node: "my_other_node", want: "c-099763"},
		{device: "dev_1", shared: true, want: "c-cb2ad7"},
		// Of Akri's handlers udev and opcua.
		{device: "/devices/virtual/block/zram0", node: "node1", want: "c-e7f4aa"},
		{device: "opc.tcp://10.99.0.1:4840/", shared: true, want: "c-fd1b2b"},
	}
	for _, tc := range cases {
		if got := InstanceName("c", tc.device, tc.node, tc.shared); got != tc.want {
			t.Errorf("InstanceName(%q, %q, shared=%t) = %s, want %s", tc.device, tc.node, tc.shared, got, tc.want)
		}
	}
}

func TestLongInstanceName(t *testing.T) {
	short, long := InstanceName("c", "foo0", "", true), LongInstanceName("c", "foo0", "", true)
	if len(long) != len("c-")+10 || strings.HasPrefix(long, short) {
		t.Errorf("short %s, long %s: want ten digits of a different digest", short, long)
	}
}

// TestInstanceNamesFit checks that both names of a device are valid resource names and
// differ, however long the Configuration's name is.
func TestInstanceNamesFit(t *testing.T) {
	for length := range MaxConfigurationNameLength {
		configuration := strings.Repeat("a", length+1)
		short, long := InstanceName(configuration, "foo0", "", true), LongInstanceName(configuration, "foo0", "", true)
		if len(short) > MaxInstanceNameLength || len(long) > MaxInstanceNameLength || len(long) < len(short) {
			t.Errorf("a Configuration's name of %d characters: Instances %s and %s; the kubelet accepts %d characters",
				length+1, short, long, MaxInstanceNameLength)
		}
		if short == long {
			t.Errorf("a Configuration's name of %d characters: both names are %s", length+1, short)
		}
	}
}

func TestParseInstanceName(t *testing.T) {
	long := strings.Repeat("a", MaxConfigurationNameLength)
	eight := strings.Repeat("a", MaxInstanceNameLength-len("-12345678"))
	for name, want := range map[string]string{
		InstanceName("victim", "/dev/video0", "node1", false):     "victim",
		LongInstanceName("victim", "/dev/video0", "node1", false): "victim",
		InstanceName("a-8120fe", "foo0", "", true):                "a-8120fe",
		InstanceName(long, "foo0", "", true):                      long,
		LongInstanceName(long, "foo0", "", true):                  long,
		LongInstanceName(eight, "foo0", "", true):                 eight,
		"camera-facade": "camera", // also a word
		"site-decade":   "site",
		"camera":        "", "camera-front": "", "facade": "", "-facade": "", "": "",
		"camera-8120f": "", "camera-8120fe0": "", "camera-8120fe-1": "", "camera-8120FE": "", "camera-8120fg": "",
		eight + "-1234567": "", eight + "-123456789": "", "camera-12345678": "",
	} {
		if configuration, ok := ParseInstanceName(name); configuration != want || ok != (want != "") {
			t.Errorf("ParseInstanceName(%q) = %q, %t; want %q", name, configuration, ok, want)
		}
	}
}

func TestCommonResource(t *testing.T) {
	for _, tc := range []struct{ a, b, want string }{
		{"camera", "camera", "akri.sh/camera"},
		{"camera", "camera-8120fe", "akri.sh/camera-8120fe"},
		{"camera", LongInstanceName("camera", "foo0", "", true), "akri.sh/" + LongInstanceName("camera", "foo0", "", true)},
		{"camera-8120fe", "camera-8120fe-a19705", "akri.sh/camera-8120fe-a19705"},
		{"camera", "camera-8120fe-a19705", ""}, // Instances of camera have one dash more than it
		{"camera-8120fe", "camera-a19705", ""},
		{"camera", "camera-front", ""},
		{"camera", "cam", ""},
	} {
		if got := CommonResource(tc.a, tc.b); got != tc.want {
			t.Errorf("CommonResource(%s, %s) = %q, want %q", tc.a, tc.b, got, tc.want)
		}
		if got := CommonResource(tc.b, tc.a); got != tc.want {
			t.Errorf("CommonResource(%s, %s) = %q, want %q", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestSlotNames(t *testing.T) {
	name := SlotName("akri-foo-8120fe", 12)
	if name != "akri-foo-8120fe-12" {
		t.Errorf("SlotName = %q", name)
	}
	if slot, err := ParseSlotName("akri-foo-8120fe", name); err != nil || slot != 12 {
		t.Errorf("ParseSlotName(%q) = %d, %v", name, slot, err)
	}
	for _, bad := range []string{"akri-foo-8120fe", "akri-foo-8120fe-", "akri-foo-8120fe--1", "akri-foo-8120fe-01", "akri-foo-8120fe-+1",
		"akri-bar-8120fe-1", "akri-foo-8120fe-x"} {
		if slot, err := ParseSlotName("akri-foo-8120fe", bad); err == nil {
			t.Errorf("ParseSlotName(%q) = %d, want an error", bad, slot)
		}
	}
}

func TestCDIName(t *testing.T) {
	if got := CDIName("akri-onvif", "akri-onvif-8120fe"); got != "akri.sh/akri-onvif=8120fe" {
		t.Errorf("CDIName = %s", got)
	}
}

func TestNodeLabelFitsIntoALabelKey(t *testing.T) {
	if got := NodeLabel("node-a"); got != "node.akri.sh/node-a" {
		t.Errorf("NodeLabel(node-a) = %s", got)
	}
	long := strings.Repeat("n", 64)
	name := strings.TrimPrefix(NodeLabel(long), "node.akri.sh/")
	if len(name) > 63 || name == NodeLabel(long+"x") {
		t.Errorf("label of a long node name: %s", name)
	}
}

func TestNodeOfLabel(t *testing.T) {
	for label, want := range map[string]string{
		NodeLabel("node-a"): "node-a", "node.akri.sh/0123456789abcdef": "0123456789abcdef", LabelConfiguration: "", "node.akri.sh/": "",
		NodeLabel(strings.Repeat("n", 64)): "",
	} {
		if node, ok := NodeOfLabel(label); node != want || ok != (want != "") {
			t.Errorf("NodeOfLabel(%s) = %q, %t; want %q", label, node, ok, want)
		}
	}
}
