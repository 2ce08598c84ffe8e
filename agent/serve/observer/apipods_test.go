package observer

import (
	"strings"
	"testing"
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
