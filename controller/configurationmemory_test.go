package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
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

func liveHeap() int {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
