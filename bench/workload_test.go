package main

import "testing"

func TestIsDevice(t *testing.T) {
	for name, want := range map[string]bool{
		deviceName(7): true, deviceName(999_999): true,
		"kube-root-ca.crt": false, "": false, deviceName(7) + "-5d4f9c": false, "other-000007": false,
	} {
		if isDevice(name) != want {
			t.Errorf("%q is a device: %t, want %t", name, !want, want)
		}
	}
}
