package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMigrateRoles checks which workloads are taken for the original Akri's.
func TestMigrateRoles(t *testing.T) {
	named := func(name, image string) *workload {
		return &workload{kind: "DaemonSet", ObjectMeta: metav1.ObjectMeta{Name: name}, pod: corev1.PodSpec{
			Containers: []corev1.Container{{Image: image}},
		}}
	}
	handler := func(name string) *workload {
		w := named(name, "scanners:1")
		w.pod.Containers[0].Env = []corev1.EnvVar{{Name: "DISCOVERY_HANDLERS_DIRECTORY", Value: "/var/lib/akri"}}
		return w
	}
	agent := handler("edge-akri-agent")
	agent.pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "plugins", MountPath: devicePluginsDir + "/"}}
	agent.pod.Volumes = []corev1.Volume{{Name: "plugins", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/k0s/kubelet/device-plugins"},
	}}}
	ours := handler("akri-mdns-discovery")
	ours.Labels = map[string]string{"app.kubernetes.io/part-of": "akri"}
	for _, test := range []struct {
		workload *workload
		want     string
	}{
		{named("akri-controller-deployment", "x"), ofController},
		{named("akri-agent-daemonset", "mirror:5000/agent"), ofAgent},
		{agent, ofAgent},
		{named("akri-agent", "akri.sh/agent:v1"), ""},
		{named("akri-udev-discovery-daemonset", "x"), ofHandler},
		{ours, ""},
		{handler("akri-scanner-discovery"), ofHandler},
		{handler("scanners"), ofHandler},
		{named("checker", "mirror:5000/akri/webhook-configuration@sha256:01"), ofWebhook},
		{named("checker", "webhook-configuration-checker:v1"), ""},
		{named("node-exporter", "x"), ""},
	} {
		if got := test.workload.role(); got != test.want {
			t.Errorf("%s: role %q, want %q", test.workload.Name, got, test.want)
		}
	}
}
