package registry

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	"akri.sh/akri/discovery/protocol"
)

// serve runs a registry in a new directory.
func serve(t *testing.T) (*Registry, string) {
	t.Helper()
	directory, err := os.MkdirTemp("", "akri") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	return serveIn(t, directory), directory
}

func serveIn(t *testing.T, directory string) *Registry {
	t.Helper()
	registry := New(Options{Dir: directory, Network: anywhere, Log: slog.New(slog.DiscardHandler)})
	listener, err := Listen(directory)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- registry.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return registry
}

// TestAnyAuthorityMayRegister checks that the :authority does not matter: gRPC
// libraries send different ones for a Unix socket.
func TestAnyAuthorityMayRegister(t *testing.T) {
	registry, directory := serve(t)
	for name, authority := range map[string]string{
		"of the Rust handlers":      "[::1]:50051",
		"of grpc-go":                "localhost",
		"of gRPC C-core, escaped":   "%2Fvar%2Flib%2Fakri%2Fagent-registration.sock",
		"a path":                    "/var/lib/akri/agent-registration.sock",
		"a path with a scheme":      "unix:///var/lib/akri/agent-registration.sock",
		"empty":                     "",
		"a word":                    "dummy",
		"with spaces and a bracket": "[not a host",
	} {
		t.Run(name, func(t *testing.T) {
			status, message := registerRaw(t, filepath.Join(directory, protocol.RegistrationSocket), authority, name)
			if status != "0" {
				t.Fatalf("authority %q: grpc-status %s %s, want 0", authority, status, message)
			}
			if len(registry.Endpoints(name)) != 1 {
				t.Errorf("the handler is unknown after it registered")
			}
		})
	}
}

// registerRaw registers a handler with raw HTTP/2 frames and returns the status of
// the call.
func registerRaw(t *testing.T, socket string, authority, name string) (status, message string) {
	t.Helper()
	connection, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(10 * time.Second))
	connection.Write([]byte(http2.ClientPreface))
	framer := http2.NewFramer(connection, connection)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.WriteSettings()

	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
		{Name: ":path", Value: protocol.Registration_RegisterDiscoveryHandler_FullMethodName}, {Name: ":authority", Value: authority},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	}
	for _, field := range fields {
		encoder.WriteField(field)
	}
	framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	payload, err := proto.Marshal(&protocol.RegisterDiscoveryHandlerRequest{Name: name, Endpoint: "/run/" + name + ".sock"})
	if err != nil {
		t.Fatal(err)
	}
	data := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(payload)))
	framer.WriteData(1, true, append(data, payload...))

	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("the server closed the connection: %v", err)
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			return "reset", frame.ErrCode.String()
		case *http2.GoAwayFrame:
			return "goaway", frame.ErrCode.String()
		case *http2.MetaHeadersFrame:
			for _, field := range frame.Fields {
				switch field.Name {
				case "grpc-status":
					status = field.Value
				case "grpc-message":
					message = field.Value
				case ":status":
					if field.Value != "200" {
						return "HTTP " + field.Value, ""
					}
				}
			}
			if frame.StreamEnded() {
				return status, message
			}
		}
	}
}
