package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

// The cache holds a Configuration in at most twice the size of its JSON, whatever its shape.
func TestMemoryOfConfigurations(t *testing.T) {
	maps := strings.Repeat(`{"a":0},`, 270)
	for name, spec := range map[string]string{
		"maps in templates": `"discoveryHandler":{"name":"x"},"instanceBrokerResources":[` + strings.TrimSuffix(strings.Repeat(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ INSTANCE_NAME }}"},"data":{"k":[`+maps+`0]}},`, 64), ",") + `]`,
		"discoveryProperties": `"discoveryHandler":{"name":"debugEcho","discoveryProperties":[` + strings.TrimSuffix(strings.Repeat(
			`{"name":"P","value":"`+strings.Repeat("x", 8192)+`"},`, 128), ",") + `]}`,
	} {
		text := `{"apiVersion":"akri.sh/v0","kind":"Configuration","metadata":{"name":"c"},"spec":{` + spec + `}}`
		before := liveHeap()
		kept := make([]any, 10)
		for i := range kept {
			configuration := &v0.Configuration{}
			if err := json.Unmarshal([]byte(text), configuration); err != nil {
				t.Fatal(err)
			}
			configuration.Name = fmt.Sprint(i)
			var err error
			if kept[i], err = CacheOptions().DefaultTransform(configuration); err != nil {
				t.Fatal(err)
			}
		}
		each := (liveHeap() - before) / len(kept)
		t.Logf("%s: %d KB of JSON take %d KB", name, len(text)/1000, each/1000)
		if each > 2*len(text) {
			t.Errorf("%s: %d bytes of JSON take %d", name, len(text), each)
		}
		runtime.KeepAlive(kept)
	}
}

// Metadata that others write, as much as the API server accepts, takes no memory: neither
// that of a Configuration nor that of an Instance.
func TestMemoryOfMetadata(t *testing.T) {
	transform := CacheOptions().DefaultTransform
	for name, metadata := range apitest.HugeMetadata() {
		for kind, create := range map[string]func() client.Object{
			"Configuration": func() client.Object { return &v0.Configuration{} },
			"Instance":      func() client.Object { return &v0.Instance{} },
		} {
			text, err := json.Marshal(map[string]any{"metadata": metadata})
			if err != nil {
				t.Fatal(err)
			}
			before := liveHeap()
			kept := make([]any, 10)
			for i := range kept {
				object := create()
				if err := json.Unmarshal(text, object); err != nil {
					t.Fatal(err)
				}
				if kept[i], err = transform(object); err != nil {
					t.Fatal(err)
				}
			}
			each := (liveHeap() - before) / len(kept)
			if each > 16<<10 {
				t.Errorf("%s of a %s: %d KB of JSON take %d KB", name, kind, len(text)/1000, each/1000)
			}
			runtime.KeepAlive(kept)
		}
	}
}

func liveHeap() int {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
