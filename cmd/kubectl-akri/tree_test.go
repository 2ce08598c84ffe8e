package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

func TestTreeAsData(t *testing.T) {
	w := newWorld(t)
	w.run("", "tree", "-o", "json").want(t, 0, "[]\n")
	w.Apply(example)
	w.Apply(changed(t, "{name: cam}", "{name: usb, labels: {site: plant}}"))
	w.Instance("cam", "cam-1", nil)
	for format, unmarshal := range map[string]func([]byte, any) error{
		"json": json.Unmarshal, "yaml": func(data []byte, to any) error { return yaml.UnmarshalStrict(data, to) },
	} {
		var forest view.Forest
		got := w.run("", "tree", "-o", format)
		if err := unmarshal([]byte(got.out), &forest); err != nil || len(forest) != 2 || len(forest[0].Instances) != 1 ||
			forest[0].Instances[0].Name != "cam-1" || forest[1].Configuration.Name != "usb" || strings.Contains(got.out, "managedFields") {
			t.Errorf("%v, got %s", err, got.out)
		}
	}
	w.run("", "tree", "-l", "site=plant").want(t, 0, "/usb", "!/cam")
	w.run("", "tree", "-A", "-l", "site notin (plant)").want(t, 0, w.Namespace+"/cam", "!/usb")
	w.run("", "tree", "-l", "=").want(t, 2, "error: -l =: ", "See 'kubectl akri tree --help'")
	w.run("", "tree", "-o", "xml").want(t, 2, `"-o, --output"`, "use json or yaml")

	var facts view.Facts
	w.installed()
	got := w.run("", "why", "instance/cam-1", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &facts); err != nil || facts.Instance.Name != "cam-1" || facts.Configuration.Name != "cam" ||
		len(facts.Findings) != 1 || !strings.Contains(facts.Findings[0].Cause, "has not reconciled") || facts.Findings[0].Hint == "" ||
		strings.Contains(got.out, "managedFields") {
		t.Errorf("%v, got %s", err, got.out)
	}
}

// output is a stream that can be read while a command writes to it.
type liveOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *liveOutput) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *liveOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestTreeWatch changes objects while the tree is watched, and interrupts it.
func TestTreeWatch(t *testing.T) {
	w := newWorld(t)
	w.Apply(example)
	w.Apply(changed(t, "{name: cam}", "{name: usb}"))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, errOut liveOutput
	root := newRoot(cli.Streams{Out: &out, Err: &errOut})
	root.SetArgs([]string{"tree", "-w", "--kubeconfig", w.kubeconfig})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	wait := func(what string, stream *liveOutput, want string) {
		t.Helper()
		w.Eventually(what, func() string {
			if got := stream.String(); !strings.HasSuffix(got, want) {
				return "the output is " + got
			}
			return ""
		})
	}
	const line = "  debugEcho: no devices, capacity 1 each  (not reconciled yet)\n"
	cam := "Configuration " + w.Namespace + "/cam" + line
	both := cam + "---\nConfiguration " + w.Namespace + "/usb" + line
	wait("both are shown", &out, both)
	instance := w.Instance("cam", "cam-1", nil)
	withDevice := both + "---\n" + cam + "└── Instance cam-1  on node-a  (not reconciled yet)\n    └── slot cam-1-0  "
	wait("the new device is shown", &out, withDevice+"free\n")
	if err := w.Patch(t.Context(), instance, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"deviceUsage":{"cam-1-0":"node-a"}}}`))); err != nil {
		t.Fatal(err)
	}
	wait("the slot is shown as used", &out, "slot cam-1-0  used on node-a\n")
	usb := &v0.Configuration{ObjectMeta: w.Meta("usb")}
	if err := w.Delete(t.Context(), usb); err != nil {
		t.Fatal(err)
	}
	wait("the deletion is noted", &errOut, "note: Configuration "+w.Namespace+"/usb was deleted\n")
	interrupt()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if got := out.String(); !strings.HasPrefix(got, withDevice+"free\n---\n") || strings.Count(got, "---") != 3 {
		t.Errorf("got\n%s", got)
	}

	w.testOutage(t)
	lister := w.as("lister", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	lister.run("", "tree", "-w").want(t, 1, "error: watch: ", `cannot watch resource`)
}

// testOutage cuts a tree that is watched off from the API server for a while.
func (w *world) testOutage(t *testing.T) {
	transport, err := rest.TransportFor(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	api, err := url.Parse(w.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	var down atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		if down.Load() {
			http.Error(out, "the API server is away", http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(out, request)
	}))
	defer proxy.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out, errOut liveOutput
	root := newRoot(cli.Streams{Out: &out, Err: &errOut})
	root.SetArgs([]string{"tree", "-w", "--kubeconfig", w.kubeconfig, "--server", proxy.URL})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	shows := func(stream *liveOutput, want string) {
		t.Helper()
		w.Eventually(want+" is shown", func() string {
			if got := stream.String(); !strings.Contains(got, want) {
				return "the output is " + got
			}
			return ""
		})
	}
	shows(&out, "/cam")
	down.Store(true)
	proxy.CloseClientConnections()
	shows(&errOut, "note: the API server does not answer")
	w.Apply(changed(t, "{name: cam}", "{name: meanwhile}"))
	down.Store(false)
	shows(&out, "/meanwhile")
	interrupt()
	if err := <-ended; err != nil || strings.Count(errOut.String(), "note:") != 1 {
		t.Errorf("%v, and the notes are %s", err, errOut.String())
	}
}
