package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	environment := func(name string) string {
		return map[string]string{"CAMERA_USERNAME": "viewer", "CAMERA_PASSWORD": "secret"}[name]
	}
	o, err := parse([]string{"--name=hall", "--port=9000"}, environment, nil)
	if err != nil || o.identity.Name != "hall" || o.port != 9000 || o.username != "viewer" || o.password != "secret" {
		t.Errorf("got %+v, %v", o, err)
	}
	again, _ := parse([]string{"--name=hall"}, environment, nil)
	other, _ := parse([]string{"--name=door"}, environment, nil)
	if len(o.identity.UUID) != 36 || again.identity.UUID != o.identity.UUID || other.identity.UUID == o.identity.UUID {
		t.Errorf("the UUIDs are %s, %s and %s", o.identity.UUID, again.identity.UUID, other.identity.UUID)
	}
	for _, arguments := range [][]string{{"--nme=hall"}, {"hall"}, {"--name="}} {
		if _, err := parse(arguments, environment, nil); err == nil {
			t.Errorf("%q is accepted", arguments)
		}
	}
	var help strings.Builder
	_, err = parse([]string{"--help"}, environment, &help)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "CAMERA_USERNAME") {
		t.Errorf("help is %q, %v", help.String(), err)
	}
}

func TestChoose(t *testing.T) {
	device, address, err := choose("", "127.0.0.1")
	if err != nil || device.Name != "lo" || address.IP.String() != "127.0.0.1" {
		t.Errorf("got %v %v %v", device, address, err)
	}
	if _, _, err := choose("", "192.0.2.77"); err == nil || !strings.Contains(err.Error(), "192.0.2.77") {
		t.Errorf("an address of no interface: %v", err)
	}
}
