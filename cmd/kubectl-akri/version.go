package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/version"
)

type versionOptions struct {
	access
	timeout    time.Duration
	clientOnly bool
	check      bool
	output     string
}

func newVersion(streams cli.Streams) *cobra.Command {
	var o versionOptions
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of all parts, and whether they differ",
		Long: `Show the versions of kubectl-akri, Kubernetes, the controller, each replica of the
webhook, and the agents and handlers of each node with their kubelets. What is older
than the rest is named, with what to do about it, and what Akri does without in this
version of Kubernetes.

The version of a Pod is read from the metric ` + version.Metric + ` by port-forward. You
need permission to list Pods and to create pods/portforward in the namespace. If a
program cannot be asked, its Pod's label or image tells the version, and the reason is
shown. Kubelets are shown if you may list nodes.`,
		Example: `  kubectl akri version
  kubectl akri version --check  # exit with 1 if versions differ or are unknown`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.output != "" && o.output != "json" && o.output != "yaml" {
				return cli.Usage(command, fmt.Errorf("-o %s: use json or yaml", o.output))
			}
			return o.run(command.Context(), streams)
		},
	}
	o.addFlags(command)
	o.defaultToSystemNamespace(command, "`namespace` in which Akri is installed")
	flags := command.Flags()
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for a program")
	flags.BoolVar(&o.clientOnly, "client", false, "show only the version of kubectl-akri; needs no cluster")
	flags.BoolVar(&o.check, "check", false, "exit with 1 if versions differ, or one is unknown")
	flags.StringVarP(&o.output, "output", "o", "", "output `format`: json or yaml")
	return command
}

// defaultToSystemNamespace makes Akri's own namespace the default of a command.
func (a *access) defaultToSystemNamespace(command *cobra.Command, usage string) {
	flag := command.Flags().Lookup("namespace")
	flag.Usage, flag.DefValue = usage, agentNamespace
	a.namespace = agentNamespace
}

func (o *versionOptions) run(ctx context.Context, streams cli.Streams) error {
	versions := &view.Versions{Client: version.Get(), Namespace: o.namespace}
	var failure error
	if !o.clientOnly {
		if failure = o.readCluster(ctx, streams, versions); failure == nil {
			versions.Judge()
		}
	}
	if o.output != "" {
		if err := printAs(streams, o.output, versions); err != nil {
			return err
		}
	} else if err := view.PrintVersions(streams.Out, versions); err != nil {
		return err
	}
	if failure == nil && o.check && !versions.Healthy() {
		return cli.Exit(1)
	}
	return failure
}

// readCluster adds the versions in the cluster. It fails if there is no cluster.
func (o *versionOptions) readCluster(ctx context.Context, streams cli.Streams, to *view.Versions) error {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	return o.readWith(ctx, api, config, to)
}

func (o *versionOptions) readWith(ctx context.Context, api *cluster, config *rest.Config, to *view.Versions) (err error) {
	if to.Kubernetes, err = serverVersion(ctx, config); err != nil {
		return err
	}
	pods, err := api.systemPods(ctx, to.Namespace)
	if err != nil {
		return err
	}
	kubelets := map[string]string{}
	var nodes corev1.NodeList
	if api.List(ctx, &nodes) == nil { // they are additional information
		for i := range nodes.Items {
			kubelets[nodes.Items[i].Name] = nodes.Items[i].Status.NodeInfo.KubeletVersion
		}
	}
	to.Parts = make([]view.Part, len(pods))
	var reading errgroup.Group
	reading.SetLimit(maxForwards)
	for i := range pods {
		reading.Go(func() error {
			ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("%s have passed", o.timeout))
			defer cancel()
			to.Parts[i] = readPart(ctx, config, &pods[i])
			to.Parts[i].Kubelet = kubelets[pods[i].Spec.NodeName]
			return nil
		})
	}
	_ = reading.Wait() // problems are in the parts
	to.Lacking = kubeversion.Lacking(to.Kubernetes, unaskedKubelets(to.Parts)...)
	return nil
}

// unaskedKubelets returns the versions of the kubelets whose agents were not asked whether
// they have the Pods API.
func unaskedKubelets(parts []view.Part) []string {
	var kubelets []string
	for i := range parts {
		if part := &parts[i]; part.Component == view.Agent && part.Source != view.FromProgram {
			kubelets = append(kubelets, part.Kubelet)
		}
	}
	return kubelets
}

func serverVersion(ctx context.Context, config *rest.Config) (string, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	body, err := server.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("read the version of the API server %s: %w", config.Host, err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read the version of the API server %s: %w", config.Host, err)
	}
	return info.GitVersion, nil
}

// systemPods lists the Pods of the controller, the webhook, the agents and the handlers
// that have not terminated.
func (c *cluster) systemPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Pods of Akri: %w", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		terminated := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if componentOf(pod.Labels) != "" && !terminated {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// componentOf returns the component that an object with these labels belongs to, or the
// name of a handler, or "".
func componentOf(labels map[string]string) string {
	name := labels["app.kubernetes.io/name"]
	switch name {
	case "akri-controller":
		return view.Controller
	case "akri-webhook":
		return view.Webhook
	case agentName:
		return view.Agent
	}
	if handler, found := strings.CutSuffix(name, "-discovery"); found && labels["app.kubernetes.io/part-of"] == "akri" {
		return strings.TrimPrefix(handler, "akri-")
	}
	return ""
}

// readPart finds out the version of a Pod's program.
func readPart(ctx context.Context, config *rest.Config, pod *corev1.Pod) view.Part {
	part := view.Part{Component: componentOf(pod.Labels), Pod: pod.Name, Node: pod.Spec.NodeName}
	if len(pod.Spec.Containers) > 0 {
		part.Image = pod.Spec.Containers[0].Image
	}
	if part.Problem = podProblem(pod); part.Problem == "" {
		port := metricsPort(pod)
		body, err := getForwarded(ctx, config, client.ObjectKeyFromObject(pod), port, "/metrics")
		if err == nil {
			err = parseMetrics(body, &part)
		}
		if err == nil {
			return part
		}
		if part.Problem = fmt.Sprintf("the version cannot be read from port %d: %v", port, err); isRefused(err) {
			part.Problem = fmt.Sprintf("the version cannot be read: nothing listens on port %d: the program is starting, or has no "+
				"--metrics-bind-address", port)
		}
	}
	if label := pod.Labels["app.kubernetes.io/version"]; label != "" {
		part.Version, part.Source = "v"+strings.TrimPrefix(label, "v"), view.FromLabel
	} else if tag := tagOf(part.Image); tag != "" {
		part.Version, part.Source = tag, view.FromImage
	}
	return part
}

// metricsPort returns the port named metrics, or its default.
func metricsPort(pod *corev1.Pod) int {
	const usual = 8080
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == "metrics" {
				return int(port.ContainerPort)
			}
		}
	}
	return usual
}

// parseMetrics reads from a program's metrics what is known about its build.
func parseMetrics(body []byte, part *view.Part) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, metric := range families[version.Metric].GetMetric() {
		part.Version, part.Source = label(metric, "version"), view.FromProgram
	}
	for _, metric := range families["akri_agent_observer"].GetMetric() {
		part.NoPodsAPI = part.NoPodsAPI || label(metric, "state") == "api-server" && metric.GetGauge().GetValue() == 1
	}
	if part.Version == "" {
		return errors.New("it has no metric " + version.Metric + ": it may be a program of another project")
	}
	return nil
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// tagOf returns the tag of an image if it is a version, or "".
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	tag := image[strings.LastIndexByte(image, ':')+1:]
	if strings.Contains(tag, "/") || !version.Valid(tag) {
		return ""
	}
	return tag
}
