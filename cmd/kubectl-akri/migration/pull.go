package migration

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// PullLabels select the Pods that pull images.
var PullLabels = map[string]string{"app.kubernetes.io/name": "akri-pull", "app.kubernetes.io/managed-by": "kubectl-akri"}

// podTemplate is the Pod template of a workload.
type podTemplate struct {
	kind string
	pod  corev1.PodSpec
}

// podTemplates returns the Pod templates of manifests.
func podTemplates(manifests string) ([]podTemplate, error) {
	var templates []podTemplate
	for document := range strings.SplitSeq("\n"+manifests, "\n---") {
		var object struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if !slices.Contains([]string{"DaemonSet", "Deployment", "StatefulSet", "Job"}, object.Kind) {
			continue
		}
		var workload struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal([]byte(document), &workload); err != nil {
			return nil, fmt.Errorf("read the manifests: %s: %w", object.Kind, err)
		}
		templates = append(templates, podTemplate{object.Kind, workload.Spec.Template.Spec})
	}
	if len(templates) == 0 {
		return nil, errors.New("the manifests have no Pods: pipe the output of helm template or kubectl kustomize into the command")
	}
	return templates, nil
}

// Pulls returns a Pod for each node that pulls the images of the DaemonSets in manifests
// that select the node. The Pod of the first node pulls all others, too. Each container
// prints the version of its program. Nodes that are not ready are skipped: their names are
// the second result.
func Pulls(manifests string, nodes []corev1.Node, namespace string) (pods []corev1.Pod, skipped []string, err error) {
	templates, err := podTemplates(manifests)
	if err != nil {
		return nil, nil, err
	}
	for i := range nodes {
		node := &nodes[i]
		if cmp.Or(node.Labels[corev1.LabelOSStable], "linux") != "linux" {
			continue
		}
		if !Ready(node) {
			skipped = append(skipped, node.Name)
			continue
		}
		first := len(pods) == 0
		pod := newPull(namespace, node.Name)
		for _, template := range templates {
			if first || template.kind == "DaemonSet" && selects(template.pod.NodeSelector, node.Labels) {
				addImages(&pod.Spec, template.pod)
			}
		}
		if len(pod.Spec.Containers) > 0 {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil, skipped, errors.New("no node is ready: no image can be pulled")
	}
	return pods, skipped, nil
}

// Ready reports whether the kubelet of a node can start Pods.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// selects reports whether a node has the labels of a selector.
func selects(selector, labels map[string]string) bool {
	for key := range selector {
		if labels[key] != selector[key] {
			return false
		}
	}
	return true
}

// newPull returns a Pod without containers that any namespace permits.
func newPull(namespace, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "akri-pull-", Namespace: namespace, Labels: maps.Clone(PullLabels)},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64),
			AutomountServiceAccountToken:  new(bool),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

// addImages adds the images of a Pod template to a Pod, each once.
func addImages(pod *corev1.PodSpec, template corev1.PodSpec) {
	for _, container := range slices.Concat(template.InitContainers, template.Containers) {
		if slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.Image == container.Image }) {
			continue
		}
		pod.Containers = append(pod.Containers, corev1.Container{
			Name:            fmt.Sprintf("image-%d", len(pod.Containers)),
			Image:           container.Image,
			ImagePullPolicy: container.ImagePullPolicy,
			Args:            []string{"--version"},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		})
	}
	for _, secret := range template.ImagePullSecrets {
		if !slices.Contains(pod.ImagePullSecrets, secret) {
			pod.ImagePullSecrets = append(pod.ImagePullSecrets, secret)
		}
	}
}

// transient are the reasons for which a container waits that pass by themselves.
var transient = []string{"", "PodInitializing", "ContainerCreating", "ErrImagePull"}

// Pulled reports whether a Pod of [Pulls] has pulled all its images and run them. The error
// says which cannot be.
func Pulled(pod *corev1.Pod) (bool, error) {
	images := map[string]string{}
	for _, container := range pod.Spec.Containers {
		images[container.Name] = container.Image
	}
	for _, status := range pod.Status.ContainerStatuses {
		image := images[status.Name]
		if w := status.State.Waiting; w != nil && !slices.Contains(transient, w.Reason) {
			return false, fmt.Errorf("node %s: image %s: %s: %s", pod.Spec.NodeName, image, w.Reason, w.Message)
		}
		if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
			return false, fmt.Errorf("node %s: image %s: its program ended with %d: %s: %s",
				pod.Spec.NodeName, image, t.ExitCode, t.Reason, t.Message)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return false, fmt.Errorf("node %s: the kubelet refused the Pod: %s: %s", pod.Spec.NodeName, pod.Status.Reason, pod.Status.Message)
	}
	return pod.Status.Phase == corev1.PodSucceeded, nil
}
