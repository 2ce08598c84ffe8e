package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// checkName is the argument that selects the command.
const checkName = "check"

const checkUsage = `Usage: akri-controller check [flags]

Checks an installation, as "helm test" does: the kinds are served, the webhook refuses
an invalid Configuration and accepts a valid one, all agents are ready, and a device of
the handler debugEcho appears and disappears. It removes what it creates.
`

// checkConfiguration is the name of the Configuration that the check creates.
const checkConfiguration = "akri-check"

// checkInterval is the time between two looks at something that is waited for.
const checkInterval = time.Second

// checkCommand checks an installation.
type checkCommand struct {
	namespace string
	webhook   bool
	agents    bool
	device    bool
	timeout   time.Duration
	out       io.Writer

	api    client.Client
	served func() error
}

func (c *checkCommand) register(set *pflag.FlagSet) {
	set.StringVar(&c.namespace, "namespace", "akri-system", "`namespace` of the installation")
	set.BoolVar(&c.webhook, "webhook", true, "check the admission webhook")
	set.BoolVar(&c.agents, "agents", true, "check the agents")
	set.BoolVar(&c.device, "debug-echo", false, "check that a device appears and disappears; needs the handler debugEcho")
	set.DurationVar(&c.timeout, "timeout", 2*time.Minute, "`duration` after which each check fails")
}

// serve connects to the API server and makes the checks.
func (c *checkCommand) serve(ctx context.Context, api *rest.Config) error {
	api.WarningHandler = rest.NoWarnings{} // only the results are for the person who runs the check
	var err error
	if c.api, err = newClient(api); err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(api)
	if err != nil {
		return unreachable(api, err)
	}
	c.served = func() error { return servesKinds(kinds) }
	if c.out == nil {
		c.out = os.Stdout
	}
	return c.checkAll(ctx)
}

// checkAll makes all checks, also after one has failed, and prints their results.
func (c *checkCommand) checkAll(ctx context.Context) error {
	failed := 0
	for _, check := range []struct {
		name    string
		enabled bool
		run     func(context.Context) (string, error)
		without string
	}{
		{"kinds", true, c.checkKinds, ""},
		{"webhook", c.webhook, c.checkWebhook, "not part of this installation"},
		{"agents", c.agents, c.checkAgents, "not part of this installation"},
		{"device", c.device, c.checkDevice, "needs agents with the handler debugEcho: enable it to see a device come and go"},
	} {
		if !check.enabled {
			fmt.Fprintf(c.out, "skip  %s: %s\n", check.name, check.without)
			continue
		}
		result, err := c.within(ctx, check.run)
		if err != nil {
			failed++
			fmt.Fprintf(c.out, "FAIL  %s: %v\n", check.name, err)
			continue
		}
		fmt.Fprintf(c.out, "ok    %s: %s\n", check.name, result)
	}
	if failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	return nil
}

func (c *checkCommand) within(ctx context.Context, run func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return run(ctx)
}

// eventually repeats a look until it succeeds or the time is up. It returns the last
// error.
func eventually(ctx context.Context, look func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, checkInterval, true, func(ctx context.Context) (bool, error) {
		if err := look(ctx); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			if apierrors.IsInvalid(err) || errors.Is(err, errOfAnother) {
				return false, err // time does not mend it
			}
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

func (c *checkCommand) checkKinds(ctx context.Context) (string, error) {
	err := eventually(ctx, func(context.Context) error { return c.served() })
	return "the API server serves Configurations and Instances", err
}

// servesKinds returns an error if the API server does not serve one of Akri's kinds.
func servesKinds(kinds discovery.ServerResourcesInterface) error {
	list, err := kinds.ServerResourcesForGroupVersion(v0.GroupVersion.String())
	if err != nil {
		return fmt.Errorf("%s is not served: %w: install the CustomResourceDefinitions", v0.GroupVersion, err)
	}
	missing := map[string]bool{"configurations": true, "instances": true}
	for _, resource := range list.APIResources {
		delete(missing, resource.Name)
	}
	for name := range missing {
		return fmt.Errorf("%s.%s is not served: install the CustomResourceDefinitions", name, v0.GroupVersion.Group)
	}
	return nil
}

// checkWebhook sends Configurations that are not stored.
func (c *checkCommand) checkWebhook(ctx context.Context) (string, error) {
	err := eventually(ctx, func(ctx context.Context) error {
		err := c.api.Create(ctx, c.configuration("descriptions: 1"), client.DryRunAll)
		if err == nil {
			return errors.New("an invalid Configuration was accepted: is the ValidatingWebhookConfiguration registered?")
		}
		if !strings.Contains(err.Error(), "discoveryDetails") {
			return fmt.Errorf("an invalid Configuration was refused for another reason: %w", err)
		}
		if err := c.api.Create(ctx, c.configuration(`descriptions: ["`+checkConfiguration+`"]`), client.DryRunAll); err != nil {
			return fmt.Errorf("a valid Configuration was refused: %w", err)
		}
		return nil
	})
	return "refuses an invalid Configuration and accepts a valid one", err
}

func (c *checkCommand) configuration(details string) *v0.Configuration {
	configuration := &v0.Configuration{}
	configuration.Namespace, configuration.Name = c.namespace, checkConfiguration
	configuration.Spec.DiscoveryHandler = v0.DiscoveryHandler{Name: "debugEcho", DiscoveryDetails: details}
	return configuration
}

func (c *checkCommand) checkAgents(ctx context.Context) (string, error) {
	var ready int64
	err := eventually(ctx, func(ctx context.Context) error {
		agents := &unstructured.Unstructured{}
		agents.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"})
		if err := c.api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "akri-agent"}, agents); err != nil {
			return fmt.Errorf("read the DaemonSet akri-agent: %w", err)
		}
		status := func(name string) int64 {
			n, _, _ := unstructured.NestedInt64(agents.Object, "status", name)
			return n
		}
		wanted := status("desiredNumberScheduled")
		ready = status("numberReady")
		switch {
		case status("observedGeneration") < agents.GetGeneration():
			return errors.New("the DaemonSet akri-agent has not been processed yet")
		case wanted == 0:
			return errors.New("no node is selected: see agent.nodeSelector and agent.tolerations in the chart's values")
		case ready < wanted:
			return fmt.Errorf("%d of %d are ready: see kubectl -n %s get pods", ready, wanted, c.namespace)
		}
		return nil
	})
	return fmt.Sprintf("%d of %d are ready", ready, ready), err
}

// checkDevice creates a Configuration with one device, waits for its Instance, deletes
// the Configuration, and waits until the Instance is gone.
func (c *checkCommand) checkDevice(ctx context.Context) (result string, err error) {
	configuration := c.configuration(`descriptions: ["` + checkConfiguration + `"]`)
	if err := c.remove(ctx, configuration); err != nil {
		return "", err
	}
	if err := c.api.Create(ctx, configuration); err != nil {
		return "", fmt.Errorf("create the Configuration %s: %w", checkConfiguration, err)
	}
	begin := time.Now()
	defer func() {
		if err == nil {
			return
		}
		// The time may be up.
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if removeErr := c.remove(cleanup, configuration); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
	}()
	err = eventually(ctx, func(ctx context.Context) error {
		found, err := c.hasInstance(ctx)
		if err == nil && !found {
			err = errors.New("no agent has published the device: see kubectl akri why " + checkConfiguration)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	came := time.Since(begin)
	if err := c.remove(ctx, configuration); err != nil {
		return "", err
	}
	return fmt.Sprintf("a device of the handler debugEcho appeared after %s and disappeared with its Configuration",
		came.Round(checkInterval/10)), nil
}

// remove deletes the Configuration and waits until it and its Instances are gone.
func (c *checkCommand) remove(ctx context.Context, configuration *v0.Configuration) error {
	return eventually(ctx, func(ctx context.Context) error {
		switch err := c.api.Delete(ctx, configuration.DeepCopy()); {
		case err == nil:
			return fmt.Errorf("the Configuration %s still exists", checkConfiguration)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("delete the Configuration %s: %w", checkConfiguration, err)
		}
		found, err := c.hasInstance(ctx)
		if err == nil && found {
			err = fmt.Errorf("an Instance of the Configuration %s still exists", checkConfiguration)
		}
		return err
	})
}

func (c *checkCommand) hasInstance(ctx context.Context) (bool, error) {
	found := false
	err := eachInstance(ctx, c.api, c.namespace, func(instance *v0.Instance) {
		found = found || instance.Spec.ConfigurationName == checkConfiguration
	})
	return found, err
}
