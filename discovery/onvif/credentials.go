package onvif

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/discovery/onvif/soap"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// The names in discoveryProperties, which are Akri's.
const (
	credentialList    = "device_credential_list"
	credentialRefList = "device_credential_ref_list"
	usernamePrefix    = "username_"
	passwordPrefix    = "password_"
	defaultSuffix     = "default"
)

// credentialSet are the credentials of cameras by UUID. The key "default" is for all
// others.
type credentialSet map[string]soap.Credentials

// of returns the credentials of a camera, nil if there are none.
func (c credentialSet) of(uuid string) *soap.Credentials {
	for _, k := range []string{uuid, defaultSuffix} {
		if found, ok := c[k]; ok {
			return &found
		}
	}
	return nil
}

// entry has the credentials of a camera. The first three fields are for credentialList. The
// others are for credentialRefList, and name the properties that have the credentials.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Base64encoded bool   `json:"base64encoded"`
	UsernameRef   string `json:"username_ref"`
	PasswordRef   string `json:"password_ref"`
}

// parseCredentials returns the credentials in discoveryProperties, which have three
// forms. If several have credentials for a camera, the last form counts: lists, lists of
// references, then single properties. Errors name properties and never quote their values: what
// should be the name of a property may be a password by mistake.
func parseCredentials(properties map[string][]byte) (credentialSet, error) {
	texts := map[string]string{}
	for name, value := range properties {
		if !utf8.Valid(value) {
			return nil, fmt.Errorf("discoveryProperties: %s: not UTF-8 text", name)
		}
		if value != nil {
			texts[name] = string(value)
		}
	}
	parsed := credentialSet{}
	if err := parsed.addList(texts, credentialList, plain); err != nil {
		return nil, err
	}
	if err := parsed.addList(texts, credentialRefList, referred); err != nil {
		return nil, err
	}
	// In username_UUID, "_" stands for "-", because names of properties are often those of
	// environment variables.
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if suffix, ok := strings.CutPrefix(name, usernamePrefix); ok && suffix != "" && texts[name] != "" {
			key := normalKey(strings.ReplaceAll(suffix, "_", "-"))
			parsed[key] = soap.Credentials{Username: texts[name], Password: texts[passwordPrefix+suffix]}
		}
	}
	return parsed, nil
}

// addList adds the credentials in the JSON objects of the properties that a property lists.
func (c credentialSet) addList(
	texts map[string]string, list string, credentials func(entry, map[string]string) (soap.Credentials, string),
) error {
	written, found := texts[list]
	if !found {
		return nil
	}
	var names []string
	if json.Unmarshal([]byte(written), &names) != nil { // its error would quote the text
		return fmt.Errorf(`discoveryProperties: %s: not a JSON list of names of properties, such as ["cameras"]`, list)
	}
	for i, name := range names {
		object, found := texts[name]
		if !found {
			return fmt.Errorf("discoveryProperties: %s: item %d is not the name of a property that has a value", list, i+1)
		}
		entries := map[string]entry{}
		if json.Unmarshal([]byte(object), &entries) != nil {
			return fmt.Errorf("discoveryProperties: %s: not a JSON object from UUIDs to objects, as %s requires", name, list)
		}
		for _, uuid := range slices.Sorted(maps.Keys(entries)) {
			found, fault := credentials(entries[uuid], texts)
			if fault != "" {
				return fmt.Errorf("discoveryProperties: %s: %s: %s", list, normalKey(uuid), fault)
			}
			c[normalKey(uuid)] = found
		}
	}
	return nil
}

// plain returns the credentials in an entry, or what is wrong with it.
func plain(e entry, _ map[string]string) (soap.Credentials, string) {
	if e.Username == "" {
		return soap.Credentials{}, "username is missing"
	}
	if e.Base64encoded {
		decoded, err := base64.StdEncoding.DecodeString(e.Password)
		if err != nil {
			return soap.Credentials{}, "the password is not base64"
		}
		e.Password = string(decoded)
	}
	return soap.Credentials{Username: e.Username, Password: e.Password}, ""
}

// referred returns the credentials in the properties that an entry names, or what is wrong with it.
func referred(e entry, texts map[string]string) (soap.Credentials, string) {
	password, found := texts[e.PasswordRef]
	switch {
	case texts[e.UsernameRef] == "":
		return soap.Credentials{}, "username_ref is not the name of a property that has a value"
	case !found && e.PasswordRef != "":
		return soap.Credentials{}, "password_ref is not the name of a property"
	}
	return soap.Credentials{Username: texts[e.UsernameRef], Password: password}, ""
}

// normalKey returns the key of a camera: Akri compares UUIDs in lower case with keys as
// they are written, so that keys in upper case never match.
func normalKey(uuid string) string { return wsdiscovery.NormalUUID(uuid) }
