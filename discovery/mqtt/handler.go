package mqtt

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/mqtt/connection"
	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/discovery/mqtt/details"
	"akri.sh/akri/discovery/mqtt/follow"
	"akri.sh/akri/internal/backoff"
)

// Name is the handler's name in Configurations.
const Name = "mqtt"

const (
	// maxOutage is how long the broker may be away. Then the stream ends with an error, and
	// the agent keeps the devices for the Configuration's grace period.
	maxOutage = 30 * time.Second
	// minRetryDelay and maxRetryDelay bound the time between two attempts to connect.
	minRetryDelay = 250 * time.Millisecond
	maxRetryDelay = 8 * time.Second
)

// Reasons of failures, in addition to those of packages convention and follow.
const (
	failedConnect    = "connect"
	failedConnection = "connection_lost"
	failedRefused    = "refused"
)

// Handler finds devices at MQTT brokers.
type Handler struct {
	// Metrics count failures and lists; may be nil.
	Metrics *monitor.Metrics
	// Logger receives the log; slog.Default() if nil.
	Logger *slog.Logger

	// outage is maxOutage, except in tests.
	outage time.Duration
}

var _ discovery.Handler = Handler{}

// errLeftOut is what the log says of a failure in addition to its reason.
var errLeftOut = errors.New("the handler's page explains the reason")

// Discover implements [discovery.Handler].
func (h Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	d, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	options, err := connectionOptions(d.Broker, request.Properties)
	if err != nil {
		return err
	}
	options.MaxPayload = convention.MaxPayload(d.Convention)
	log := cmp.Or(h.Logger, slog.Default()).With("broker", d.Broker.URL)
	failures := monitor.NewReporter(h.Metrics.Failed, log, "Left out a part of what the broker has")
	failed := func(reason, subject string) { failures.Once(reason, subject, errLeftOut) }
	options.Skipped = func(topic string) { failed(convention.FaultTooLarge, topic) }
	if h.outage == 0 {
		h.outage = maxOutage
	}
	s := &session{handler: h, options: options, send: send, broker: d.Broker.URL}
	s.follower = follow.New(follow.Options{
		Convention: convention.New(d), BrokerURL: d.Broker.URL,
		Admit:  func(c convention.Device) bool { return d.Filters.Admit(c.ID, c.Name, c.Manufacturer, c.Model) },
		Grace:  time.Duration(d.OfflineAfterSeconds) * time.Second,
		Jitter: func(limit time.Duration) time.Duration { return rand.N(limit) },
		Failed: failed, Scanned: h.Metrics.Scanned,
	})
	return s.run(ctx)
}

// session serves one request of an agent.
type session struct {
	handler  Handler
	options  connection.Options
	broker   string
	follower *follow.Follower
	send     func([]discovery.Device) error
	// asked has the filters of subscriptions that are not acknowledged, by their ids.
	asked map[uint16][]string
	// pings counts the pings that are not answered.
	pings int
}

// run connects to the broker, again and again, until ctx is done or the broker has been
// away for too long.
func (s *session) run(ctx context.Context) error {
	settled, ever := time.Now(), false
	for failures := 0; ; failures++ {
		err := s.connect(ctx)
		if s.follower.Settled() {
			settled, ever, failures = time.Now(), true, 0
		}
		s.follower.Disconnected()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(*finalError)):
			return err
		case !ever && (errors.As(err, new(*connection.RefusedError)) || errors.As(err, new(*tls.CertificateVerificationError))):
			// The author should know soon, and there is no list to keep.
			return fmt.Errorf("broker %s: %w", s.broker, err)
		case time.Since(settled) >= s.handler.outage:
			return fmt.Errorf("broker %s: not reachable for %v: %w", s.broker, s.handler.outage, err)
		}
		delay := backoff.Delay(minRetryDelay, maxRetryDelay, failures)
		delay = min(delay-rand.N(delay/2), max(0, s.handler.outage-time.Since(settled))) // the jitter spreads the nodes
		if !backoff.Sleep(ctx, delay) {
			return ctx.Err()
		}
	}
}

// finalError is an error that another attempt to connect does not correct.
type finalError struct{ cause error }

func (e *finalError) Error() string { return e.cause.Error() }
func (e *finalError) Unwrap() error { return e.cause }

// connect serves one connection until it breaks. Its goroutine has ended when it returns.
func (s *session) connect(ctx context.Context) error {
	c, err := connection.Dial(ctx, s.options)
	switch {
	case errors.As(err, new(*connection.RefusedError)):
		s.handler.Metrics.Failed(failedRefused)
		return err
	case err != nil:
		s.handler.Metrics.Failed(failedConnect)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	// Without a buffer, the broker must wait while a message is handled.
	arriving, broken := make(chan packets.ControlPacket), make(chan error, 1)
	s.asked, s.pings = map[uint16][]string{}, 0
	var reader sync.WaitGroup
	reader.Go(func() { broken <- read(ctx, c, arriving) })
	defer func() {
		cancel()
		c.Close() // ends the reader
		reader.Wait()
	}()
	s.follower.Connected(time.Now())
	err = s.serve(ctx, c, arriving, broken)
	if ctx.Err() == nil {
		s.handler.Metrics.Failed(failedConnection)
	}
	return err
}

// read reads packets until the connection breaks.
func read(ctx context.Context, c *connection.Connection, arriving chan<- packets.ControlPacket) error {
	for {
		packet, err := c.Read()
		if err != nil {
			return err
		}
		select {
		case arriving <- packet:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// serve handles packets and times.
func (s *session) serve(ctx context.Context, c *connection.Connection, arriving <-chan packets.ControlPacket, broken <-chan error) error {
	ping := time.NewTicker(connection.KeepAlive)
	defer ping.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := s.follower.Advance(time.Now()); err != nil {
			return err
		}
		if err := s.request(c); err != nil {
			return err
		}
		if list, changed := s.follower.List(); changed {
			if err := s.send(list); err != nil {
				return &finalError{err}
			}
		}
		timer.Reset(time.Until(s.follower.Next()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case <-timer.C:
		case <-ping.C:
			if err := s.ping(c); err != nil {
				return err
			}
		case packet := <-arriving:
			if err := s.handle(packet); err != nil {
				return err
			}
		}
	}
}

// request sends the follower's requests, and a ping after subscriptions. Brokers handle
// the packets of a client in their order.
func (s *session) request(c *connection.Connection) error {
	subscribe, publish := s.follower.Requests()
	for _, message := range publish {
		if err := c.Publish(message.Topic, message.Payload); err != nil {
			return err
		}
	}
	for _, filters := range subscribe {
		id, err := c.Subscribe(filters)
		if err != nil {
			return err
		}
		s.asked[id] = filters
	}
	if len(subscribe) == 0 {
		return nil
	}
	return s.ping(c)
}

func (s *session) ping(c *connection.Connection) error {
	s.pings++
	return c.Ping()
}

// errUnasked is an answer without a request.
var errUnasked = errors.New("the broker acknowledges what was not requested")

// largePayload is the size from which payloads are decoded one at a time.
const largePayload = 8 << 10

// decoding is held while a large payload is decoded, because lists of short values may take a
// hundred times their size meanwhile.
var decoding sync.Mutex

// handle handles a packet.
func (s *session) handle(packet packets.ControlPacket) error {
	switch p := packet.(type) {
	case *packets.PublishPacket:
		if len(p.Payload) > largePayload {
			decoding.Lock()
			defer decoding.Unlock()
		}
		s.follower.Message(convention.Message{Topic: p.TopicName, Payload: p.Payload}, p.Retain, time.Now())
		return nil
	case *packets.PingrespPacket:
		if s.pings--; s.pings < 0 {
			return errUnasked
		}
	case *packets.SubackPacket:
		filters, ok := s.asked[p.MessageID]
		if !ok || len(filters) != len(p.ReturnCodes) {
			return errUnasked
		}
		delete(s.asked, p.MessageID)
		if needed := s.follower.Subscribed(filters, p.ReturnCodes); len(needed) > 0 {
			return &finalError{fmt.Errorf("broker %s: refuses the subscription to %s: permit the user to read these topics",
				s.broker, strings.Join(needed, ", "))}
		}
	}
	if len(s.asked) == 0 && s.pings == 0 {
		s.follower.Answered(time.Now())
	}
	return nil
}
