package observer

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// Users who create Pods choose what it takes to decode them. However many a node has, the
// agent decodes one at a time. The server answers as an API server does; a real one needs
// a minute to store such Pods.
func TestMemoryOfPods(t *testing.T) {
	fulltest.Only(t) // with the race detector and other packages, it takes longer than a list may
	const pods, maxHeap = 30, 32 << 20
	var fields, env []string
	for i := range 30_000 {
		fields = append(fields, fmt.Sprintf(`"f:e%05d":{}`, i))
	}
	for i := range 20_000 {
		env = append(env, fmt.Sprintf(`{"name":"e%05d","value":""}`, i))
	}
	pod := `{"metadata":{"uid":"u%d","name":"p%d","namespace":"n","managedFields":[{"fieldsV1":{` + strings.Join(fields, ",") + `}}]},
		"spec":{"containers":[{"name":"app","resources":{"limits":{"akri.sh/cam":"2"}},"env":[` + strings.Join(env, ",") + `]}]},
		"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"state":{"running":{}}}]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" || r.URL.RawQuery != "fieldSelector=spec.nodeName%3Dhere" {
			t.Errorf("unexpected request %s", r.URL)
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[`)
		for i := range pods {
			_, _ = fmt.Fprintf(w, strings.Repeat(",", min(i, 1))+pod, i, i)
		}
		_, _ = io.WriteString(w, `]}`)
	}))
	defer server.Close()
	client, err := core.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	into := newStore(make(chan struct{}, 1))

	before, peak := apitest.LiveHeap(), apitest.PeakHeap()
	version, err := apiPods{client, "here"}.list(t.Context(), into)
	if grown := peak() - before; grown > maxHeap {
		t.Errorf("%d Pods of %d KB take %d MiB, want at most %d", pods, len(pod)/1000, grown>>20, maxHeap>>20)
	}
	if err != nil || version != "7" {
		t.Errorf("version %q, %v", version, err)
	}
	read, _ := into.snapshot()
	if len(read) != pods {
		t.Fatalf("%d Pods are read, want %d", len(read), pods)
	}
	for _, p := range read {
		if p.Requests["akri.sh/cam"] != 2 || p.Terminated || p.Waiting {
			t.Errorf("read %+v", p)
		}
	}
}

// What is not a whole list is an error: Pods that are not in it would count as gone.
func TestDecodeList(t *testing.T) {
	const pod = `{"metadata":{"uid":"u","name":"p","namespace":"n"}}`
	for text, want := range map[string]int{
		`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}`:                    0,
		`{"items":[` + pod + `,` + pod + `],"metadata":{"resourceVersion":"7"},"other":[{}]}`: 2,
		`{"metadata":{"resourceVersion":"7"},"items":null}`:                                   -1,
		`{"metadata":{"resourceVersion":"7"},"items":[` + pod:                                 -1,
		`{"metadata":{"resourceVersion":"7"},"items":[` + pod + `]`:                           -1,
		`{"metadata":{"resourceVersion":"7"},"items":[` + pod[:20]:                            -1,
		`{"metadata":{"resourceVersion":"7"},"items":[7]}`:                                    -1,
		`{"metadata":{},"items":[` + pod + `]}`:                                               -1,
		`{"metadata":{"resourceVersion":"7"}}`:                                                -1,
		`[]`:                                                                                  -1,
		``:                                                                                    -1,
	} {
		pods, version, err := decodeList(strings.NewReader(text))
		if (err != nil) != (want < 0) || err == nil && (len(pods) != want || version != "7") {
			t.Errorf("%s: %d Pods, version %q, %v", text, len(pods), version, err)
		}
	}
}
