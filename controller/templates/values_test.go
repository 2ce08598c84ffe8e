package templates

import (
	"maps"
	"testing"

	v0 "akri.sh/akri/api/v0"
)

func TestPropertiesAfterUpdate(t *testing.T) {
	type properties = map[string]string
	for name, tc := range map[string]struct{ before, after, instance, want properties }{
		"dropped":                      {properties{"K": "ours"}, nil, properties{"K": "ours", "URL": "u"}, properties{"URL": "u"}},
		"dropped, but the device's":    {properties{"K": "ours"}, nil, properties{"K": "its"}, properties{"K": "its"}},
		"changed":                      {properties{"K": "ours"}, properties{"K": "new"}, properties{"K": "ours"}, properties{"K": "new"}},
		"added":                        {nil, properties{"K": "new"}, properties{"URL": "u"}, properties{"K": "new", "URL": "u"}},
		"unchanged, no properties yet": {properties{"K": "ours"}, properties{"K": "ours"}, nil, properties{"K": "ours"}},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := func(set properties) *v0.Configuration {
				return &v0.Configuration{Spec: v0.ConfigurationSpec{BrokerProperties: set}}
			}
			instance := v0.Instance{Spec: v0.InstanceSpec{BrokerProperties: maps.Clone(tc.instance)}}
			if got := PropertiesAfterUpdate(configuration(tc.before), configuration(tc.after), &instance); !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if !maps.Equal(instance.Spec.BrokerProperties, tc.instance) {
				t.Error("the Instance in the cache was changed")
			}
		})
	}
	created := &v0.Configuration{Spec: v0.ConfigurationSpec{BrokerProperties: properties{"K": "new"}}}
	if got := PropertiesAfterUpdate(nil, created, &v0.Instance{}); !maps.Equal(got, created.Spec.BrokerProperties) {
		t.Errorf("without an old Configuration: got %v", got)
	}
}

func TestTheConfigurationsPropertiesTakePrecedence(t *testing.T) {
	type properties = map[string]string
	for name, tc := range map[string]struct{ configuration, instance, want properties }{
		"as agents write it":      {properties{"IMAGE": "a"}, properties{"IMAGE": "a", "URL": "u"}, properties{"IMAGE": "a", "URL": "u"}},
		"another value":           {properties{"IMAGE": "a"}, properties{"IMAGE": "evil", "URL": "u"}, properties{"IMAGE": "a", "URL": "u"}},
		"left out":                {properties{"IMAGE": "a"}, properties{"URL": "u"}, properties{"IMAGE": "a", "URL": "u"}},
		"nothing in either":       {nil, nil, nil},
		"only the device's":       {nil, properties{"URL": "u"}, properties{"URL": "u"}},
		"not yet in the Instance": {properties{"IMAGE": "a"}, nil, properties{"IMAGE": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := &v0.Configuration{Spec: v0.ConfigurationSpec{BrokerProperties: tc.configuration}}
			instance := v0.Instance{Spec: v0.InstanceSpec{BrokerProperties: maps.Clone(tc.instance)}}
			if got := InstanceValues(configuration, &instance).Instance.Properties; !maps.Equal(got, tc.want) {
				t.Errorf("an Instance: %v, want %v", got, tc.want)
			}
			if got := GroupValues(configuration, []v0.Instance{instance}).Instances[0].Properties; !maps.Equal(got, tc.want) {
				t.Errorf("a group: %v, want %v", got, tc.want)
			}
			if !maps.Equal(instance.Spec.BrokerProperties, tc.instance) {
				t.Error("the Instance in the cache was changed")
			}
		})
	}
}
