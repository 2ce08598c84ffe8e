package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gopcua/opcua"
	"github.com/gopcua/opcua/ua"
)

// opcuaServer is an OPC UA server. After a failure, it connects again.
type opcuaServer struct {
	spec deviceSpec

	mu     sync.Mutex
	client *opcua.Client
}

// connectOPCUA connects to the OPC UA server of an EdgeDevice.
func connectOPCUA(ctx context.Context, s deviceSpec) (*opcuaServer, error) {
	switch mode := s.Settings.OPCUA.AuthenticationMode; mode {
	case "":
		return nil, errors.New("protocolSettings.OPCUASetting.AuthenticationMode is missing: set it to Anonymous")
	case "Anonymous":
	default:
		return nil, fmt.Errorf("AuthenticationMode %q: this stand-in knows only Anonymous", mode)
	}
	server := &opcuaServer{spec: s}
	return server, server.reconnect(ctx)
}

// reconnect connects the client. The caller holds mu, except at the beginning.
func (s *opcuaServer) reconnect(ctx context.Context) error {
	if timeout := s.spec.Settings.OPCUA.TimeoutMilliseconds; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(timeout)*time.Millisecond)
		defer cancel()
	}
	client, err := opcua.NewClient(s.spec.Address, opcua.SecurityMode(ua.MessageSecurityModeNone), opcua.AutoReconnect(false))
	if err != nil {
		return err
	}
	if err := client.Connect(ctx); err != nil {
		return err
	}
	s.client = client
	return nil
}

// handler implements [device]: the answer is the value of the node.
func (s *opcuaServer) handler(node string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "this stand-in only reads: use GET", http.StatusMethodNotAllowed)
			return
		}
		value, err := s.read(r.Context(), node)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, value)
	})
}

// check implements [device].
func (s *opcuaServer) check(ctx context.Context, node string) error {
	_, err := s.read(ctx, node)
	return err
}

// read returns the value of a node.
func (s *opcuaServer) read(ctx context.Context, node string) (string, error) {
	id, err := ua.ParseNodeID(node)
	if err != nil {
		return "", fmt.Errorf("%q is not the ID of a node: %w", node, err)
	}
	client, err := s.connected(ctx)
	if err != nil {
		return "", err
	}
	answer, err := client.Read(ctx, &ua.ReadRequest{NodesToRead: []*ua.ReadValueID{{NodeID: id, AttributeID: ua.AttributeIDValue}}})
	if err != nil {
		s.disconnect(client)
		return "", err
	}
	if len(answer.Results) != 1 || answer.Results[0].Status != ua.StatusOK || answer.Results[0].Value == nil {
		return "", fmt.Errorf("the node %s has no value", node)
	}
	return fmt.Sprint(answer.Results[0].Value.Value()), nil
}

// connected returns a client that is connected, as far as is known.
func (s *opcuaServer) connected(ctx context.Context) (*opcua.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		if err := s.reconnect(ctx); err != nil {
			return nil, err
		}
	}
	return s.client, nil
}

// disconnect closes a client that has failed.
func (s *opcuaServer) disconnect(client *opcua.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client {
		s.client = nil
		closeClient(client)
	}
}

// close implements [device].
func (s *opcuaServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		closeClient(s.client)
	}
}

func closeClient(client *opcua.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = client.Close(ctx) // the connection may be lost
}
