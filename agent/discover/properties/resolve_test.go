package properties

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestResolve(t *testing.T) {
	secret := func(key v0.KeyReference) v0.DiscoveryProperty {
		return v0.DiscoveryProperty{Name: "A", ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: &key}}
	}
	configMap := func(key v0.KeyReference) v0.DiscoveryProperty {
		return v0.DiscoveryProperty{Name: "A", ValueFrom: &v0.DiscoveryPropertySource{ConfigMapKeyRef: &key}}
	}
	both := secret(v0.KeyReference{Name: "login", Key: "k"})
	both.Value = new("x")
	login := lookup{values: map[string][]byte{"password": []byte("s3cret")}}

	for name, tc := range map[string]struct {
		property v0.DiscoveryProperty
		found    map[string]lookup // by reference.String
		cross    bool
		want     string // NAME=value, NAME without a value, "pending", or part of the error
	}{
		"a value":              {property: v0.DiscoveryProperty{Name: "A", Value: new("x")}, want: "A=x"},
		"an empty value":       {property: v0.DiscoveryProperty{Name: "A", Value: new("")}, want: "A="},
		"no value":             {property: v0.DiscoveryProperty{Name: "A"}, want: "A"},
		"a value and a source": {property: both, want: "A=x"},
		"of a Secret": {
			property: secret(v0.KeyReference{Name: "login", Key: "password"}),
			found:    map[string]lookup{"Secret plant/login": login},
			want:     "A=s3cret",
		},
		"of a ConfigMap": {
			property: configMap(v0.KeyReference{Name: "login", Key: "password"}),
			found:    map[string]lookup{"ConfigMap plant/login": login},
			want:     "A=s3cret",
		},
		"not read yet": {
			property: secret(v0.KeyReference{Name: "login", Key: "password"}),
			found:    map[string]lookup{"Secret plant/login": {pending: true}},
			want:     "pending",
		},
		"no such Secret": {
			property: secret(v0.KeyReference{Name: "login", Key: "password"}),
			want:     "discoveryProperties[0] (A): Secret plant/login does not exist: create it, or set optional: true",
		},
		"no such Secret, optional": {
			property: secret(v0.KeyReference{Name: "login", Key: "password", Optional: true}),
			want:     "",
		},
		"no such key": {
			property: secret(v0.KeyReference{Name: "login", Key: "pin"}),
			found:    map[string]lookup{"Secret plant/login": login},
			want:     `has no key "pin"`,
		},
		"no such key, optional": {
			property: secret(v0.KeyReference{Name: "login", Key: "pin", Optional: true}),
			found:    map[string]lookup{"Secret plant/login": login},
			want:     "",
		},
		"a value that is too long": {
			property: secret(v0.KeyReference{Name: "login", Key: "password"}),
			found: map[string]lookup{"Secret plant/login": {values: map[string][]byte{
				"password": make([]byte, v0.MaxDiscoveryPropertyLength+1)}}},
			want: `the value of key "password" of Secret plant/login is too long, the limit is 8192 bytes`,
		},
		"forbidden": {
			property: secret(v0.KeyReference{Name: "login", Key: "password", Optional: true}),
			found:    map[string]lookup{"Secret plant/login": {err: apierrors.NewForbidden(corev1.Resource("secrets"), "login", errors.New("no"))}},
			want:     `secrets "login" is forbidden: no: allow it with kubectl akri rbac -n plant door | kubectl apply -f -`,
		},
		"another namespace": {
			property: secret(v0.KeyReference{Name: "login", Key: "password", Namespace: "office"}),
			found:    map[string]lookup{"Secret office/login": login},
			want:     "is in another namespace: copy it to namespace plant",
		},
		"another namespace allowed": {
			property: secret(v0.KeyReference{Name: "login", Key: "password", Namespace: "office"}),
			found:    map[string]lookup{"Secret office/login": login},
			cross:    true,
			want:     "A=s3cret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "door"}}
			configuration.Spec.DiscoveryHandler.DiscoveryProperties = []v0.DiscoveryProperty{tc.property}
			var got string
			if wanted, err := references(configuration, tc.cross); err != nil {
				got = err.Error()
			} else {
				resolved := resolve(configuration, func(ref reference) lookup {
					if wanted[ref] == nil {
						t.Errorf("resolve reads %s, which is not a reference", ref)
					}
					return tc.found[ref.String()]
				})
				switch {
				case resolved.Err != nil:
					got = resolved.Err.Error()
				case resolved.Pending:
					got = "pending"
				default:
					for _, name := range slices.Sorted(maps.Keys(resolved.Properties)) {
						got = name
						if vec := resolved.Properties[name].Vec; vec != nil {
							got += fmt.Sprintf("=%s", vec)
						}
					}
				}
			}
			if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.Contains(got, "does not") && strings.Contains(got, "s3cret") {
				t.Error("an error contains a secret value")
			}
		})
	}
}

// Of an object, only what some Configuration refers to is kept.
func TestKeep(t *testing.T) {
	large := make([]byte, 1<<20)
	data := map[string][]byte{"raw": {0xff}, "large": large, "other": large}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{"a": "b"}}}
	kept := keep(object, keySet{"text": true, "raw": true, "large": true, "absent": true}, data, map[string]string{"text": "plain", "t": "t"})
	if len(kept.values) != 3 || string(kept.values["text"]) != "plain" || string(kept.values["raw"]) != "\xff" {
		t.Errorf("%d values are kept", len(kept.values))
	}
	if value := kept.values["large"]; len(value) != v0.MaxDiscoveryPropertyLength+1 || cap(value) > 2*v0.MaxDiscoveryPropertyLength {
		t.Errorf("of a large value, %d bytes are kept in %d", len(value), cap(value))
	}
	if kept.Name != "c" || kept.Annotations != nil {
		t.Errorf("the metadata is %+v", kept.ObjectMeta)
	}
}

// The values of Secrets count together with those in the Configuration.
func TestValuesTogether(t *testing.T) {
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "door"}}
	handler := &configuration.Spec.DiscoveryHandler
	add := func(property v0.DiscoveryProperty) {
		property.Name = fmt.Sprint("P", len(handler.DiscoveryProperties))
		handler.DiscoveryProperties = append(handler.DiscoveryProperties, property)
	}
	long := make([]byte, v0.MaxDiscoveryPropertyLength)
	find := func(reference) lookup { return lookup{values: map[string][]byte{"k": long}} }
	for range v0.MaxDiscoveryPropertiesLength/v0.MaxDiscoveryPropertyLength - 1 {
		add(v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: &v0.KeyReference{Name: "s", Key: "k"}}})
	}
	add(v0.DiscoveryProperty{Value: new(string(long))})
	if resolved := resolve(configuration, find); resolved.Err != nil {
		t.Errorf("at the limit: %v", resolved.Err)
	}
	add(v0.DiscoveryProperty{Value: new("x")})
	resolved := resolve(configuration, find)
	if resolved.Err == nil || !strings.Contains(resolved.Err.Error(), "have 65537 bytes, the limit is 65536") {
		t.Errorf("above the limit: %v", resolved.Err)
	}
}
