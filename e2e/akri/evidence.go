package akri

import (
	"context"
	"fmt"
	"strings"
)

// Evidence returns the information needed to diagnose a failure of Akri: the objects
// in a namespace, and Akri's own Pods and logs.
func Evidence(ctx context.Context, c Client, namespace string) string {
	var text strings.Builder
	for _, arguments := range [][]string{
		{"--namespace", namespace, "get", "configurations,instances,pods,services,deployments", "--output=wide"},
		{"--namespace", namespace, "get", "events", "--sort-by=.metadata.creationTimestamp"},
		{"--namespace", namespace, "get", "configurations,instances", "--output=yaml"},
		{"--namespace", namespace, "describe", "pods"},
		{"--namespace", Namespace, "describe", "pods"},
		{"--namespace", Namespace, "logs", "--tail=200", "daemonset/akri-debug-echo-discovery"},
		{"--namespace", Namespace, "logs", "--tail=200", "deployment/akri-controller"},
		{"--namespace", Namespace, "logs", "--tail=200", "--all-pods", "deployment/akri-webhook"},
		{"--namespace", Namespace, "logs", "--tail=200", "--all-pods", "daemonset/akri-agent"},
	} {
		output, err := c.Kubectl(ctx, arguments...)
		fmt.Fprintf(&text, "$ kubectl %s\n%s", strings.Join(arguments, " "), output)
		if err != nil {
			fmt.Fprintln(&text, err)
		}
	}
	return text.String()
}
