package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// canary returns a value that must not appear anywhere but in its object.
func (w *world) canary() string { return "canary-" + w.namespace + "-value" }

// hidden fails the test if the canary is in a status, an Event or a log.
func (w *world) hidden() {
	w.t.Helper()
	canary := w.canary()
	for _, kindName := range []string{"Configuration", "Instance"} {
		for _, o := range w.list(kindName, w.namespace) {
			if status := string(object{"status": o["status"]}.json()); strings.Contains(status, canary) {
				w.t.Errorf("the status of %s %s has the canary: %s", kindName, o.name(), excerpt(status, canary))
			}
		}
	}
	for _, event := range w.list("Event", w.namespace) {
		if strings.Contains(string(event.json()), canary) {
			w.t.Errorf("an Event has the canary: %s", excerpt(event.text("message"), canary))
		}
	}
	if logs := w.logs(); strings.Contains(logs, canary) {
		w.t.Errorf("a log has the canary: %s", excerpt(logs, canary))
	}
}

// excerpt returns the surroundings of the canary.
func excerpt(text, canary string) string {
	at := strings.Index(text, canary)
	return text[max(0, at-400):min(len(text), max(at, 0)+200)]
}

// A Secret's value, which a device reports or the API server repeats, is in no answer,
// condition, Event or log.
func TestSecretValues(t *testing.T) {
	w := newWorld(t)
	canary := w.canary()
	w.grantController(rule{"", "secrets", "get,list,watch,create,patch,delete"})
	w.must(w.admin.create(parse(fmt.Sprintf(
		"{apiVersion: v1, kind: Secret, metadata: {name: fixed}, immutable: true, stringData: {k: %s}}", canary))))
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: "
	templates := map[string]string{
		"not base64":    secret + "s-0}, data: {k: '%s'}}",
		"a map":         secret + "s-1}, stringData: {k: {a: '%s'}}}",
		"a list":        secret + "s-2}, stringData: ['%s']}",
		"a type":        secret + "s-3}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '%s'}}",
		"a label":       secret + "s-5, labels: {x: '%s !'}}}",
		"a field":       secret + "s-6}, unknown: '%s'}",
		"immutable":     secret + "fixed, annotations: {akri.sh/on-conflict: adopt}}, stringData: {k: '%s-2'}}",
		"a bool":        secret + "s-7}, immutable: '%s'}",
		"tls":           secret + "s-8}, type: kubernetes.io/tls, stringData: {tls.crt: '%s', tls.key: '%s'}}",
		"two instances": secret + "s-9}, data: ['%s', 1]}",
	}
	for what, template := range templates {
		for _, value := range []string{canary, encoded} {
			text := strings.ReplaceAll(template, "%s", value)
			a := w.admin.create(configuration("secret-values", spec{devices: []string{"d"}, group: []string{text}}), "dryRun", "All")
			if strings.Contains(a.text+strings.Join(a.warnings, " "), canary) && !a.ok() {
				t.Errorf("%s: the answer has the canary: %v", what, a)
			}
		}
	}
	w.skipWebhook()
	i := 0
	for what, template := range templates {
		name := fmt.Sprintf("secret-values-%d", i)
		i++
		c := configuration(name, spec{
			devices: []string{"d"}, more: "{brokerProperties: {PASSWORD: " + canary + "}}",
			instance: []string{strings.ReplaceAll(template, "%s", "{{INSTANCE_PROPERTIES.PASSWORD}}")},
		})
		if a := w.admin.create(c); !a.ok() {
			t.Logf("%s is refused: %v", what, a)
			continue
		}
		w.instances(name, 1)
	}
	w.converged("after-secrets")
	w.hidden()
}

// The webhook's port answers the API server, and nobody else.
func TestForgedReview(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	review := fmt.Sprintf(`{
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
  "request": {
    "uid": "forged", "operation": "CREATE", "namespace": %[1]q, "name": "forged",
    "kind": {"group": "akri.sh", "version": "v0", "kind": "Configuration"},
    "resource": {"group": "akri.sh", "version": "v0", "resource": "configurations"},
    "userInfo": {"username": "admin", "groups": ["system:masters"]},
    "object": %[2]s
  }
}`, w.namespace, configuration("forged", spec{devices: []string{"d"}, group: []string{configMap("x", "v")}}).json())
	answered := 0
	for _, pod := range w.pods("akri-webhook") {
		address := net.JoinHostPort(pod.text("status", "podIP"), "9443")
		client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the attacker does not care
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return w.Dial(ctx, "node1", network, address)
			},
		}}
		for _, path := range []string{
			"/admission/configurations", "/admission/configurations?timeout=10s", "/", "/admission", "/admission/configurations/x",
		} {
			response, err := client.Post("https://"+address+path, "application/json", bytes.NewReader([]byte(review)))
			if err != nil {
				t.Logf("%s: %v", path, err)
				continue
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			answered++
			if response.StatusCode == http.StatusOK || bytes.Contains(text, []byte("allowed")) {
				t.Errorf("a forged review at %s is answered: %d %s", path, response.StatusCode, text)
			}
		}
	}
	if answered == 0 {
		t.Error("no request reached the webhook: nothing is proved")
	}
	w.must(w.admin.create(configuration("forged", spec{devices: []string{"d"}}), "dryRun", "All")) // control: the API server is answered
}

// What authors write does not begin lines of its own in the logs.
func TestForgedLogLines(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	canary := w.canary()
	w.skipWebhook()
	line := "\n{\"level\":\"error\",\"msg\":\"" + canary + "\"}\n\x1b[2J"
	c := configuration("lines", spec{devices: []string{"d" + line}, instance: []string{
		configMap("{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}", "v"), configMap("x", "{{ fail `"+line+"` }}"),
	}})
	w.must(w.admin.create(c))
	w.instances("lines", 1)
	w.await("lines", "Applied", "False")
	for text := range strings.Lines(w.logs()) {
		if strings.HasPrefix(text, `{"level":"error","msg":"`+canary) || strings.Contains(text, "\x1b[2J") {
			t.Errorf("a forged line: %q", text)
		}
	}
}
