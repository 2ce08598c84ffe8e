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

// secretProperties are a request's discoveryProperties. Errors name properties and never quote
// their values. A value that should be the name of a property may be a password by mistake.
type secretProperties map[string][]byte

// text returns a property that must be text.
func (p secretProperties) text(name string) (value string, found bool, err error) {
	data := p[name]
	if data == nil {
		return "", false, nil
	}
	if !utf8.Valid(data) {
		return "", true, fmt.Errorf("discoveryProperties: %s: not UTF-8 text", name)
	}
	return string(data), true, nil
}

// parseCredentials returns the credentials in discoveryProperties, which have three
// forms. If several have credentials for a camera, the last form counts: lists, lists of
// references, then single properties.
func parseCredentials(p secretProperties) (credentialSet, error) {
	parsed := credentialSet{}
	for _, add := range []func(secretProperties, credentialSet) error{addList, addRefList, addSingle} {
		if err := add(p, parsed); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

// parseLists decodes the JSON objects in the properties that a property lists.
func parseLists[T any](p secretProperties, list string) (map[string]T, error) {
	text, found, err := p.text(list)
	if err != nil || !found {
		return nil, err
	}
	var names []string
	if json.Unmarshal([]byte(text), &names) != nil { // its error would quote the text
		return nil, fmt.Errorf(`discoveryProperties: %s: not a JSON list of names of properties, such as ["cameras"]`, list)
	}
	all := map[string]T{}
	for i, name := range names {
		text, found, err := p.text(name)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, fmt.Errorf("discoveryProperties: %s: item %d is not the name of a property that has a value", list, i+1)
		}
		entries := map[string]T{}
		if json.Unmarshal([]byte(text), &entries) != nil {
			return nil, fmt.Errorf("discoveryProperties: %s: not a JSON object from UUIDs to objects, as %s requires", name, list)
		}
		for uuid, entry := range entries {
			all[normalKey(uuid)] = entry
		}
	}
	return all, nil
}

// normalKey returns the key of a camera: Akri compares UUIDs in lower case with keys as
// they are written, so that keys in upper case never match.
func normalKey(uuid string) string { return wsdiscovery.NormalUUID(uuid) }

func addList(p secretProperties, to credentialSet) error {
	entries, err := parseLists[struct {
		Username      string `json:"username"`
		Password      string `json:"password"`
		Base64encoded bool   `json:"base64encoded"`
	}](p, credentialList)
	if err != nil {
		return err
	}
	for uuid, entry := range entries {
		if entry.Username == "" {
			return fmt.Errorf("discoveryProperties: %s: %s: username is missing", credentialList, uuid)
		}
		if entry.Base64encoded {
			decoded, err := base64.StdEncoding.DecodeString(entry.Password)
			if err != nil {
				return fmt.Errorf("discoveryProperties: %s: %s: the password is not base64", credentialList, uuid)
			}
			entry.Password = string(decoded)
		}
		to[uuid] = soap.Credentials{Username: entry.Username, Password: entry.Password}
	}
	return nil
}

func addRefList(p secretProperties, to credentialSet) error {
	entries, err := parseLists[struct {
		UsernameRef string `json:"username_ref"`
		PasswordRef string `json:"password_ref"`
	}](p, credentialRefList)
	if err != nil {
		return err
	}
	for _, uuid := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[uuid]
		username, found, err := p.text(entry.UsernameRef)
		if err != nil {
			return err
		}
		if !found || username == "" {
			return fmt.Errorf("discoveryProperties: %s: %s: username_ref is not the name of a property that has a value",
				credentialRefList, uuid)
		}
		password, found, err := p.text(entry.PasswordRef)
		if err != nil {
			return err
		}
		if !found && entry.PasswordRef != "" {
			return fmt.Errorf("discoveryProperties: %s: %s: password_ref is not the name of a property", credentialRefList, uuid)
		}
		to[uuid] = soap.Credentials{Username: username, Password: password}
	}
	return nil
}

// addSingle adds username_UUID with password_UUID, in which "_" stands for "-", because
// names of properties are often those of environment variables; and username_default.
func addSingle(p secretProperties, to credentialSet) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		suffix, ok := strings.CutPrefix(name, usernamePrefix)
		if !ok || suffix == "" {
			continue
		}
		username, found, err := p.text(name)
		if err != nil {
			return err
		}
		if !found || username == "" {
			continue
		}
		password, _, err := p.text(passwordPrefix + suffix)
		if err != nil {
			return err
		}
		to[normalKey(strings.ReplaceAll(suffix, "_", "-"))] = soap.Credentials{Username: username, Password: password}
	}
	return nil
}
