package view

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func conditions(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message}}
}

func TestTree(t *testing.T) {
	configuration := v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam", UID: "1"},
		Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "onvif"}, Capacity: 2},
		Status: v0.ConfigurationStatus{
			Instances:  1,
			Conditions: conditions(v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, ""),
			Resources:  []v0.ResourceStatus{{Kind: "Service", Name: "cam-svc", Ready: true}},
		},
	}
	controller := true
	instance := v0.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam-8120fe",
			OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: &controller}}},
		Spec: v0.InstanceSpec{ConfigurationName: "cam", Capacity: 2, Nodes: []string{"node-a", "node-b"}, DeviceUsage: map[string]v0.SlotOwner{
			"cam-8120fe-0": "node-a", "cam-8120fe-5": "C:3:node-b", "cam-8120fe-1": "",
		}},
		Status: v0.InstanceStatus{
			DisplayName: "gate, AXIS M1065 at 192.0.2.10",
			Conditions: append(conditions(v0.ConditionReady, metav1.ConditionFalse, v0.ReasonApplyFailed, "see Applied"),
				conditions(v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonApplyFailed, "one line\nand another")...),
			Resources: []v0.ResourceStatus{{Kind: "Pod", Name: "cam-8120fe-pod", Reason: "Pod is in the Pending phase"}},
		},
	}
	foreign := instance
	foreign.OwnerReferences = nil
	lonely := v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "usb"},
		Spec: v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "udev"}, Capacity: 1}}

	var out strings.Builder
	if err := NewForest([]v0.Configuration{lonely, configuration}, []v0.Instance{instance, foreign}).Text(&out); err != nil {
		t.Fatal(err)
	}
	want := `Configuration plant/cam  onvif: 1 device, capacity 2 each  not ready: Progressing
├── Service cam-svc  ready
└── Instance cam-8120fe  gate, AXIS M1065 at 192.0.2.10  on node-a, node-b  not ready: ApplyFailed
    ├── not Applied: ApplyFailed
    │   ├── one line
    │   └── and another
    ├── slot cam-8120fe-0  used on node-a
    ├── slot cam-8120fe-1  free
    ├── slot cam-8120fe-5  used on node-b through akri.sh/cam (id 3), exceeds the capacity
    └── Pod cam-8120fe-pod  not ready: Pod is in the Pending phase
Configuration plant/usb  udev: no devices, capacity 1 each  (not reconciled yet)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
