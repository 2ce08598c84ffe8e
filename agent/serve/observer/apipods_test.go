package observer

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
)

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

// TestAPIPodsRequests checks that a watch reads only the node's Pods, consistently, and
// goes on from the version of the list.
func TestAPIPodsRequests(t *testing.T) {
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.Query().Encode())
		if !r.URL.Query().Has("watch") {
			w.Write([]byte(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
		}
	}))
	defer server.Close()
	client, err := core.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := (apiPods{client, "n1"}).watch(t.Context(), newStore(make(chan struct{}, 1)), func() {}); err != nil {
		t.Error(err)
	}
	want := []string{"fieldSelector=spec.nodeName%3Dn1", "fieldSelector=spec.nodeName%3Dn1&resourceVersion=7&watch=true"}
	if !slices.Equal(queries, want) {
		t.Errorf("%q, want %q", queries, want)
	}
}
