package onvif

import (
	"fmt"
	"strings"
	"testing"
)

const (
	uuid1 = "5f5a69c2-e0ae-504f-829b-00fcdab169cc"
	uuid2 = "6a67158b-42b1-400b-8afe-1bec9a5d7909"
)

func TestCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		properties map[string]string
		want       string // of uuid1, then of uuid2
	}{
		"none":    {nil, "- -"},
		"default": {map[string]string{"username_default": "u", "password_default": "p"}, "u:p u:p"},
		"single, with underscores": {map[string]string{
			"username_5f5a69c2_e0ae_504f_829b_00fcdab169cc": "u", "password_5f5a69c2_e0ae_504f_829b_00fcdab169cc": "p",
		}, "u:p -"},
		"single, in upper case, no password": {map[string]string{"username_5F5A69C2_E0AE_504F_829B_00FCDAB169CC": "u"}, "u: -"},
		"a list, with base64 and an upper case key": {map[string]string{
			"device_credential_list": `["one", "two"]`,
			"one":                    `{"5F5A69C2-E0AE-504F-829B-00FCDAB169CC": {"username": "u", "password": "p", "note": "ignored"}}`,
			"two":                    `{"6a67158b-42b1-400b-8afe-1bec9a5d7909": {"username": "v", "password": "YWRtaW4=", "base64encoded": true}}`,
		}, "u:p v:admin"},
		"a list of references": {map[string]string{
			"device_credential_ref_list": `["refs"]`,
			"refs":                       `{"` + uuid1 + `": {"username_ref": "n", "password_ref": "s"}, "` + uuid2 + `": {"username_ref": "n"}}`,
			"n":                          "u", "s": "p",
		}, "u:p u:"},
		"later forms win": {map[string]string{
			"device_credential_list":     `["one"]`,
			"one":                        `{"` + uuid1 + `": {"username": "list"}, "` + uuid2 + `": {"username": "list"}}`,
			"device_credential_ref_list": `["refs"]`,
			"refs":                       `{"` + uuid1 + `": {"username_ref": "n"}, "` + uuid2 + `": {"username_ref": "n"}}`,
			"n":                          "ref",
			"username_" + strings.ReplaceAll(uuid1, "-", "_"): "single",
			"username_default": "default",
		}, "single: ref:"},
		"an empty name":             {map[string]string{"username_default": "", "password_default": "p"}, "- -"},
		"a password without a name": {map[string]string{"password_default": "p"}, "- -"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parseCredentials(propertiesOf(tc.properties))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, uuid := range []string{uuid1, uuid2} {
				text := "-"
				if c := parsed.of(uuid); c != nil {
					text = c.Username + ":" + c.Password
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if text := fmt.Sprintf("%v %+v %#v", parsed, parsed.of(uuid1), parsed); strings.Contains(text, "admin") || strings.Contains(text, ":p") {
				t.Errorf("formatted credentials are %s", text)
			}
		})
	}
}

func propertiesOf(texts map[string]string) map[string][]byte {
	p := map[string][]byte{}
	for name, text := range texts {
		p[name] = []byte(text)
	}
	return p
}

func TestCredentialsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		properties map[string]string
		want       string
	}{
		"not a list": {map[string]string{"device_credential_list": `"secret1"`}, "device_credential_list: not a JSON list"},
		"nothing":    {map[string]string{"device_credential_ref_list": ""}, "device_credential_ref_list: not a JSON list"},
		"a missing property": {
			map[string]string{"device_credential_list": `["x"]`},
			"device_credential_list: item 1 is not the name of a property",
		},
		"a password instead of a name": {
			map[string]string{"device_credential_list": `["x", "secret1"]`, "x": "{}"},
			"device_credential_list: item 2 is not the name of a property",
		},
		"not an object": {map[string]string{"device_credential_list": `["x"]`, "x": "secret1"}, "x: not a JSON object"},
		"no username": {map[string]string{
			"device_credential_list": `["x"]`,
			"x":                      `{"a": {"password": "secret1"}}`,
		}, "a: username is missing"},
		"not base64": {map[string]string{
			"device_credential_list": `["x"]`,
			"x":                      `{"a": {"username": "secret1", "password": "secret1!", "base64encoded": true}}`,
		}, "not base64"},
		"a missing reference": {map[string]string{
			"device_credential_ref_list": `["x"]`,
			"x":                          `{"a": {"username_ref": "n"}}`,
		}, "device_credential_ref_list: a: username_ref is not the name of a property"},
		"a username instead of a reference": {map[string]string{
			"device_credential_ref_list": `["x"]`,
			"x":                          `{"a": {"username_ref": "secret1"}}`,
		}, "device_credential_ref_list: a: username_ref is not the name of a property"},
		"a missing password": {map[string]string{
			"device_credential_ref_list": `["x"]`,
			"x":                          `{"a": {"username_ref": "n", "password_ref": "secret1"}}`,
			"n":                          "u",
		}, "device_credential_ref_list: a: password_ref is not the name of a property"},
		"a name in no UTF-8":   {map[string]string{"username_default": "secret1\xff"}, "username_default: not UTF-8"},
		"a secret in no UTF-8": {map[string]string{"username_default": "u", "password_default": "secret1\xff"}, "password_default: not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseCredentials(propertiesOf(tc.properties))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret1") {
				t.Errorf("got %v, want an error that contains %q and no secret", err, tc.want)
			}
		})
	}
	if parsed, err := parseCredentials(map[string][]byte{"username_default": nil}); err != nil || len(parsed) > 0 {
		t.Errorf("a property without a value gives %v, %v", parsed, err)
	}
}
