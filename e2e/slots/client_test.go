package slots

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// paths has the path of each kind that the tests use; %s stands for the namespace.
var paths = map[string]string{
	"Namespace":     "/api/v1/namespaces",
	"Node":          "/api/v1/nodes",
	"Event":         "/api/v1/namespaces/%s/events",
	"Pod":           "/api/v1/namespaces/%s/pods",
	"Deployment":    "/apis/apps/v1/namespaces/%s/deployments",
	"DaemonSet":     "/apis/apps/v1/namespaces/%s/daemonsets",
	"Configuration": "/apis/akri.sh/v0/namespaces/%s/configurations",
	"Instance":      "/apis/akri.sh/v0/namespaces/%s/instances",
}

// object has the fields that the tests read, for all kinds.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName         string            `json:"nodeName"`
		Nodes            []string          `json:"nodes"`
		Capacity         int               `json:"capacity"`
		DeviceUsage      map[string]string `json:"deviceUsage"`
		BrokerProperties map[string]string `json:"brokerProperties"`
	} `json:"spec"`
	Status struct {
		Phase      string `json:"phase"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
		PodIP      string `json:"podIP"`
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		ContainerStatuses []struct {
			Name         string `json:"name"`
			ContainerID  string `json:"containerID"`
			RestartCount int    `json:"restartCount"`
		} `json:"containerStatuses"`
		Capacity               map[string]string `json:"capacity"`
		Allocatable            map[string]string `json:"allocatable"`
		ReadyReplicas          int               `json:"readyReplicas"`
		NumberReady            int               `json:"numberReady"`
		DesiredNumberScheduled int               `json:"desiredNumberScheduled"`
	} `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// condition reports whether a condition of the object is true.
func (o object) condition(name string) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == name {
			return c.Status == "True"
		}
	}
	return false
}

// restarts returns how often the only container of a Pod has been restarted.
func (o object) restarts() int {
	count := 0
	for _, status := range o.Status.ContainerStatuses {
		count += status.RestartCount
	}
	return count
}

// pathOf returns the path of a kind in a namespace.
func pathOf(kind, namespace string) string {
	path, found := paths[kind]
	if !found {
		panic("no path for the kind " + kind)
	}
	if strings.Contains(path, "%s") {
		return fmt.Sprintf(path, namespace)
	}
	return path
}

// send sends a request. The error is that of the transport, or the API server's refusal.
func (w *world) send(method, path, contentType string, body []byte) (code int, text []byte, err error) {
	request, err := http.NewRequestWithContext(w.ctx, method, w.server+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d: %.500s", method, path, response.StatusCode, text)
	}
	return response.StatusCode, text, err
}

var documents = regexp.MustCompile(`(?m)^---$`)

// apply applies manifests in the test's namespace.
func (w *world) apply(manifests string) {
	w.t.Helper()
	for _, text := range documents.Split(manifests, -1) {
		if err := w.tryApply(text); err != nil {
			w.t.Fatal(err)
		}
	}
}

// tryApply applies one manifest, with parameters of the request such as dryRun=All.
func (w *world) tryApply(manifest string, parameters ...string) error {
	body, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return err
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return err
	}
	path := pathOf(o.Kind, w.namespace) + "/" + o.Metadata.Name + "?" + strings.Join(append(parameters, "fieldManager=e2e", "force=true"), "&")
	_, _, err = w.send(http.MethodPatch, path, "application/apply-patch+yaml", body)
	return err
}

// patch patches an object of the test's namespace with a JSON merge patch, which may be
// written as YAML.
func (w *world) patch(kind, name, patch string) {
	w.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.send(http.MethodPatch, pathOf(kind, w.namespace)+"/"+name, "application/merge-patch+json", body); err != nil {
		w.t.Fatal(err)
	}
}

// in returns the world with another namespace.
func (w *world) in(namespace string) *world {
	other := *w
	other.namespace = namespace
	return &other
}

// find reads an object of the test's namespace.
func (w *world) find(kind, name string) (o object, found bool) {
	w.t.Helper()
	code, text, err := w.send(http.MethodGet, pathOf(kind, w.namespace)+"/"+name, "", nil)
	if code == http.StatusNotFound {
		return o, false
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o, true
}

// get reads an object of the test's namespace, which must exist.
func (w *world) get(kind, name string) object {
	w.t.Helper()
	o, found := w.find(kind, name)
	if !found {
		w.t.Fatalf("%s %s does not exist", kind, name)
	}
	return o
}

// list reads the objects of a kind in the test's namespace, with their current state.
func (w *world) list(kind, selector string) []object {
	w.t.Helper()
	objects, err := w.tryList(kind, selector)
	if err != nil {
		w.t.Fatal(err)
	}
	return objects
}

// tryList is like list, but returns the error.
func (w *world) tryList(kind, selector string) ([]object, error) {
	path := pathOf(kind, w.namespace)
	if selector != "" {
		path += "?labelSelector=" + url.QueryEscape(selector)
	}
	_, text, err := w.send(http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []object }
	return list.Items, json.Unmarshal(text, &list)
}

// delete deletes an object, with the grace period that it has. An object that does not
// exist is no error.
func (w *world) delete(kind, name string) {
	w.t.Helper()
	w.deleteWith(kind, name, "")
}

// deleteWith is like delete, with query parameters such as gracePeriodSeconds=0.
func (w *world) deleteWith(kind, name, query string) {
	w.t.Helper()
	if code, _, err := w.send(http.MethodDelete, pathOf(kind, w.namespace)+"/"+name+"?"+query, "", nil); err != nil &&
		code != http.StatusNotFound {
		w.t.Fatal(err)
	}
}

// deleteAll deletes all objects of a kind in the test's namespace.
func (w *world) deleteAll(kind string) {
	w.t.Helper()
	if _, _, err := w.send(http.MethodDelete, pathOf(kind, w.namespace)+"?propagationPolicy=Background", "", nil); err != nil {
		w.t.Fatal(err)
	}
}

// event is a change of an object, as a watch reports it.
type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// watch calls seen for each change of the objects of a kind in the test's namespace,
// beginning with those that exist, until the test ends or stop is called.
func (w *world) watch(kind string, seen func(event)) (stop func()) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.server+pathOf(kind, w.namespace)+"?watch=true", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := json.NewDecoder(response.Body); ; {
			var e event
			if lines.Decode(&e) != nil {
				return
			}
			seen(e)
		}
	}()
	return func() {
		response.Body.Close()
		<-done
	}
}
