package agent

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
	for name, test := range map[string]struct {
		own    load            // with the older ones of its namespace
		others map[string]load // of other namespaces
		says   string
	}{
		"nothing else":                      {own: load{1, mib, 0}},
		"the last one of a namespace":       {own: load{100, 0, 0}},
		"one more":                          {own: load{101, 0, 0}, says: "at most 100 Configurations of one namespace"},
		"another namespace has far more":    {own: load{100, 0, 0}, others: map[string]load{"b": {5000, 100 * mib, 0}}},
		"three others have all they can":    {own: load{100, 0, 0}, others: equal(3, load{500, 0, 0})},
		"the share of five":                 {own: load{80, 0, 0}, others: equal(4, load{500, 0, 0})},
		"more than the share of five":       {own: load{81, 0, 0}, others: equal(4, load{500, 0, 0}), says: "at most 400 Conf"},
		"what others do not need":           {own: load{100, 0, 0}, others: equal(100, load{3, 0, 0})},
		"more than others leave":            {own: load{100, 0, 0}, others: equal(101, load{3, 0, 0}), says: "at most 400"},
		"one, however many namespaces":      {own: load{1, 0, 0}, others: equal(399, load{100, 0, 0})},
		"the last byte of a namespace":      {own: load{4, 4 * mib, 0}},
		"one byte more":                     {own: load{4, 4*mib + 1, 0}, says: "a namespace's Configurations"},
		"the last byte of a share":          {own: load{1, 2 * mib, 0}, others: equal(7, load{1, 9 * mib, 0})},
		"a byte more than the share":        {own: load{1, 2*mib + 1, 0}, others: equal(7, load{1, 9 * mib, 0}), says: "all Configurations"},
		"a large request alone is too big":  {own: load{1, 5 * mib, 0}, says: "or shorten discoveryDetails"},
		"the last Secret of a namespace":    {own: load{6, 0, 200}},
		"one Secret more":                   {own: load{6, 0, 201}, says: "at most 200 Secrets and ConfigMaps"},
		"the last Secret of a share":        {own: load{1, 0, 100}, others: equal(7, load{1, 0, 5000})},
		"a Secret more than the share":      {own: load{1, 0, 101}, others: equal(7, load{1, 0, 5000}), says: "refer to at most 800"},
		"many Configurations, few requests": {own: load{1, 1000, 2}, others: equal(399, load{1, 30_000, 1})},
	} {
		namespaces := maps.Clone(test.others)
		if namespaces == nil {
			namespaces = map[string]load{}
		}
		namespaces["a"] = test.own
		got := overQuota(test.own, namespaces)
		if test.says == "" && got != "" || !strings.Contains(got, test.says) {
			t.Errorf("%s: %q, want %q", name, got, test.says)
		}
	}
}

func equal(count int, each load) map[string]load {
	namespaces := map[string]load{}
	for i := range count {
		namespaces[fmt.Sprint("other", i)] = each
	}
	return namespaces
}

// What is served of all namespaces stays within the limits, and none could have more.
func TestShares(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		namespaces, sum, most := map[string]load{}, 0, 0
		for i := range 1 + random.IntN(50) {
			namespaces[fmt.Sprint(i)] = load{count: random.IntN(130)}
		}
		each := share(maxServed, namespaces, func(l load) int { return l.count })
		for _, namespace := range namespaces {
			sum += min(namespace.fitting().count, each)
			most += min(namespace.fitting().count, min(each, 1000)+1)
		}
		if sum > maxServed || most <= maxServed && most > sum {
			t.Fatalf("with %v, each has %d, together %d; with one more each, %d", namespaces, each, sum, most)
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
	if says := overQuota(usual, map[string]load{"a": usual}); says != "" {
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

// withHandlerHere returns the Configurations of a node that has the handler "here".
func withHandlerHere(t *testing.T) *configurations {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	read := reader{served: func(handler string) bool { return handler == "here" }}
	c, err := newConfigurations(client, read, func(types.NamespacedName) {})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The oldest Configurations are served, of those whose handler is on the node. Another
// takes the place of one that is deleted.
func TestTheOldestAreServed(t *testing.T) {
	c := withHandlerHere(t)
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
		got, review := (&reconciler{configurations: c}).refuse(&configuration.Configuration)
		if (got != "") != want {
			t.Errorf("%s: %q", what, got)
		}
		if review.IsZero() == want {
			t.Errorf("%s: judged again at %v", what, review)
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

// Configurations without a handler take nothing from others, so there may be any number of
// them. If they get one, they take no more than the share of their namespaces, however old
// they are.
func TestOldConfigurationsDisplaceNoOthers(t *testing.T) {
	c := withHandlerHere(t)
	add := func(namespace string, i int, handler string, age int64) *cachedConfiguration {
		made := &cachedConfiguration{request: load{count: 1}}
		made.Namespace, made.Name = namespace, fmt.Sprintf("%s%02d", namespace, i)
		made.CreationTimestamp = metav1.NewTime(time.Unix(1_000_000-age, 0))
		made.Spec.DiscoveryHandler.Name = handler
		if err := c.informer.GetIndexer().Add(made); err != nil {
			t.Fatal(err)
		}
		return made
	}
	served := func(list []*cachedConfiguration) (count int) {
		for _, configuration := range list {
			if beyond, _ := c.quota(&configuration.Configuration); beyond == "" {
				count++
			}
		}
		return count
	}
	var victims []*cachedConfiguration
	for i := range 20 {
		victims = append(victims, add("victim", i, "here", 10))
	}
	for _, handler := range []string{"elsewhere", "here"} {
		hostile := map[string][]*cachedConfiguration{}
		for n := range 4 {
			namespace := fmt.Sprint("hostile", n)
			for i := range v0.MaxConfigurations {
				hostile[namespace] = append(hostile[namespace], add(namespace, i, handler, 1000))
			}
		}
		if n := served(victims); n != len(victims) {
			t.Errorf("after old Configurations got the handler %s, %d of %d others are served", handler, n, len(victims))
		}
		// A served Configuration makes room when others come, also if it does not change.
		_, review := (&reconciler{configurations: c}).refuse(&victims[0].Configuration)
		if contended := handler == "here"; review.IsZero() == contended {
			t.Errorf("handler %s: a served Configuration is judged again at %v", handler, review)
		}
		for namespace, list := range hostile {
			if n := served(list); handler == "here" && n != (maxServed-len(victims))/4 {
				t.Errorf("%d Configurations of %s are served", n, namespace)
			}
		}
	}
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
