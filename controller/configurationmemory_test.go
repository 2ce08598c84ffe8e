package controller

import (
	"encoding/json"
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
		each := apitest.KeptBytes(t, []byte(text), func(text []byte) (any, error) {
			configuration := &v0.Configuration{}
			if err := json.Unmarshal(text, configuration); err != nil {
				return nil, err
			}
			return CacheOptions().DefaultTransform(configuration)
		})
		t.Logf("%s: %d KB of JSON take %d KB", name, len(text)/1000, each/1000)
		if each > 2*len(text) {
			t.Errorf("%s: %d bytes of JSON take %d", name, len(text), each)
		}
	}
}

// The metadata of a Configuration and of an Instance takes no memory.
func TestMemoryOfMetadata(t *testing.T) {
	for kind, create := range map[string]func() client.Object{
		"Configuration": func() client.Object { return &v0.Configuration{} },
		"Instance":      func() client.Object { return &v0.Instance{} },
	} {
		t.Run(kind, func(t *testing.T) {
			apitest.CheckKeptMetadata(t, func(text []byte) (any, error) {
				object := create()
				if err := json.Unmarshal(text, object); err != nil {
					return nil, err
				}
				return CacheOptions().DefaultTransform(object)
			})
		})
	}
}
