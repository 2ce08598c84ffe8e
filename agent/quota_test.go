package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
)

func TestOverQuota(t *testing.T) {
	const mib = 1 << 20
	many := func(last int) map[string]load {
		return map[string]load{"b": {count: 100}, "c": {count: 100}, "d": {count: 500}, "e": {count: last}}
	}
	large := func(last int) map[string]load {
		return map[string]load{"b": {1, 9 * mib, 0}, "c": {1, 9 * mib, 0}, "d": {1, 9 * mib, 0}, "e": {1, last, 0}}
	}
	referring := func(last int) map[string]load {
		return map[string]load{"b": {1, 0, 200}, "c": {1, 0, 5000}, "d": {1, 0, 200}, "e": {1, 0, last}}
	}
	for name, test := range map[string]struct {
		wanted     int // bytes
		references int
		older      map[string]load
		says       string
	}{
		"nothing else":                     {wanted: mib},
		"the last one of a namespace":      {older: map[string]load{"a": {99, 0, 0}}},
		"one more":                         {older: map[string]load{"a": {100, 0, 0}}, says: "at most 100 Configurations of one namespace"},
		"another namespace has far more":   {older: map[string]load{"b": {5000, 100 * mib, 0}}},
		"others leave room for one":        {older: many(99)},
		"others take all":                  {older: many(100), says: "at most 400"},
		"the last byte of a namespace":     {wanted: mib, older: map[string]load{"a": {3, 3 * mib, 0}}},
		"one byte more":                    {wanted: mib, older: map[string]load{"a": {3, 3*mib + 1, 0}}, says: "a namespace's Configurations"},
		"the last byte of the node":        {wanted: mib, older: large(3 * mib)},
		"none is left":                     {wanted: 1, older: large(4 * mib), says: "all Configurations"},
		"a large request alone is too big": {wanted: 5 * mib, says: "or shorten discoveryDetails"},
		"the last Secret of a namespace":   {references: 2, older: map[string]load{"a": {5, 0, 198}}},
		"one Secret more":                  {references: 2, older: map[string]load{"a": {5, 0, 199}}, says: "at most 200 Secrets"},
		"a Configuration with too many":    {references: 201, says: "at most 200 Secrets and ConfigMaps"},
		"the last Secret of the node":      {references: 100, older: referring(100)},
		"no Secret is left":                {references: 1, older: referring(200), says: "all Configurations on a node refer to at most 800"},
	} {
		got := overQuota("a", load{1, test.wanted, test.references}, test.older)
		if test.says == "" && got != "" || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", name, got, test.says)
		}
	}
}

func TestLoad(t *testing.T) {
	literal := func(length int) v0.DiscoveryProperty {
		return v0.DiscoveryProperty{Value: new(strings.Repeat("x", length))}
	}
	secret := v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: &v0.KeyReference{Name: "s", Key: "k"}}}
	for name, test := range map[string]struct {
		details    string
		properties []v0.DiscoveryProperty
		want       int
	}{
		"nothing":                     {want: 0},
		"details and values":          {details: "abc", properties: []v0.DiscoveryProperty{literal(10), {Name: "EMPTY"}}, want: 13},
		"values that are not known":   {properties: []v0.DiscoveryProperty{literal(10), secret}, want: 10 + v0.MaxDiscoveryPropertyLength},
		"more of them than accepted":  {properties: slicesOf(secret, 100), want: v0.MaxDiscoveryPropertiesLength},
		"from before the limit":       {properties: append(slicesOf(literal(8000), 128), secret), want: 128 * 8000},
		"a hundred with two Secrets":  {properties: slicesOf(secret, 2), want: 2 * v0.MaxDiscoveryPropertyLength},
		"a value and details of both": {details: "é", properties: []v0.DiscoveryProperty{literal(1)}, want: 3},
	} {
		if got := loadOf(with(test.details, test.properties...)).bytes; got != test.want {
			t.Errorf("%s: %d bytes, want %d", name, got, test.want)
		}
	}
	other := v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{SecretKeyRef: &v0.KeyReference{Name: "t", Key: "k"}}}
	config := v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{ConfigMapKeyRef: &v0.KeyReference{Name: "s", Key: "k"}}}
	elsewhere := v0.DiscoveryProperty{ValueFrom: &v0.DiscoveryPropertySource{
		SecretKeyRef: &v0.KeyReference{Name: "s", Namespace: "elsewhere", Key: "k"}}}
	if got := loadOf(with("", secret, secret, literal(1), other, config, elsewhere)).references; got != 4 {
		t.Errorf("%d objects, want 4", got)
	}

	usual := loadOf(with(strings.Repeat("x", 8<<10), secret, other)) // details of 8 KiB, a user and a password
	for range v0.MaxConfigurations - 1 {
		usual = usual.plus(loadOf(with(strings.Repeat("x", 8<<10), secret, other)))
	}
	if says := overQuota("a", usual, nil); says != "" {
		t.Errorf("the most Configurations of a namespace, with usual requests: %s", says)
	}
}

func with(details string, properties ...v0.DiscoveryProperty) *v0.Configuration {
	return &v0.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a"},
		Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{DiscoveryDetails: details, DiscoveryProperties: properties}},
	}
}

func slicesOf(property v0.DiscoveryProperty, count int) []v0.DiscoveryProperty {
	list := make([]v0.DiscoveryProperty, count)
	for i := range list {
		list[i] = property
	}
	return list
}

// The oldest Configurations are served, of those whose handler is on the node. Another
// takes the place of one that is deleted.
func TestTheOldestAreServed(t *testing.T) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	read := reader{served: func(handler string) bool { return handler == "here" }}
	c, err := newConfigurations(client, read, func(types.NamespacedName) {})
	if err != nil {
		t.Fatal(err)
	}
	add := func(namespace, name, handler string, age int) *cachedConfiguration {
		made := &cachedConfiguration{}
		made.Namespace, made.Name, made.UID = namespace, name, types.UID(namespace+"/"+name)
		made.CreationTimestamp = metav1.NewTime(time.Unix(1_000_000-int64(age), 0))
		made.Spec.DiscoveryHandler.Name = handler
		made.request = loadOf(&made.Configuration)
		if err := c.informer.GetIndexer().Add(made); err != nil {
			t.Fatal(err)
		}
		return made
	}
	refused := func(what string, configuration *cachedConfiguration, want bool) {
		t.Helper()
		if got := (&reconciler{configurations: c}).refuse(&configuration.Configuration); (got != "") != want {
			t.Errorf("%s: %q", what, got)
		}
	}
	first := add("many", "a", "here", 1000)
	for i := range v0.MaxConfigurations - 2 {
		add("many", fmt.Sprintf("b%03d", i), "here", 500)
		add("many", fmt.Sprintf("elsewhere%03d", i), "elsewhere", 2000)
	}
	last, tooMany := add("many", "x", "here", 100), add("many", "y", "here", 100)
	refused("the oldest", first, false)
	refused("the last that fits", last, false)
	refused("of the same age, the one with the later name", tooMany, true)
	refused("one whose handler is not on this node", add("many", "z", "elsewhere", 1), false)
	refused("another namespace", add("other", "w", "here", 1), false)

	deleted := *first
	deleted.DeletionTimestamp = new(metav1.Now())
	if err := c.informer.GetIndexer().Update(&deleted); err != nil {
		t.Fatal(err)
	}
	refused("the oldest is being deleted", tooMany, false)
}

// The cache has no large requests: thousands of Configurations that are not served would
// use up the agent's memory.
func TestLargeRequestsAreNotCached(t *testing.T) {
	for length, cached := range map[int]bool{maxCachedRequest: true, maxCachedRequest + 1: false} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v0.Configuration{Spec: v0.ConfigurationSpec{
			DiscoveryHandler: v0.DiscoveryHandler{Name: "h", DiscoveryDetails: strings.Repeat("x", length)}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := reader{served: func(string) bool { return true }}.configuration(&unstructured.Unstructured{Object: content})
		if err != nil {
			t.Fatal(err)
		}
		kept := got.Spec.DiscoveryHandler.DiscoveryDetails != ""
		if kept != cached || got.withoutRequest == cached || got.request.bytes != length {
			t.Errorf("of %d bytes, %d are cached; withoutRequest: %v, bytes: %d",
				length, len(got.Spec.DiscoveryHandler.DiscoveryDetails), got.withoutRequest, got.request.bytes)
		}
	}
}
