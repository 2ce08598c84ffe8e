package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"akri.sh/akri/discovery/protocol"
)

// cancelledCalls is how many calls are cancelled before the next one must work. Servers
// in some languages have a thread for each call, and ten threads.
const cancelledCalls = 30

// checker checks one handler.
type checker struct {
	ctx     context.Context
	what    Case
	client  protocol.DiscoveryHandlerClient
	calls   sync.WaitGroup
	results []Result

	first  *call // open during the checks
	newest []*protocol.Device
	seen   [][]*protocol.Device
}

// Check checks the handler at an endpoint, which is the path of a Unix socket or
// HOST:PORT, with or without http://. It returns a result for each rule.
func Check(ctx context.Context, endpoint string, what Case) []Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &checker{ctx: ctx, what: what}
	defer c.calls.Wait()
	connection, err := dial(endpoint)
	if err == nil {
		defer connection.Close()
		c.client = protocol.NewDiscoveryHandlerClient(connection)
	}
	defer cancel() // before waiting for the calls
	if !c.check(Connects, func() error { return errors.Join(err, c.connect(connection)) }) || !c.check(FirstList, c.firstList) {
		return c.skip("the handler has sent no list", StaysOpen, Overlapping, SendsChanges, SameList,
			Independent, DeviceIDs, DeviceProperties, DeviceFiles, Released, Refusal, Survives)
	}
	c.check(StaysOpen, c.staysOpen)
	c.check(Overlapping, c.overlapping)
	if what.Change == nil {
		c.skip("the devices do not change", SendsChanges)
	} else {
		c.check(SendsChanges, c.sendsChanges)
	}
	c.check(SameList, c.sameList)
	c.check(Independent, c.independent)
	c.checkDevices()
	c.first.cancel()
	c.check(Released, c.released)
	if len(what.Invalid) == 0 {
		return c.skip("no invalid details are given", Refusal, Survives)
	}
	c.check(Refusal, c.refusal)
	c.check(Survives, c.works)
	return c.results
}

func (c *checker) check(rule Rule, do func() error) bool {
	began := time.Now()
	err := do()
	c.results = append(c.results, Result{Rule: rule, Err: err, Took: time.Since(began)})
	return err == nil
}

func (c *checker) skip(why string, rules ...Rule) []Result {
	for _, rule := range rules {
		c.results = append(c.results, Result{Rule: rule, Skipped: why})
	}
	return c.results
}

// dial returns a client of an endpoint. It uses the authority that agents use.
func dial(endpoint string) (*grpc.ClientConn, error) {
	network, address := "tcp", strings.TrimPrefix(endpoint, "http://")
	authority := address
	if path := strings.TrimPrefix(strings.TrimPrefix(endpoint, "unix://"), "unix:"); strings.HasPrefix(path, "/") {
		network, address, authority = "unix", path, "localhost"
	}
	return grpc.NewClient("passthrough:///handler",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority(authority),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, address)
		}))
}

func (c *checker) connect(connection *grpc.ClientConn) error {
	if connection == nil {
		return nil // dial has failed
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.what.patience())
	defer cancel()
	connection.Connect()
	for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
		if !connection.WaitForStateChange(ctx, state) {
			return fmt.Errorf("no gRPC connection within %v", c.what.patience())
		}
	}
	return nil
}

func (c *checker) keep(list []*protocol.Device) { c.newest, c.seen = list, append(c.seen, list) }

func (c *checker) firstList() error {
	c.first = c.open(c.what.Details)
	list, err := c.first.next(c.what.patience())
	if err == nil {
		c.keep(list)
	}
	return err
}

// enough returns an error if a list has fewer devices than the Case expects.
func (c *checker) enough(list []*protocol.Device) error {
	if len(list) < c.what.MinDevices {
		return fmt.Errorf("%d devices were found, want %d: is the device there?", len(list), c.what.MinDevices)
	}
	return nil
}

func (c *checker) staysOpen() error {
	list, err := c.first.settle(c.newest, c.what.quiet(), c.what.patience(), c.enough)
	c.keep(list)
	return err
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
		list, err := other.next(c.what.patience())
		if err != nil {
			return fmt.Errorf("call %d of %d that are open: %w", i+2, others+1, err)
		}
		c.seen = append(c.seen, list)
	}
	return nil
}

func (c *checker) sendsChanges() error {
	if err := c.what.Change(c.ctx); err != nil {
		return fmt.Errorf("change the devices: %w", err)
	}
	list, err := c.first.next(c.what.patience())
	if err == nil {
		c.keep(list)
	}
	return err
}

// sameList compares the lists of an older and a newer call.
func (c *checker) sameList() error {
	other := c.open(c.what.Details)
	defer other.cancel()
	list, err := other.next(c.what.patience())
	if err != nil {
		return fmt.Errorf("a new call: %w", err)
	}
	var difference error
	for deadline := time.Now().Add(c.what.patience()); ; {
		if c.newest, err = c.first.settle(c.newest, c.what.quiet()/4, c.what.quiet(), accept); err != nil {
			return fmt.Errorf("the first call: %w", err)
		}
		if list, err = other.settle(list, c.what.quiet()/4, c.what.quiet(), accept); err != nil {
			return fmt.Errorf("a new call: %w", err)
		}
		c.seen = append(c.seen, c.newest, list)
		if difference = differ(c.newest, list); difference == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a call that began later has another list: %w: send full lists, and keep the ids of devices", difference)
		}
	}
}

func accept([]*protocol.Device) error { return nil }

// independent cancels one call, and checks that another goes on.
func (c *checker) independent() error {
	other := c.open(c.what.Details)
	if _, err := other.next(c.what.patience()); err != nil {
		other.cancel()
		return err
	}
	other.cancel()
	<-other.ended
	list, err := c.first.settle(c.newest, c.what.quiet()/4, c.what.quiet(), accept)
	c.keep(list)
	return err
}

func (c *checker) checkDevices() {
	for _, each := range []struct {
		rule  Rule
		check func([]*protocol.Device) error
	}{{DeviceIDs, checkIDs}, {DeviceProperties, checkProperties}, {DeviceFiles, checkFiles}} {
		count := 0
		for _, list := range c.seen {
			count += len(list)
		}
		if count == 0 {
			c.skip("no device was found", each.rule)
			continue
		}
		c.check(each.rule, func() error {
			for _, list := range c.seen {
				if err := each.check(list); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// released cancels many calls, each when it has sent a list.
func (c *checker) released() error {
	for i := range cancelledCalls {
		other := c.open(c.what.Details)
		_, err := other.next(c.what.patience())
		other.cancel()
		<-other.ended
		if err != nil {
			return fmt.Errorf("after %d calls that were cancelled: %w", i+1, err)
		}
	}
	return nil
}

// refusal sends each of the invalid details while a valid call is open.
func (c *checker) refusal() error {
	valid := c.open(c.what.Details)
	defer valid.cancel()
	list, err := valid.next(c.what.patience())
	if err != nil {
		return fmt.Errorf("a valid call: %w", err)
	}
	for _, details := range c.what.Invalid {
		invalid := c.open(details)
		err := invalid.refused(c.what.patience())
		invalid.cancel()
		if err != nil {
			return fmt.Errorf("discoveryDetails %q: %w", shown(details), err)
		}
	}
	if _, err := valid.settle(list, c.what.quiet()/4, c.what.quiet(), accept); err != nil {
		return fmt.Errorf("a valid call, after another was refused: %w", err)
	}
	return nil
}

func (c *checker) works() error {
	again := c.open(c.what.Details)
	defer again.cancel()
	_, err := again.next(c.what.patience())
	return err
}
