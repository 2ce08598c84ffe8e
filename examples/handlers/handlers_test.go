package handlers_test

import (
	"bytes"
	"os"
	"testing"
)

// TestProtocol checks that the copy of the protocol for Python is the original.
func TestProtocol(t *testing.T) {
	original, err := os.ReadFile("../../discovery/protocol/discovery.proto")
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := os.ReadFile("python/discovery.proto"); err != nil || !bytes.Equal(copied, original) {
		t.Errorf("python/discovery.proto is not a copy of discovery/protocol/discovery.proto: %v", err)
	}
}
