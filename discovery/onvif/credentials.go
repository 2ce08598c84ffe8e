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
	for _, list := range []string{credentialList, credentialRefList} {
		if err := parsed.addList(texts, list); err != nil {
			return nil, err
		}
	}
	// In username_UUID, "_" stands for "-", because names of properties are often those of
	// environment variables.
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if suffix, ok := strings.CutPrefix(name, usernamePrefix); ok && suffix != "" && texts[name] != "" {
			key := wsdiscovery.NormalUUID(strings.ReplaceAll(suffix, "_", "-"))
			parsed[key] = soap.Credentials{Username: texts[name], Password: texts[passwordPrefix+suffix]}
		}
	}
	return parsed, nil
}

// addList adds the credentials in the JSON objects of the properties that a property lists.
func (c credentialSet) addList(texts map[string]string, list string) error {
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
			found, fault := entries[uuid].credentials(list, texts)
			if fault != "" {
				return fmt.Errorf("discoveryProperties: %s: %s: %s", list, wsdiscovery.NormalUUID(uuid), fault)
			}
			c[wsdiscovery.NormalUUID(uuid)] = found
		}
	}
	return nil
}

// credentials returns the credentials in an entry of a list, or what is wrong with it.
func (e entry) credentials(list string, texts map[string]string) (found soap.Credentials, fault string) {
	found, hasPassword := soap.Credentials{Username: e.Username, Password: e.Password}, true
	if list == credentialRefList {
		found.Username = texts[e.UsernameRef]
		found.Password, hasPassword = texts[e.PasswordRef]
		e.Base64encoded = false
	}
	decoded, err := base64.StdEncoding.DecodeString(e.Password)
	switch {
	case found.Username == "" && list == credentialRefList:
		return found, "username_ref is not the name of a property that has a value"
	case found.Username == "":
		return found, "username is missing"
	case !hasPassword && e.PasswordRef != "":
		return found, "password_ref is not the name of a property"
	case e.Base64encoded && err != nil:
		return found, "the password is not base64"
	case e.Base64encoded:
		found.Password = string(decoded)
	}
	return found, ""
}
