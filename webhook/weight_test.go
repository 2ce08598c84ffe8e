package webhook

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/internal/apitest"
)

// The estimates of what a Configuration takes are not below what it takes, whatever its
// shape, and not so far above that ordinary Configurations are large.
func TestEstimates(t *testing.T) {
	template := func(data string) string {
		return `{"spec":{"instanceBrokerResources":[` +
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"{{ INSTANCE_NAME }}"},"data":` + data + `}]}}`
	}
	for name, data := range map[string]string{
		"maps":          `[` + strings.Repeat(`{"a":0},`, 20_000) + `0]`,
		"empty maps":    `[` + strings.Repeat(`{},`, 50_000) + `0]`,
		"lists":         `[` + strings.Repeat(`[0],`, 50_000) + `0]`,
		"short texts":   `[` + strings.Repeat(`"a",`, 60_000) + `0]`,
		"numbers":       `[` + strings.Repeat(`1234567,`, 60_000) + `0]`,
		"fractions":     `[` + strings.Repeat(`1.5,`, 60_000) + `0]`,
		"a long text":   `"` + strings.Repeat("x", 200_000) + `"`,
		"escapes":       `"` + strings.Repeat(`\n`, 200_000) + `"`,
		"nine entries":  `[` + strings.Repeat(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0},`, 5000) + `0]`,
		"one large map": `{` + strings.Repeat(`"k":0,`, 10) + manyKeys(20_000) + `}`,
		"expressions":   `["` + strings.Repeat(`{{1}}","`, 4000) + `"]`,
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(template(data))
			before := apitest.LiveHeap()
			configuration := &v0.Configuration{}
			if err := json.Unmarshal(raw, configuration); err != nil {
				t.Fatal(err)
			}
			decoded := int64(apitest.LiveHeap() - before)
			compiled, _ := checkTemplates(configuration, confine.Policy{})
			both := int64(apitest.LiveHeap() - before)
			estimate := decodedBytes(raw)
			const noise = 256 << 10 // of other goroutines
			if decoded > estimate+noise {
				t.Errorf("it takes %d bytes to decode, and the estimate is %d", decoded, estimate)
			}
			if total := estimate + compiledBytes(raw, estimate); both > total+noise {
				t.Errorf("it takes %d bytes to decode and to compile, and the estimate is %d", both, total)
			}
			t.Logf("%d bytes of JSON take %d, estimated %d; compiled %d", len(raw), decoded, estimate, both)
			runtime.KeepAlive(configuration)
			runtime.KeepAlive(compiled)
		})
	}
}

// manyKeys returns entries of a map in JSON.
func manyKeys(count int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString(`"` + strings.Repeat("k", 1+i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + `":0,`)
	}
	return strings.TrimSuffix(b.String(), ",")
}
