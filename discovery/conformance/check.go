package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// cancelledCalls is how many calls are cancelled before the next one must work. Servers
// in some languages have a thread for each call, and ten threads.
const cancelledCalls = 30

// rule is a part of the contract.
type rule struct {
	name  string
	check func() error
}

// skipped is the error of a check that cannot be made.
type skipped string

// Error implements error.
func (s skipped) Error() string { return string(s) }

// run checks rules in turn. If one of the first, essential ones is broken, those that follow
// are skipped.
func run(rules []rule, essential int, why string) []Result {
	var results []Result
	broken := false
	for i, each := range rules {
		began := time.Now()
		var err error = skipped(why)
		if !broken {
			err = each.check()
		}
		reason, isSkipped := errors.AsType[skipped](err)
		if isSkipped {
			results = append(results, Result{Rule: each.name, Skipped: string(reason)})
			continue
		}
		results = append(results, Result{Rule: each.name, Err: err, Took: time.Since(began)})
		broken = broken || i < essential && err != nil
	}
	return results
}

// checker checks one handler.
type checker struct {
	ctx        context.Context
	what       Case
	connection *grpc.ClientConn
	calls      sync.WaitGroup
	first      *call // open during the checks

	mu sync.Mutex
	// devices is how many were found in all lists, and faults are the first ones by rule.
	devices int
	faults  map[string]error
}

// Check checks the handler at an endpoint, which is the path of a Unix socket or
// HOST:PORT, with or without http://. It returns a result for each rule.
func Check(ctx context.Context, endpoint string, what Case) []Result {
	ctx, cancel := context.WithCancel(ctx)
	c := &checker{ctx: ctx, what: what.withDefaults(), faults: map[string]error{}}
	rules := []rule{
		{"connects", func() error { return c.connect(endpoint) }},
		{"first list", c.firstList},
		{"stays open", c.staysOpen},
		{"overlapping calls", c.overlapping},
		{"sends changes", c.sendsChanges},
		{"same list for each call", c.sameList},
		{"independent calls", c.independent},
		{deviceIDs, func() error { return c.found(deviceIDs) }},
		{deviceProperties, func() error { return c.found(deviceProperties) }},
		{deviceFiles, func() error { return c.found(deviceFiles) }},
		{"cancelled calls are released", c.released},
		{"refusal", c.refusal},
		{"works after a refusal", c.worksAfterRefusal},
	}
	results := run(rules, 2, "the handler has sent no list")
	cancel()
	c.calls.Wait()
	if c.connection != nil {
		c.connection.Close()
	}
	return results
}

// dial returns a client of an endpoint. It uses the authority that agents use, which is
// localhost for a socket.
func dial(endpoint string) (*grpc.ClientConn, error) {
	target := "passthrough:///" + strings.TrimPrefix(endpoint, "http://")
	if path := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix://"), "unix:"); strings.HasPrefix(path, "/") {
		target = "unix:" + path
	}
	return grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
}

func (c *checker) connect(endpoint string) (err error) {
	if c.connection, err = dial(endpoint); err != nil {
		return err
	}
	c.connection.Connect()
	return await(c.ctx, c.what.Patience, func() (bool, error) {
		if c.connection.GetState() == connectivity.Ready {
			return true, nil
		}
		return false, fmt.Errorf("no gRPC connection within %v", c.what.Patience)
	})
}

// begin opens a call with valid details, and waits for its first list. The caller cancels
// the call.
func (c *checker) begin() (*call, error) {
	begun := c.open(c.what.Details)
	return begun, c.sends(0, begun)
}

func (c *checker) firstList() (err error) {
	c.first, err = c.begin()
	return err
}

// staysOpen observes the first call, which must also find the devices that the Case expects.
func (c *checker) staysOpen() error {
	if err := c.first.observe(c.what.Quiet); err != nil {
		return err
	}
	return await(c.ctx, c.what.Patience, func() (bool, error) {
		if newest, _ := c.first.list(); len(newest) < c.what.MinDevices {
			return false, fmt.Errorf("%d devices were found, want %d: is the device there?", len(newest), c.what.MinDevices)
		}
		return true, nil
	})
}

// overlapping opens more calls than there are processors, while the first is open.
func (c *checker) overlapping() error {
	const others = 4
	var calls []*call
	for range others {
		other := c.open(c.what.Details)
		defer other.cancel()
		calls = append(calls, other)
	}
	for i, other := range calls {
		if err := c.sends(0, other); err != nil {
			return fmt.Errorf("call %d of %d that are open: %w", i+2, others+1, err)
		}
	}
	return nil
}

func (c *checker) sendsChanges() error {
	if c.what.Change == nil {
		return skipped("the devices do not change")
	}
	_, former := c.first.list()
	if err := c.what.Change(c.ctx); err != nil {
		return fmt.Errorf("change the devices: %w", err)
	}
	return c.sends(former, c.first)
}

// sameList compares the lists of an older and a newer call, which may take a moment.
func (c *checker) sameList() error {
	other, err := c.begin()
	defer other.cancel()
	if err = errors.Join(err, other.observe(c.what.Quiet/4)); err != nil {
		return fmt.Errorf("a new call: %w", err)
	}
	return await(c.ctx, c.what.Patience, func() (bool, error) {
		if err := c.first.end(); err != nil {
			return true, fmt.Errorf("the first call: %w", err)
		}
		older, _ := c.first.list()
		newer, _ := other.list()
		if err := differ(older, newer); err != nil {
			return false, fmt.Errorf("a call that began later has another list: %w: send full lists, and keep the ids of devices", err)
		}
		return true, nil
	})
}

// independent cancels one call, and checks that another goes on.
func (c *checker) independent() error {
	other, err := c.begin()
	other.cancel()
	if err != nil {
		return err
	}
	<-other.ended
	return c.first.observe(c.what.Quiet / 4)
}

// released cancels many calls, each when it has sent a list.
func (c *checker) released() error {
	c.first.cancel()
	for i := range cancelledCalls {
		other, err := c.begin()
		other.cancel()
		<-other.ended
		if err != nil {
			return fmt.Errorf("after %d calls that were cancelled: %w", i+1, err)
		}
	}
	return nil
}

const noInvalid = skipped("no invalid details are given")

// refusal sends each of the invalid details while a valid call is open.
func (c *checker) refusal() error {
	if len(c.what.Invalid) == 0 {
		return noInvalid
	}
	valid, err := c.begin()
	defer valid.cancel()
	if err != nil {
		return fmt.Errorf("a valid call: %w", err)
	}
	for _, details := range c.what.Invalid {
		if err := c.refuses(details); err != nil {
			return fmt.Errorf("discoveryDetails %q: %w", shown(details), err)
		}
	}
	if err := valid.observe(c.what.Quiet / 4); err != nil {
		return fmt.Errorf("a valid call, after another was refused: %w", err)
	}
	return nil
}

func (c *checker) worksAfterRefusal() error {
	if len(c.what.Invalid) == 0 {
		return noInvalid
	}
	again, err := c.begin()
	again.cancel()
	return err
}
