package plan

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestAsStored(t *testing.T) {
	secret, pod, cronJob := schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "batch", Kind: "CronJob"}
	for name, test := range map[string]struct {
		kind           schema.GroupKind
		written, after string
	}{
		"both": {secret, `{data: {both: b2xk, kept: a2VwdA==}, stringData: {both: new, empty: "", none: null}}`,
			`{data: {both: bmV3, empty: "", kept: a2VwdA==, none: ""}}`},
		"only texts":     {secret, `{stringData: {both: new}}`, `{data: {both: bmV3}}`},
		"nothing":        {secret, `{stringData: {}}`, `{data: {}}`},
		"a number":       {secret, `{stringData: {port: 3, a: b}}`, `{stringData: {port: 3, a: b}}`},
		"data is a list": {secret, `{data: [], stringData: {a: b}}`, `{data: [], stringData: {a: b}}`},
		"a custom kind":  {schema.GroupKind{Group: "keys.example", Kind: "Secret"}, `{stringData: {a: b}}`, `{stringData: {a: b}}`},
		"a Pod":          {pod, `{spec: {serviceAccount: reader}}`, `{spec: {serviceAccountName: reader}}`},
		"an empty name":  {pod, `{spec: {serviceAccount: reader, serviceAccountName: ""}}`, `{spec: {serviceAccountName: reader}}`},
		"a wrong name":   {pod, `{spec: {serviceAccount: 3}}`, `{spec: {serviceAccount: 3}}`},
		"a custom Pod":   {schema.GroupKind{Group: "x.example", Kind: "Pod"}, `{spec: {serviceAccount: a}}`, `{spec: {serviceAccount: a}}`},
		"a CronJob": {cronJob, `{spec: {jobTemplate: {spec: {template: {spec: {serviceAccount: former, serviceAccountName: reader}}}}}}`,
			`{spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: reader}}}}}}`},
		"no spec": {cronJob, `{spec: null}`, `{spec: null}`},
	} {
		var got, want map[string]any
		if err := yaml.Unmarshal([]byte(test.written), &got); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(test.after), &want); err != nil {
			t.Fatal(err)
		}
		if asStored(test.kind, got); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
