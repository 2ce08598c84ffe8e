package convert_test

import (
	"errors"
	"math"
	"testing"

	"akri.sh/akri/templating/convert"
)

// TestRefusals checks that an error names the old field, and that callers can find it.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		fields      convert.Fields
		field, want string
	}{
		"a Pod and a Job": {
			convert.Fields{BrokerPodSpec: map[string]any{}, BrokerJobSpec: map[string]any{}},
			"brokerSpec", "brokerSpec: brokerPodSpec and brokerJobSpec exclude each other: keep one",
		},
		"a Job that is not JSON": {
			convert.Fields{BrokerJobSpec: map[string]any{"a": math.NaN()}},
			"brokerSpec.brokerJobSpec", "brokerSpec.brokerJobSpec: json: unsupported value: NaN",
		},
	} {
		lists, err := convert.BrokerResources(tc.fields)
		found, ok := errors.AsType[*convert.FieldError](err)
		if !ok || found.Field.String() != tc.field || err.Error() != tc.want || !errors.Is(err, found.Err) || lists.Instance != nil {
			t.Errorf("%s: got %v, %v\nwant %s", name, lists, err, tc.want)
		}
	}
}
