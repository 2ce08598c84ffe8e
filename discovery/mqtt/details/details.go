package details

import (
	"errors"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// Convention is a way in which devices announce themselves at a broker.
type Convention string

// The conventions.
const (
	Homie         Convention = "homie"
	HomeAssistant Convention = "homeAssistant"
	Sparkplug     Convention = "sparkplug"
	Tasmota       Convention = "tasmota"
	Zigbee2MQTT   Convention = "zigbee2mqtt"
	Topics        Convention = "topics"
)

// prefixes are the first levels of the topics of each convention.
var prefixes = map[Convention]string{
	Homie: "homie", HomeAssistant: "homeassistant", Sparkplug: "spBv1.0", Tasmota: "tasmota/discovery", Zigbee2MQTT: "zigbee2mqtt", Topics: "",
}

// maxOfflineAfterSeconds bounds offlineAfterSeconds to a day.
const maxOfflineAfterSeconds = 24 * 60 * 60

// Details are the discoveryDetails of the handler mqtt.
type Details struct {
	Broker     Broker     `json:"broker"`
	Convention Convention `json:"convention"`
	// Prefix is the beginning of the convention's topics.
	Prefix string `json:"prefix"`
	// Topics describe the devices of the convention "topics".
	Topics *FreeTopics `json:"topics"`
	// Filters select devices.
	Filters Filters `json:"filters"`
	// OfflineAfterSeconds is how long a device must be offline until it is gone.
	OfflineAfterSeconds int `json:"offlineAfterSeconds"`
	// Rebirth permits commands to Sparkplug edge nodes that make them repeat their births.
	Rebirth bool `json:"rebirth"`
}

// Filters select devices by what they announce. In the items, * stands for any text, and ? for a character.
type Filters struct {
	IDs           *details.Filter `json:"ids"`
	Names         *details.Filter `json:"names"`
	Manufacturers *details.Filter `json:"manufacturers"`
	Models        *details.Filter `json:"models"`
}

// Parse returns discoveryDetails with defaults filled in.
func Parse(discoveryDetails string) (*Details, error) {
	d := &Details{}
	if err := details.Decode(discoveryDetails, d, d.Broker.check, d.checkConvention, d.checkTopics, d.Filters.check, d.checkRest); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Details) checkConvention() error {
	var names []string
	for convention := range prefixes {
		names = append(names, string(convention))
	}
	slices.Sort(names)
	prefix, known := prefixes[d.Convention]
	if !known {
		cause := "missing"
		if d.Convention != "" {
			cause = "there is no convention \"" + text.Truncate(string(d.Convention), details.MaxQuoted) + "\""
		}
		return details.Faultf("convention", "%s", cause).Hintf("write one of %s", strings.Join(names, ", "))
	}
	switch {
	case d.Prefix == "":
		d.Prefix = prefix
	case d.Convention == Topics:
		return details.Faultf("prefix", "the convention topics has no prefix").Hintf("write it in topics.announce")
	case d.Convention == Sparkplug:
		return details.Faultf("prefix", "topics of Sparkplug always begin with spBv1.0").Hintf("remove it")
	default:
		if err := checkTopicName(d.Prefix); err != "" {
			return details.Faultf("prefix", "%s", err).Hintf("write the first levels of the topics, such as %s", prefix)
		}
	}
	if d.Rebirth && d.Convention != Sparkplug {
		return details.Faultf("rebirth", "only Sparkplug has rebirths").Hintf("remove it, or write convention: sparkplug")
	}
	return nil
}

func (d *Details) checkTopics() error {
	switch {
	case d.Convention == Topics && d.Topics == nil:
		return details.Faultf("topics", "missing, but convention is topics").Hintf("write announce and id")
	case d.Convention != Topics && d.Topics != nil:
		return details.Faultf("topics", "only the convention topics has it").Hintf("remove it, or write convention: topics")
	case d.Topics != nil:
		return d.Topics.check()
	}
	return nil
}

func (d *Details) checkRest() error {
	if d.OfflineAfterSeconds < 0 || d.OfflineAfterSeconds > maxOfflineAfterSeconds {
		return details.Faultf("offlineAfterSeconds", "%d is not between 0 and %d", d.OfflineAfterSeconds, maxOfflineAfterSeconds)
	}
	return nil
}

func (f *Filters) check() error {
	var mistakes []error
	for path, filter := range map[string]*details.Filter{
		"filters.ids": f.IDs, "filters.names": f.Names, "filters.manufacturers": f.Manufacturers, "filters.models": f.Models,
	} {
		mistakes = append(mistakes, filter.Check(path))
	}
	return errors.Join(mistakes...)
}

// Admit reports whether a device passes all filters.
func (f Filters) Admit(id, name, manufacturer, model string) bool {
	return f.IDs.Admits(details.Glob, id) && f.Names.Admits(details.Glob, name) &&
		f.Manufacturers.Admits(details.Glob, manufacturer) && f.Models.Admits(details.Glob, model)
}
