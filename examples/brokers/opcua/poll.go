package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gopcua/opcua"
	"github.com/gopcua/opcua/ua"
)

// timeout bounds a connection, and a read.
const timeout = 5 * time.Second

// poll reads the value into the gauge until ctx is done. After a failure it connects
// again.
func poll(ctx context.Context, o options, g *gauge) {
	connected := true // so that the first failure is logged
	for ctx.Err() == nil {
		err := session(ctx, o, func(value float64) {
			g.set(value, true)
			if !connected {
				slog.Info("The value can be read again")
				connected = true
			}
		})
		g.set(0, false)
		if ctx.Err() == nil && connected {
			slog.Warn("Could not read the value; trying again", "server", o.url, "node", o.node.String(), "err", err)
			connected = false
		}
		wait(ctx, o.interval)
	}
}

// session connects to the server and reads the value until that fails.
func session(ctx context.Context, o options, report func(float64)) error {
	client, err := opcua.NewClient(o.url, opcua.SecurityMode(ua.MessageSecurityModeNone), opcua.AutoReconnect(false),
		opcua.RequestTimeout(timeout))
	if err != nil {
		return err
	}
	connecting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := client.Connect(connecting); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = client.Close(closing) // the connection may be lost
	}()
	for ctx.Err() == nil {
		value, err := read(ctx, client, o.node)
		if err != nil {
			return err
		}
		report(value)
		wait(ctx, o.interval)
	}
	return ctx.Err()
}

// read reads a number.
func read(ctx context.Context, client *opcua.Client, node *ua.NodeID) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := client.Read(ctx, &ua.ReadRequest{NodesToRead: []*ua.ReadValueID{{NodeID: node, AttributeID: ua.AttributeIDValue}}})
	if err != nil {
		return 0, fmt.Errorf("read: %w", err)
	}
	if len(answer.Results) != 1 {
		return 0, fmt.Errorf("read: %d results instead of one", len(answer.Results))
	}
	if status := answer.Results[0].Status; status != ua.StatusOK {
		return 0, fmt.Errorf("read: %w", status)
	}
	return number(answer.Results[0].Value)
}

// number returns the number in a value; true is 1.
func number(value *ua.Variant) (float64, error) {
	if value == nil {
		return 0, errors.New("the node has no value")
	}
	switch v := value.Value().(type) {
	case bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64:
		return value.Float() + float64(value.Int()) + float64(value.Uint()), nil // two of them are 0
	default:
		return 0, fmt.Errorf("the node's value is a %T: choose a node with a number", v)
	}
}

// wait waits for some time, or until ctx is done.
func wait(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
